// The solver against trying everything, and the parts of its search.

#include "core/packing/ejection.h"
#include "core/packing/greedy.h"
#include "core/packing/normal_form.h"
#include "core/packing/pack.h"
#include "core/packing/problem.h"
#include "core/packing/search_control.h"
#include "core/packing/skyline.h"
#include "tests/packing/brute_force.h"
#include "tests/packing/guillotine.h"
#include "tests/packing/random_problem.h"
#include "tests/support/packing.h"

#include <algorithm>
#include <numeric>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace loadline::tests {

// --- The solver against trying everything.

namespace {

std::string told(const packing::Problem& problem) {
  std::string text;
  for (std::size_t i = 0; i < problem.buffers.size(); ++i) {
    const packing::Buffer& b = problem.buffers[i];
    text += std::to_string(b.lower) + "-" + std::to_string(b.upper) + " size " + std::to_string(b.size) +
            " alignment " + std::to_string(b.alignment);
    if (b.offset) text += " at " + std::to_string(*b.offset);
    for (const packing::Lifespan& gap : b.gaps)
      text += " gap " + std::to_string(gap.lower) + "-" + std::to_string(gap.upper);
    if (b.arena != 0) text += " arena " + std::to_string(b.arena);
    if (b.group != packing::kNoGroup) text += " group " + std::to_string(b.group);
    text += "\n";
  }
  return text;
}

// Feasible at the least capacity and proved infeasible one below; minimizing finds and proves it, by so
// many `decisions` of exact search.
void expect_exact(const ProblemShape& shape, std::uint64_t seeds, std::uint64_t* decisions = nullptr) {
  constexpr std::uint64_t kMost = 60;
  for (std::uint64_t seed = 0; seed < seeds; ++seed) {
    const packing::Problem problem = random_problem(shape, seed);
    const auto least = least_capacity(problem, shape.large ? sums_of_sizes(problem) : numbers_to(kMost));
    ASSERT_TRUE(least) << told(problem);
    packing::PackOptions options;
    options.seed = seed;
    options.capacity.assign(shape.arenas, *least);
    const packing::Packing packing = pack(problem, options);
    ASSERT_EQ(packing.verdict, packing::Verdict::feasible)
        << "seed " << seed << ", capacity " << *least << "\n"
        << told(problem);
    const auto fault = packing::find_fault(problem, packing.offsets, options.capacity);
    ASSERT_FALSE(fault) << *fault << "\n" << told(problem);
    if (*least > 0) {
      options.capacity.assign(shape.arenas, *least - 1);
      ASSERT_EQ(pack(problem, options).verdict, packing::Verdict::infeasible)
          << "seed " << seed << ", capacity " << *least - 1 << "\n"
          << told(problem);
    }
    options.capacity.clear();
    options.minimize = true;
    const packing::Packing lowest = pack(problem, options);
    if (decisions != nullptr) *decisions += lowest.nodes;
    ASSERT_TRUE(lowest.proven_optimal()) << told(problem);
    ASSERT_EQ(lowest.height(), *least) << told(problem);
    ASSERT_FALSE(packing::find_fault(problem, lowest.offsets));
  }
}

constexpr std::uint64_t kSeeds = 3000;  // each is solved at two capacities and minimized

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

// --- What is driven out lands somewhere, and keys are sorted whatever their width.

namespace {

using Offsets = std::vector<std::uint64_t>;

bool meet(const packing::SectionRange& a, std::uint64_t at, const packing::SectionRange& b,
          std::uint64_t other) {
  return a.first < b.last && b.first < a.last && at < other + b.size && other < at + a.size;
}

bool overlap(const packing::SectionModel& model, const Offsets& offsets, std::uint32_t a, std::uint32_t b) {
  for (const packing::SectionRange& mine : model.ranges_of(a))
    for (const packing::SectionRange& theirs : model.ranges_of(b))
      if (meet(mine, offsets[a], theirs, offsets[b])) return true;
  return false;
}

void expect_sound(const packing::SectionModel& model, const Offsets& offsets, std::uint64_t most) {
  for (std::uint32_t a = 0; a < model.box_count(); ++a) {
    EXPECT_LE(offsets[a] + model.height_of(a), most);
    EXPECT_EQ(offsets[a] % model.alignment_of(a), 0u);
    for (std::uint32_t b = 0; b < a; ++b) EXPECT_FALSE(overlap(model, offsets, a, b)) << a << " and " << b;
    for (const auto& obstacle : model.obstacles)
      for (const packing::SectionRange& range : model.ranges_of(a))
        EXPECT_FALSE(meet(range, offsets[a], obstacle.range, obstacle.offset)) << a;
  }
}

packing::GreedyPacking by_size(const packing::SectionModel& model) {
  packing::ArenaIndex index(model);
  const packing::GreedyRule& rule = packing::greedy_rules().front();
  return packing::pack_in_order(model, index, packing::order_by(model, rule), rule.fit,
                                packing::kHighestPacking);
}

TEST(Ejection, KeepsEveryRuleAndSaysTheTruth) {
  int lowered = 0, refused = 0;
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE(seed);
    const packing::NormalForm form = packing::normal_form(random_problem(kEverything, seed));
    for (const packing::PackingComponent& component : form.components) {
      const packing::GreedyPacking greedy = by_size(component.model);
      for (const std::uint64_t part : {1u, 4u, 8u}) {
        const std::uint64_t target = greedy.height - greedy.height * part / 16;
        Offsets offsets = greedy.offsets;
        if (packing::EjectionSearch(component.model, 1).lower(offsets, target, 200, {})) {
          ++lowered;
          expect_sound(component.model, offsets, target);
        } else {
          ++refused;
          EXPECT_EQ(offsets, greedy.offsets);
        }
      }
    }
  }
  EXPECT_GT(lowered, 50);
  EXPECT_GT(refused, 50);
}

TEST(Ejection, GoesBelowWhatGreedyOrdersLeave) {
  int tried = 0, lowered = 0;
  for (std::uint64_t seed = 0; seed < 10; ++seed) {
    SCOPED_TRACE(seed);
    const packing::NormalForm form = packing::normal_form(guillotine(200, seed));
    for (const packing::PackingComponent& component : form.components) {
      const packing::GreedyPacking greedy = by_size(component.model);
      const std::uint64_t bound = kGuillotineCapacity / component.unit;
      if (component.model.box_count() < 100 || greedy.height < bound + bound / 20) continue;
      Offsets offsets = greedy.offsets;
      const std::uint64_t target = greedy.height - (greedy.height - bound) / 4;
      ++tried;
      if (!packing::EjectionSearch(component.model, 1).lower(offsets, target, 4000, {})) continue;
      ++lowered;
      expect_sound(component.model, offsets, target);
    }
  }
  ASSERT_GE(tried, 4);
  EXPECT_GT(2 * lowered, tried);
}

TEST(Ejection, EndsWhenItIsTold) {
  const packing::NormalForm form = packing::normal_form(guillotine(200, 1));
  const packing::SectionModel& model = form.components.front().model;
  const std::uint64_t bound = kGuillotineCapacity / form.components.front().unit;
  Offsets offsets = by_size(model).offsets;
  packing::StopRule due;
  due.deadline = std::chrono::steady_clock::now();
  EXPECT_FALSE(packing::EjectionSearch(model, 1).lower(offsets, bound, UINT64_MAX, due));
}

TEST(KeyOrder, IsStableForKeysOfAnyWidth) {
  packing::KeyOrder order;
  for (const std::uint64_t most : {1ull, 50ull, 1ull << 40, 1ull << 62, ~0ull})
    for (const std::size_t count : {0u, 1u, 2u, 7u, 64u, 1000u}) {
      packing::MixedSequence random(count + most);
      std::vector<std::uint64_t> keys;
      for (std::size_t i = 0; i < count; ++i) keys.push_back(random.below(most));
      std::vector<std::uint32_t> expected(count);
      std::iota(expected.begin(), expected.end(), 0u);
      std::stable_sort(expected.begin(), expected.end(),
                       [&](std::uint32_t a, std::uint32_t b) { return keys[a] < keys[b]; });
      const auto sorted = order.sort(keys);
      EXPECT_EQ(std::vector<std::uint32_t>(sorted.begin(), sorted.end()), expected) << count << " " << most;
    }
}

}  // namespace

}  // namespace loadline::tests
