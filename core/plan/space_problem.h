// Turns the blocks of one memory space of a run into an arena packing problem.
#pragma once

#include "core/packing/problem.h"
#include "core/plan/plan.h"
#include "core/plan/timeline.h"

#include <cstdint>
#include <vector>

namespace loadline {

struct SpaceProblem {
  Problem problem = {};              // time in steps of the plan; buffers have no ids
  std::vector<BlockId> blocks = {};  // by buffer
};

// Every block of `space` that the run allocates with at least one byte, in plan order. Sizes are rounded up
// to multiples of `alignment`, as offsets are, so that any two blocks can be neighbours. Blocks that outlive
// the plan live until one tick after its last step.
SpaceProblem space_problem(const Plan& plan, const Timeline& timeline, Space space,
                           std::uint64_t alignment = 256);

}  // namespace loadline
