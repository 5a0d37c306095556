// The validator itself: against every pair of buffers, and against answers that were made wrong.
#include "core/packing/pack.h"
#include "core/packing/search_control.h"
#include "tests/packing/random_problem.h"
#include "tests/support/packing.h"

#include <functional>

#include <gtest/gtest.h>

namespace loadline {
namespace {

// Whether two buffers of a group lie apart or two others share a byte: pair by pair.
bool any_pair_clashes(const Problem& problem, const std::vector<std::uint64_t>& offsets) {
  for (std::size_t i = 0; i < offsets.size(); ++i)
    for (std::size_t j = 0; j < i; ++j) {
      const Buffer &a = problem.buffers[i], &b = problem.buffers[j];
      if (a.group != kNoGroup && a.group == b.group) {
        if (offsets[i] != offsets[j]) return true;
        continue;
      }
      if (a.arena != b.arena || a.size == 0 || b.size == 0) continue;
      if (offsets[i] + a.size <= offsets[j] || offsets[j] + b.size <= offsets[i]) continue;
      if (alive_together(a, b)) return true;
    }
  return false;
}

// Offsets that keep alignments and pins, and mostly groups, and clash about as often as not.
std::vector<std::uint64_t> random_offsets(const Problem& problem, MixedSequence& random) {
  std::vector<std::uint64_t> offsets;
  for (const Buffer& buffer : problem.buffers)
    offsets.push_back(buffer.offset.value_or(random.below(30) * buffer.alignment));
  if (random.below(4) == 0) return offsets;
  for (std::size_t i = 0; i < offsets.size(); ++i)
    for (std::size_t j = 0; j < i; ++j)
      if (problem.buffers[i].group != kNoGroup && problem.buffers[i].group == problem.buffers[j].group)
        offsets[i] = offsets[j];
  return offsets;
}

TEST(Validator, TheSweepAgreesWithEveryPair) {
  MixedSequence random(5);
  int clashes = 0, sound = 0;
  for (std::uint64_t seed = 0; seed < 4000; ++seed) {
    const ProblemShape shape = {.buffers = 6,
                                .ticks = 12,
                                .gaps = true,
                                .groups = seed % 2 == 0,
                                .arenas = 1 + static_cast<std::uint32_t>(seed % 3)};
    Problem problem = random_problem(shape, seed);
    if (seed % 5 == 0) problem.buffers.front().size = 0;
    const auto offsets = random_offsets(problem, random);
    const auto fault = find_fault(problem, offsets);
    ASSERT_EQ(fault.has_value(), any_pair_clashes(problem, offsets))
        << "seed " << seed << ": " << fault.value_or("no fault");
    ++(fault ? clashes : sound);
  }
  EXPECT_GT(clashes, 500);
  EXPECT_GT(sound, 1000);
}

TEST(Validator, NamesTheTwoThatShareBytes) {
  Problem problem;
  problem.buffers = {{.lower = 0, .upper = 4, .size = 8}, {.lower = 3, .upper = 5, .size = 8}};
  EXPECT_EQ(find_fault(problem, std::vector<std::uint64_t>{0, 7}), "buffers 0 at 0 and 1 at 7 share bytes");
  EXPECT_EQ(find_fault(problem, std::vector<std::uint64_t>{7, 0}), "buffers 0 at 7 and 1 at 0 share bytes");
  EXPECT_EQ(find_fault(problem, std::vector<std::uint64_t>{0, 8}), std::nullopt);
  problem.buffers[1].lower = 4;  // the first has ended
  EXPECT_EQ(find_fault(problem, std::vector<std::uint64_t>{0, 7}), std::nullopt);
}

TEST(Validator, RefusesEveryKindOfWrongAnswer) {
  Problem problem;
  problem.buffers = {{.lower = 0, .upper = 4, .size = 8, .alignment = 4},
                     {.lower = 2, .upper = 6, .size = 4, .alignment = 4}};
  const Packing right = pack(problem, {});
  const std::vector<std::optional<std::uint64_t>> capacity = {right.height()};
  ASSERT_EQ(packing_fault(problem, right, capacity), std::nullopt);
  struct Row {
    const char* expected;
    std::function<void(Packing&)> change;
  };
  const Row rows[] = {
      {"1 offsets for 2 buffers", [](Packing& p) { p.offsets.pop_back(); }},
      {"0 arenas of 1", [](Packing& p) { p.arenas.clear(); }},
      {"buffer 0 at 1, not a multiple of 4",
       [](Packing& p) {
         p.offsets = {1, 12};
       }},
      {"buffers 0 at 0 and 1 at 4 share bytes",
       [](Packing& p) {
         p.offsets = {0, 4};
       }},
      {"arena 0 has height 12, its highest end is 16",
       [](Packing& p) {
         p.offsets = {8, 0};
       }},
      {"arena 0 has height 12, below its bound 13", [](Packing& p) { p.arenas[0].lower_bound = 13; }},
      {"arena 0 is called optimal at 12 with bound 11", [](Packing& p) { p.arenas[0].lower_bound = 11; }},
      {"called feasible, but not packed", [](Packing& p) { p.arenas[0].height = ArenaPacking::kNotPacked; }}};
  for (const Row& row : rows) {
    Packing wrong = right;
    row.change(wrong);
    EXPECT_EQ(packing_fault(problem, wrong, capacity), row.expected);
  }
  const std::vector<std::optional<std::uint64_t>> less = {right.height() - 1};
  EXPECT_EQ(packing_fault(problem, right, less), "arena 0 is called feasible at 12, past 11");
}

TEST(Validator, TakesABigProblemInTime) {
  // every buffer is alive with all others: pair by pair these would be 2 * 10^10 comparisons
  constexpr std::size_t kCount = 200'000;
  Problem problem;
  problem.buffers.assign(kCount, {.lower = 0, .upper = 2, .size = 1});
  std::vector<std::uint64_t> offsets(kCount);
  for (std::size_t i = 0; i < kCount; ++i) offsets[i] = kCount - i;
  EXPECT_EQ(find_fault(problem, offsets), std::nullopt);
  offsets.back() = 1000;
  EXPECT_EQ(find_fault(problem, offsets), "buffers 199000 at 1000 and 199999 at 1000 share bytes");
}

}  // namespace
}  // namespace loadline
