// The blocks of one space of a run at fixed offsets in one range.
#pragma once

#include "core/plan/plan.h"
#include "core/plan/timeline.h"

#include <cstdint>
#include <vector>

namespace loadline {

struct Arena {
  std::uint64_t height = 0;            // bytes of the range
  std::uint64_t lower_bound = 0;       // the most that is alive at once, rounding included
  std::vector<std::uint64_t> offsets;  // by block; of other spaces, and of blocks never allocated, 0
};

// Offsets for the blocks of `space`, at multiples of `alignment`, so that no two that are alive together
// overlap. The best of two heuristics: best fit in the order of time, and, where there are few enough blocks,
// largest first at the lowest offset (greedy by size).
Arena plan_arena(const Plan& plan, const Timeline& timeline, Space space, std::uint64_t alignment = 256);

}  // namespace loadline
