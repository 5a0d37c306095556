// Turns lifetimes of blocks into buffers.
#include "core/plan/space_problem.h"

#include "core/base/checked_arithmetic.h"

namespace loadline {

SpaceProblem space_problem(const Plan& plan, const Timeline& timeline, Space space, std::uint64_t alignment) {
  SpaceProblem result;
  for (std::size_t i = 0; i < plan.blocks.size(); ++i) {
    const Lifetime& life = timeline.lifetimes[i];
    if (plan.blocks[i].space != space || plan.blocks[i].bytes == 0 || life.from_step == kNever) continue;
    result.problem.buffers.push_back({.lower = life.from_step,
                                      .upper = life.to_step == kNever ? plan.steps.size() + 1 : life.to_step,
                                      .size = align_up(plan.blocks[i].bytes, alignment),
                                      .alignment = alignment});
    result.blocks.push_back(BlockId{static_cast<std::uint32_t>(i)});
  }
  return result;
}

}  // namespace loadline
