// Places the blocks of one memory space of a run at fixed offsets in one range.
#pragma once

#include "core/base/tasks.h"
#include "core/plan/plan.h"
#include "core/plan/timeline.h"

#include <cstdint>
#include <vector>

namespace loadline {

struct Arena {
  std::uint64_t height = 0;            // bytes of the range
  std::uint64_t lower_bound = 0;       // at least the most bytes alive at once; no placement is lower
  std::vector<std::uint64_t> offsets;  // by block; 0 for blocks of other spaces or never allocated
};

// Offsets for the blocks of `space`, at multiples of `alignment`; blocks alive together do not overlap. Packs
// space_problem() without a time limit, so that the same run gives the same arena on every machine. Throws
// Error{limit} for sizes over 2^62 bytes, Error{cancelled}.
Arena plan_arena(const Plan& plan, const Timeline& timeline, Space space, Progress& progress,
                 std::uint64_t alignment = 256);

}  // namespace loadline
