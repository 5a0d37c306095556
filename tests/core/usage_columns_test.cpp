// Curves in columns against every point of a run, and what is alive against alive_at().
#include "core/plan/dry_machine.h"
#include "core/plan/run.h"
#include "core/view/curves.h"
#include "tests/support/random_plans.h"

#include <algorithm>

#include <gtest/gtest.h>

namespace loadline::view {
namespace {

struct RandomRun {
  MetaGraph graph;
  Plan plan;
  Timeline timeline;
};

RandomRun random_run(std::uint64_t seed) {
  RandomRun run;
  for (const std::uint64_t bytes : {3000u, 1u, 70'000u, 512u}) {
    const auto id = static_cast<std::uint32_t>(run.graph.storages.size());
    run.graph.storages.push_back(shapes_only_storage(bytes));
    run.graph.tensors.push_back({"t" + std::to_string(id), DType::u8, {bytes}, {}, StorageId{id}, 0});
  }
  run.plan = testing::random_plan(run.graph, seed, 80);
  DryMachine machine;
  run.timeline = loadline::run(run.plan, machine);
  return run;
}

std::uint64_t sum_of(const PerSpace<std::uint64_t>& bytes, unsigned mask) {
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i < kSpaceCount; ++i)
    if ((mask & (1u << i)) != 0) sum += bytes[i];
  return sum;
}

constexpr unsigned kMasks[] = {kAllSpaces, space_bit(Space::device), kAllSpaces & ~space_bit(Space::device)};

TEST(UsageColumns, HoldTheMostOfEveryMomentInThem) {
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    const RandomRun run = random_run(seed);
    const std::size_t steps = run.plan.steps.size();
    for (const unsigned mask : kMasks)
      for (const CurveAxis axis : {CurveAxis::steps, CurveAxis::seconds})
        for (const std::size_t count : {1u, 7u, 40u, 500u}) {
          const auto columns = usage_columns(run.timeline, steps, axis, mask, count);
          ASSERT_EQ(columns.size(), count);
          std::uint64_t most = 0;
          for (const UsageColumn& column : columns) most = std::max(most, sum_of(column.bytes, mask));
          EXPECT_EQ(most, peak_over(run.timeline, mask).bytes) << seed;
          // the parts of a column were there at once
          for (const UsageColumn& column : columns)
            for (std::size_t space = 0; space < kSpaceCount; ++space)
              if ((mask & (1u << space)) != 0)
                EXPECT_EQ(column.bytes[space], usage_at(run.timeline, column.step, 1u << space)) << seed;
        }
  }
}

// With a column per step each column is the usage after its step, or what was there before, if that is more.
TEST(UsageColumns, FollowEveryStepWhereThereIsRoom) {
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    const RandomRun run = random_run(seed);
    const std::size_t steps = run.plan.steps.size();
    const auto columns = usage_columns(run.timeline, steps, CurveAxis::steps, kAllSpaces, steps);
    for (std::size_t step = 0; step < steps; ++step) {
      const std::uint64_t now = usage_at(run.timeline, step, kAllSpaces);
      const std::uint64_t before = step == 0 ? 0 : usage_at(run.timeline, step - 1, kAllSpaces);
      EXPECT_EQ(sum_of(columns[step].bytes, kAllSpaces), std::max(now, before)) << seed << " " << step;
    }
  }
}

TEST(UsageColumns, OfARunThatTakesNoTimeAreItsMost) {
  Plan plan;
  const BlockId a = alloc(plan, {.space = Space::device, .bytes = 100});
  free(plan, a);
  alloc(plan, {.space = Space::host, .bytes = 30});
  DryMachine machine;
  const Timeline timeline = run(plan, machine);
  ASSERT_EQ(timeline.seconds, 0);
  for (const UsageColumn& column : usage_columns(timeline, 3, CurveAxis::seconds, kAllSpaces, 5))
    EXPECT_EQ(column.bytes[index(Space::device)], 100u);
  EXPECT_EQ(usage_columns({}, 0, CurveAxis::steps, kAllSpaces, 3).size(), 3u);
}

TEST(UsageColumns, MayBecomeFewer) {
  for (std::uint64_t seed = 0; seed < 30; ++seed) {
    const RandomRun run = random_run(seed);
    const auto columns =
        usage_columns(run.timeline, run.plan.steps.size(), CurveAxis::steps, kAllSpaces, 100);
    for (const std::size_t count : {1u, 3u, 99u, 100u, 300u}) {
      const auto fewer = fewer_columns(columns, kAllSpaces, count);
      ASSERT_EQ(fewer.size(), std::min<std::size_t>(count, 100));
      std::uint64_t most = 0;
      for (const UsageColumn& column : fewer) most = std::max(most, sum_of(column.bytes, kAllSpaces));
      EXPECT_EQ(most, run.timeline.unified.bytes);
    }
  }
}

TEST(AliveAtSteps, NamesTheLargestOfThoseAlive) {
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    const RandomRun run = random_run(seed);
    std::vector<std::size_t> moments;
    for (std::size_t step = 0; step < run.plan.steps.size(); step += 3) moments.push_back(step);
    for (const unsigned mask : kMasks) {
      const auto found = alive_at_steps(run.timeline, run.plan, moments, mask, 2);
      ASSERT_EQ(found.size(), moments.size());
      for (std::size_t i = 0; i < moments.size(); ++i) {
        std::vector<BlockId> expected = alive_at(run.timeline, run.plan, moments[i], mask);
        EXPECT_EQ(found[i].count, expected.size()) << seed << " " << moments[i];
        expected.resize(std::min<std::size_t>(expected.size(), 2));
        EXPECT_EQ(found[i].largest, expected) << seed << " " << moments[i];
      }
    }
  }
}

}  // namespace
}  // namespace loadline::view
