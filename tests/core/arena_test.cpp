// The blocks of a space as a packing problem, and arenas made of them.
#include "core/packing/greedy.h"
#include "core/packing/pack.h"
#include "core/plan/dry_machine.h"
#include "core/plan/reserved_memory.h"
#include "tests/support/plan_models.h"
#include "tests/support/random_plans.h"

#include <gtest/gtest.h>

namespace loadline {
namespace {

Block block_of(Space space, std::uint64_t bytes) {
  return {.space = space, .bytes = bytes, .use = BlockUse::temporary, .storage = {}, .label = "block"};
}

TEST(SpaceProblem, HasTheBlocksOfOneSpaceThatHaveBytes) {
  Plan plan;
  const BlockId kept = alloc(plan, block_of(Space::device, 1000));    // step 0, never freed
  alloc(plan, block_of(Space::host, 5000));                           // step 1, elsewhere
  const BlockId passing = alloc(plan, block_of(Space::device, 256));  // step 2
  alloc(plan, block_of(Space::device, 0));                            // step 3, without bytes
  free(plan, passing);                                                // step 4
  const BlockId last = alloc(plan, block_of(Space::device, 1));       // step 5
  plan.blocks.push_back(block_of(Space::device, 77));                 // nobody allocates it
  DryMachine machine;
  Timeline timeline = run(plan, machine);
  timeline.lifetimes.resize(plan.blocks.size());
  const SpaceProblem device = space_problem(plan, timeline, Space::device);
  EXPECT_EQ(device.blocks, (std::vector{kept, passing, last}));
  ASSERT_EQ(device.problem.buffers.size(), 3u);
  const auto expect = [&](std::size_t at, std::uint64_t lower, std::uint64_t upper, std::uint64_t size) {
    const Buffer& buffer = device.problem.buffers[at];
    EXPECT_EQ(buffer.lower, lower) << at;
    EXPECT_EQ(buffer.upper, upper) << at;
    EXPECT_EQ(buffer.size, size) << at;
    EXPECT_EQ(buffer.alignment, 256u) << at;
  };
  expect(0, 0, 7, 1024);
  expect(1, 2, 4, 256);
  expect(2, 5, 7, 256);
  EXPECT_FALSE(alive_together(device.problem.buffers[1], device.problem.buffers[2]));
  const SpaceProblem host = space_problem(plan, timeline, Space::host, 64);
  ASSERT_EQ(host.problem.buffers.size(), 1u);
  EXPECT_EQ(host.problem.buffers[0].size, 5056u);
  EXPECT_TRUE(space_problem(plan, timeline, Space::staging).blocks.empty());
}

TEST(PlannedArena, IsNeverHigherThanGreedyBySizeAndKeepsEveryRule) {
  const MetaGraph graph = testing::graph_of({1000, 2000, 3000, 4000});
  std::size_t lower_than_greedy = 0;
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    const Plan plan = testing::random_plan(graph, seed, 200);
    DryMachine machine;
    const Timeline timeline = run(plan, machine);
    for (const Space space : {Space::host, Space::staging, Space::device}) {
      const SpaceProblem blocks = space_problem(plan, timeline, space);
      Progress progress;
      const Arena arena = plan_arena(plan, timeline, space, progress);
      const std::uint64_t greedy = greedy_by_size_height(blocks.problem).value();
      EXPECT_LE(arena.height, greedy) << "seed " << seed;
      lower_than_greedy += arena.height < greedy ? 1 : 0;
      EXPECT_GE(arena.height, arena.lower_bound);
      std::vector<std::uint64_t> offsets;
      for (const BlockId id : blocks.blocks) offsets.push_back(arena.offsets[static_cast<std::size_t>(id)]);
      const auto fault = find_fault(blocks.problem, offsets, std::vector{std::optional(arena.height)});
      EXPECT_FALSE(fault) << "seed " << seed << ": " << *fault;
      EXPECT_EQ(plan_arena(plan, timeline, space, progress).offsets, arena.offsets)
          << "the same run, the same arena";
    }
  }
  EXPECT_GT(lower_than_greedy, 0u) << "these plans would not tell";
}

}  // namespace
}  // namespace loadline
