// The blocks of one space of a run as an arena planning problem.
#pragma once

#include "core/packing/problem.h"
#include "core/plan/plan.h"
#include "core/plan/timeline.h"

#include <cstdint>
#include <vector>

namespace loadline {

struct SpaceProblem {
  Problem problem = {};              // ticks are steps of the plan; no ids
  std::vector<BlockId> blocks = {};  // by buffer
};

// Every block of `space` that the run allocates and that has bytes, in the order of the plan. Sizes are
// rounded up to whole multiples of `alignment`, at which offsets start, so that any two can be neighbours;
// what outlives the plan is alive up to one tick behind its last step.
SpaceProblem space_problem(const Plan& plan, const Timeline& timeline, Space space,
                           std::uint64_t alignment = 256);

}  // namespace loadline
