// The solver against trying everything.
#include "core/packing/pack.h"
#include "tests/packing/brute_force.h"
#include "tests/packing/random_problem.h"
#include "tests/support/packing.h"

#include <gtest/gtest.h>

namespace loadline {
namespace {

std::string told(const Problem& problem) {
  std::string text;
  for (std::size_t i = 0; i < problem.buffers.size(); ++i) {
    const Buffer& b = problem.buffers[i];
    text += std::to_string(b.lower) + "-" + std::to_string(b.upper) + " size " + std::to_string(b.size) +
            " alignment " + std::to_string(b.alignment);
    if (b.offset) text += " at " + std::to_string(*b.offset);
    for (const Lifespan& gap : b.gaps)
      text += " gap " + std::to_string(gap.lower) + "-" + std::to_string(gap.upper);
    if (b.arena != 0) text += " arena " + std::to_string(b.arena);
    if (b.group != kNoGroup) text += " group " + std::to_string(b.group);
    text += "\n";
  }
  return text;
}

// Feasible at the least capacity and proved infeasible one below; minimising finds and proves it, by so
// many `decisions` of exact search.
void expect_exact(const ProblemShape& shape, std::uint64_t seeds, std::uint64_t* decisions = nullptr) {
  constexpr std::uint64_t kMost = 60;
  for (std::uint64_t seed = 0; seed < seeds; ++seed) {
    const Problem problem = random_problem(shape, seed);
    const auto least = least_capacity(problem, shape.large ? sums_of_sizes(problem) : numbers_to(kMost));
    ASSERT_TRUE(least) << told(problem);
    PackOptions options;
    options.seed = seed;
    options.capacity.assign(shape.arenas, *least);
    const Packing packing = pack(problem, options);
    ASSERT_EQ(packing.verdict, Verdict::feasible) << "seed " << seed << ", capacity " << *least << "\n"
                                                  << told(problem);
    const auto fault = find_fault(problem, packing.offsets, options.capacity);
    ASSERT_FALSE(fault) << *fault << "\n" << told(problem);
    if (*least > 0) {
      options.capacity.assign(shape.arenas, *least - 1);
      ASSERT_EQ(pack(problem, options).verdict, Verdict::infeasible)
          << "seed " << seed << ", capacity " << *least - 1 << "\n"
          << told(problem);
    }
    options.capacity.clear();
    options.minimize = true;
    const Packing lowest = pack(problem, options);
    if (decisions != nullptr) *decisions += lowest.nodes;
    ASSERT_TRUE(lowest.proven_optimal()) << told(problem);
    ASSERT_EQ(lowest.height(), *least) << told(problem);
    ASSERT_FALSE(find_fault(problem, lowest.offsets));
  }
}

constexpr std::uint64_t kSeeds = 3000;  // each is solved at two capacities and minimised

TEST(ExactPacking, plain) { expect_exact({}, kSeeds); }
TEST(ExactPacking, many_small) { expect_exact({.buffers = 8, .ticks = 4, .most_size = 3}, kSeeds); }
TEST(ExactPacking, alignments) { expect_exact({.alignments = true}, kSeeds); }
TEST(ExactPacking, pins) { expect_exact({.buffers = 7, .pins = true}, kSeeds); }
TEST(ExactPacking, gaps) { expect_exact({.most_size = 4, .gaps = true}, kSeeds); }
TEST(ExactPacking, groups) { expect_exact({.groups = true}, kSeeds); }
TEST(ExactPacking, pinned_groups) { expect_exact({.groups = true, .pinned_groups = true}, kSeeds); }
TEST(ExactPacking, arenas) { expect_exact({.arenas = 3}, kSeeds); }
// One unit is one byte here, and an offset takes more than 32 bits.
TEST(ExactPacking, large) {
  std::uint64_t decisions = 0;
  expect_exact({.buffers = 6, .gaps = true, .groups = true, .large = true}, kSeeds / 6, &decisions);
  EXPECT_GT(decisions, 0u) << "the search of 64 bits never ran";
}

TEST(ExactPacking, everything_at_once) {
  const ProblemShape shape = {.buffers = 7, .alignments = true, .pins = true, .gaps = true, .groups = true};
  expect_exact(shape, kSeeds);
  ProblemShape more = shape;
  more.pinned_groups = true;
  more.arenas = 2;
  expect_exact(more, kSeeds);
}

}  // namespace
}  // namespace loadline
