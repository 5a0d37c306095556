// The blocks of one space of a run at fixed offsets in one range.
#pragma once

#include "core/base/progress.h"
#include "core/plan/plan.h"
#include "core/plan/timeline.h"

#include <cstdint>
#include <vector>

namespace loadline {

struct Arena {
  std::uint64_t height = 0;            // bytes of the range
  std::uint64_t lower_bound = 0;       // what no range undercuts: the most that is alive at once, or more
  std::vector<std::uint64_t> offsets;  // by block; of other spaces, and of blocks never allocated, 0
};

// Offsets for the blocks of `space`, at multiples of `alignment`, so that no two that are alive together
// overlap: pack() of space_problem(), as far as it goes without a clock, so that the same run has the same
// arena everywhere. Throws Error{limit} for sizes that pass 2^62 bytes, Error{cancelled}.
Arena plan_arena(const Plan& plan, const Timeline& timeline, Space space, Progress& progress,
                 std::uint64_t alignment = 256);

}  // namespace loadline
