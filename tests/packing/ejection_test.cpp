// What is driven out lands somewhere, and keys are sorted whatever their width.
#include "core/packing/ejection.h"

#include "core/packing/greedy.h"
#include "core/packing/normal_form.h"
#include "core/packing/search_control.h"
#include "tests/packing/guillotine.h"
#include "tests/packing/random_problem.h"

#include <algorithm>
#include <numeric>
#include <vector>

#include <gtest/gtest.h>

namespace loadline {
namespace {

using Offsets = std::vector<std::uint64_t>;

bool meet(const SectionRange& a, std::uint64_t at, const SectionRange& b, std::uint64_t other) {
  return a.first < b.last && b.first < a.last && at < other + b.size && other < at + a.size;
}

bool overlap(const SectionModel& model, const Offsets& offsets, std::uint32_t a, std::uint32_t b) {
  for (const SectionRange& mine : model.ranges_of(a))
    for (const SectionRange& theirs : model.ranges_of(b))
      if (meet(mine, offsets[a], theirs, offsets[b])) return true;
  return false;
}

void expect_sound(const SectionModel& model, const Offsets& offsets, std::uint64_t most) {
  for (std::uint32_t a = 0; a < model.box_count(); ++a) {
    EXPECT_LE(offsets[a] + model.height_of(a), most);
    EXPECT_EQ(offsets[a] % model.alignment_of(a), 0u);
    for (std::uint32_t b = 0; b < a; ++b) EXPECT_FALSE(overlap(model, offsets, a, b)) << a << " and " << b;
    for (const auto& obstacle : model.obstacles)
      for (const SectionRange& range : model.ranges_of(a))
        EXPECT_FALSE(meet(range, offsets[a], obstacle.range, obstacle.offset)) << a;
  }
}

GreedyPacking by_size(const SectionModel& model) {
  ArenaIndex index(model);
  const GreedyRule& rule = greedy_rules().front();
  return pack_in_order(model, index, order_by(model, rule), rule.fit, kHighestPacking);
}

TEST(Ejection, KeepsEveryRuleAndSaysTheTruth) {
  int lowered = 0, refused = 0;
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE(seed);
    const NormalForm form = normal_form(random_problem(kEverything, seed));
    for (const PackingComponent& component : form.components) {
      const GreedyPacking greedy = by_size(component.model);
      for (const std::uint64_t part : {1u, 4u, 8u}) {
        const std::uint64_t target = greedy.height - greedy.height * part / 16;
        Offsets offsets = greedy.offsets;
        if (EjectionSearch(component.model, 1).lower(offsets, target, 200, {})) {
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
    const NormalForm form = normal_form(guillotine(200, seed));
    for (const PackingComponent& component : form.components) {
      const GreedyPacking greedy = by_size(component.model);
      const std::uint64_t bound = kGuillotineCapacity / component.unit;
      if (component.model.box_count() < 100 || greedy.height < bound + bound / 20) continue;
      Offsets offsets = greedy.offsets;
      const std::uint64_t target = greedy.height - (greedy.height - bound) / 4;
      ++tried;
      if (!EjectionSearch(component.model, 1).lower(offsets, target, 4000, {})) continue;
      ++lowered;
      expect_sound(component.model, offsets, target);
    }
  }
  ASSERT_GE(tried, 4);
  EXPECT_GT(2 * lowered, tried);
}

TEST(Ejection, EndsWhenItIsTold) {
  const NormalForm form = normal_form(guillotine(200, 1));
  const SectionModel& model = form.components.front().model;
  const std::uint64_t bound = kGuillotineCapacity / form.components.front().unit;
  Offsets offsets = by_size(model).offsets;
  StopRule due;
  due.deadline = std::chrono::steady_clock::now();
  EXPECT_FALSE(EjectionSearch(model, 1).lower(offsets, bound, UINT64_MAX, due));
}

TEST(KeyOrder, IsStableForKeysOfAnyWidth) {
  KeyOrder order;
  for (const std::uint64_t most : {1ull, 50ull, 1ull << 40, 1ull << 62, ~0ull})
    for (const std::size_t count : {0u, 1u, 2u, 7u, 64u, 1000u}) {
      MixedSequence random(count + most);
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
}  // namespace loadline
