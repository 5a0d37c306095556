// What an allocator does that knows nothing of what is to come: in the order of time, each box into the
// smallest hole that holds it.
#pragma once

#include "core/packing/greedy.h"

namespace loadline {

// A packing in a moment, for problems of any size: n log n. Boxes with several ranges count as alive from the
// first to the last, and all lie above every obstacle. Given up (height UINT64_MAX) above `most`.
GreedyPacking pack_by_time(const SectionModel& model, std::uint64_t most);

}  // namespace loadline
