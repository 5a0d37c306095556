// An online allocator, which does not know the future: places each box, in order of time, in the smallest
// hole that is large enough.
#pragma once

#include "core/packing/greedy.h"

namespace loadline {

// A fast packing for problems of any size: O(n log n). Boxes with several ranges count as alive from the
// first to the last range. All boxes lie above every obstacle. Abandoned (height UINT64_MAX) if it exceeds
// `most`.
GreedyPacking pack_by_time(const SectionModel& model, std::uint64_t most);

}  // namespace loadline
