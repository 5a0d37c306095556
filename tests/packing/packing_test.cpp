// Packing: bounds, heuristics, files, the validator, published instances.

#include "tests/support/packing.h"

#include "core/packing/greedy.h"
#include "core/packing/pack.h"
#include "core/packing/problem.h"
#include "core/packing/skyline.h"
#include "tests/packing/guillotine.h"
#include "tests/packing/random_problem.h"
#include "tests/support/builders.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <vector>

#include <gtest/gtest.h>

namespace loadline::tests {

using testing::facts_of;

// --- Bounds, heuristics, files, and what must not change an answer.

namespace {

std::uint64_t least_height(const packing::Problem& problem) {
  packing::PackOptions options;
  options.minimize = true;
  const packing::Packing packing = pack(problem, options);
  EXPECT_TRUE(packing.proven_optimal());
  EXPECT_FALSE(packing::find_fault(problem, packing.offsets));
  return packing.height();
}

TEST(Packing, ZeroSlackIsFilledOnOneThreadAndOnTwo) {
  for (const unsigned threads : {1u, 2u})
    for (std::uint64_t seed = 0; seed < 3; ++seed) {
      const packing::Problem problem = guillotine(150, seed);
      packing::PackOptions options;
      options.capacity = {kGuillotineCapacity};
      options.threads = threads;
      const packing::Packing packing = pack(problem, options);
      ASSERT_EQ(packing.verdict, packing::Verdict::feasible);
      EXPECT_TRUE(packing.proven_optimal());
      EXPECT_FALSE(packing::find_fault(problem, packing.offsets, options.capacity));
      EXPECT_EQ(pack(problem, options).offsets, packing.offsets) << "the same seed gives the same packing";
    }
}

TEST(Packing, HeuristicsKeepEveryRule) {
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    const packing::Problem problem = random_problem(kEverything, seed);
    packing::PackOptions options;
    options.effort = packing::Effort::greedy;
    const packing::Packing packing = pack(problem, options);
    const auto fault = packing::find_fault(problem, packing.offsets);
    ASSERT_FALSE(fault) << "seed " << seed << ": " << *fault;
    EXPECT_GE(packing.height(), packing.lower_bound());
    EXPECT_EQ(packing.verdict, packing::Verdict::feasible) << "without a capacity every packing will do";
  }
}

// One after the other, as a load that passes its tensors on. Quadratic time would not come back.
TEST(Packing, VeryManyComponentsAreNoTask) {
  constexpr std::uint64_t kCount = 200'000;
  packing::Problem problem;
  for (std::uint64_t i = 0; i < kCount; ++i)
    problem.buffers.push_back({.lower = 2 * i, .upper = 2 * i + 1, .size = 1 + i % 1000});
  for (const packing::Effort effort :
       {packing::Effort::greedy, packing::Effort::bounded, packing::Effort::full}) {
    packing::PackOptions options;
    options.effort = effort;
    const packing::Packing packing = pack(problem, options);
    EXPECT_EQ(packing.height(), 1000u);
    EXPECT_TRUE(packing.proven_optimal());
  }
}

// What is never alive, or only in a gap, needs no room: for the solver and for who checks it.
TEST(Packing, WhoIsNeverAliveNeedsNoRoom) {
  packing::Problem problem;
  problem.buffers = {{.lower = 0, .upper = 5, .size = 3},
                     {.lower = 4, .upper = 4, .size = 9},
                     {.lower = 1, .upper = 3, .size = 9, .gaps = {{1, 3}}},
                     {.lower = 1, .upper = 3, .size = 9, .offset = 8, .gaps = {{1, 3}}}};
  packing::PackOptions options;
  options.capacity = {3};
  const packing::Packing packing = pack(problem, options);
  EXPECT_EQ(packing.verdict, packing::Verdict::feasible);
  const auto fault = packing::find_fault(problem, packing.offsets, options.capacity);
  EXPECT_FALSE(fault) << *fault;
}

TEST(Packing, ATimeoutIsNoProof) {
  const packing::Problem problem = guillotine(400, 7);
  packing::PackOptions options;
  options.capacity = {kGuillotineCapacity};
  options.seconds = 0;
  const packing::Packing packing = pack(problem, options);
  EXPECT_NE(packing.verdict, packing::Verdict::infeasible);
  options.capacity = {kGuillotineCapacity - 1};
  EXPECT_EQ(pack(problem, options).verdict, packing::Verdict::infeasible) << "the bound alone proves this";
}

TEST(Packing, AnswersDoNotHangOnNamesUnitsOrOrder) {
  const ProblemShape shape = {.buffers = 12, .ticks = 10, .most_size = 6, .gaps = true, .groups = true};
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    const packing::Problem problem = random_problem(shape, seed);
    const std::uint64_t least = least_height(problem);
    packing::Problem later = problem, longer = problem, larger = problem, mixed = problem, more = problem;
    for (packing::Buffer& b : later.buffers) {
      b.lower += 1000, b.upper += 1000;
      for (packing::Lifespan& gap : b.gaps) gap.lower += 1000, gap.upper += 1000;
    }
    for (packing::Buffer& b : longer.buffers) {
      b.lower *= 7, b.upper *= 7;
      for (packing::Lifespan& gap : b.gaps) gap.lower *= 7, gap.upper *= 7;
    }
    for (packing::Buffer& b : larger.buffers) b.size *= 4096;
    std::reverse(mixed.buffers.begin(), mixed.buffers.end());
    ASSERT_EQ(least_height(later), least);
    ASSERT_EQ(least_height(longer), least);
    ASSERT_EQ(least_height(larger), least * 4096);
    ASSERT_EQ(least_height(mixed), least);
    // what lives when nobody else does is no higher than the rest
    more.buffers.push_back({.lower = 5000, .upper = 5001, .size = std::min<std::uint64_t>(least, 3)});
    ASSERT_EQ(least_height(more), least);
  }
}

TEST(Packing, SizesNearTheLimitDoNotWrap) {
  constexpr std::uint64_t kHuge = (std::uint64_t{1} << 61) - 3;
  packing::Problem problem;
  problem.buffers = {{.lower = 0, .upper = 2, .size = kHuge},
                     {.lower = 1, .upper = 3, .size = kHuge},
                     {.lower = 2, .upper = 4, .size = kHuge - 1}};
  EXPECT_EQ(least_height(problem), 2 * kHuge);
  packing::PackOptions options;
  options.capacity = {2 * kHuge - 1};
  EXPECT_EQ(pack(problem, options).verdict, packing::Verdict::infeasible);
  problem.buffers.push_back({.lower = 1, .upper = 2, .size = kHuge});
  EXPECT_EQ(facts_of([&] { pack(problem, {}); }), "limit 2^62");
  problem.buffers = {{.lower = 0, .upper = 1, .size = UINT64_MAX}};
  EXPECT_EQ(facts_of([&] { pack(problem, {}); }), "limit '0' 18446744073709551615 2^62");
}

TEST(Packing, ArenasAreApart) {
  packing::Problem problem;
  problem.buffers = {{.lower = 0, .upper = 2, .size = 10},
                     {.lower = 0, .upper = 2, .size = 10, .arena = 1},
                     {.lower = 1, .upper = 2, .size = 5, .arena = 1}};
  packing::PackOptions options;
  options.capacity = {10, 14};
  const packing::Packing packing = pack(problem, options);
  EXPECT_EQ(packing.verdict, packing::Verdict::infeasible);
  ASSERT_EQ(packing.arenas.size(), 2u);
  EXPECT_EQ(packing.arenas[0].height, 10u);
  EXPECT_EQ(packing.arenas[1].lower_bound, 15u);
  EXPECT_EQ(packing.arenas[1].bound_ticks, (packing::Lifespan{1, 2}));
  options.capacity = {10, 15};
  EXPECT_EQ(pack(problem, options).verdict, packing::Verdict::feasible);
}

TEST(Packing, NothingAndNothingAlive) {
  const packing::Packing none = pack({}, {});
  EXPECT_EQ(none.verdict, packing::Verdict::feasible);
  EXPECT_EQ(none.height(), 0u);
  EXPECT_TRUE(none.proven_optimal());
  packing::Problem problem;
  problem.buffers = {{.lower = 3, .upper = 3, .size = 7},
                     {.lower = 0, .upper = 4, .size = 0},
                     {.lower = 1, .upper = 3, .size = 2, .gaps = {{1, 3}}}};
  const packing::Packing empty = pack(problem, {});
  EXPECT_EQ(empty.height(), 0u);
  EXPECT_FALSE(packing::find_fault(problem, empty.offsets));
}

TEST(Packing, PinsThatOverlapAreRefused) {
  packing::Problem problem;
  problem.ids = {"first", "second"};
  problem.buffers = {{.lower = 0, .upper = 4, .size = 8, .offset = 0},
                     {.lower = 3, .upper = 5, .size = 8, .offset = 7}};
  EXPECT_EQ(facts_of([&] { pack(problem, {}); }), "malformed 'first' 'second' 0 7");
  problem.buffers[1].lower = 4;
  EXPECT_EQ(pack(problem, {}).height(), 15u);
}

TEST(Packing, PinsAreRefusedExactlyWhereTheyOverlap) {
  packing::MixedSequence random(11);
  int refused = 0, taken = 0;
  for (int round = 0; round < 2000; ++round) {
    packing::Problem problem;
    std::vector<std::uint64_t> offsets;
    for (std::uint64_t i = 0; i < 2 + random.below(5); ++i) {
      const std::uint64_t lower = random.below(12), size = random.below(6);
      packing::Buffer buffer = {.lower = lower, .upper = lower + 1 + random.below(8), .size = size};
      buffer.offset = random.below(20);
      if (buffer.upper - lower > 2 && random.below(3) == 0) buffer.gaps = {{lower + 1, buffer.upper - 1}};
      if (random.below(4) == 0 && i > 0) {
        buffer.group = 1;
        for (const packing::Buffer& other : problem.buffers)
          if (other.group == 1) buffer.offset = other.offset;
      }
      offsets.push_back(*buffer.offset);
      problem.buffers.push_back(buffer);
    }
    const auto fault = packing::find_fault(problem, offsets);
    const std::string text = facts_of([&] { pack(problem, {}); });
    EXPECT_EQ(fault.has_value(), !text.empty()) << round << ": " << (fault ? *fault : text);
    ++(fault ? refused : taken);
  }
  EXPECT_GT(refused, 300);
  EXPECT_GT(taken, 300);
}

TEST(Packing, ManyPinsAreNoTrouble) {
  packing::Problem problem;
  for (std::uint64_t i = 0; i < 50'000; ++i)
    problem.buffers.push_back({.lower = 0, .upper = 1 + i % 7, .size = 3, .offset = 4 * i});
  problem.buffers.push_back({.lower = 0, .upper = 1, .size = 2});
  packing::PackOptions options;
  options.effort = packing::Effort::greedy;
  const packing::Packing packing = pack(problem, options);
  EXPECT_EQ(packing.offsets.back(), 200'000u - 1) << "the gaps are a byte each";
}

// Eight units suffice for every sum, but search proves soon that nine are needed.
packing::Problem needs_nine(std::uint64_t unit) {
  constexpr struct {
    std::uint64_t lower, upper, units;
  } kRows[] = {{11, 12, 1}, {11, 12, 4}, {5, 9, 1},  {1, 4, 4},  {4, 6, 3},
               {2, 9, 2},   {4, 5, 3},   {5, 11, 2}, {8, 10, 2}, {9, 11, 4}};
  packing::Problem problem;
  for (const auto& [lower, upper, units] : kRows)
    problem.buffers.push_back({.lower = lower, .upper = upper, .size = units * unit});
  return problem;
}

TEST(Packing, OneHardPartDoesNotKeepAnotherFromItsProof) {
  // too large for exact search and without a byte to spare: only time ends it
  packing::Problem problem = guillotine(5000, 3);
  packing::PackOptions options;
  options.capacity = {kGuillotineCapacity, kGuillotineCapacity};
  options.seconds = 0.1;
  EXPECT_EQ(pack(problem, options).verdict, packing::Verdict::undecided);
  options.seconds = 300;  // it takes one; sanitizers take their time
  const std::size_t cut = problem.buffers.size();
  std::uint64_t end = 0;
  for (const packing::Buffer& b : problem.buffers) end = std::max(end, b.upper);
  for (const std::uint32_t arena : {0u, 1u}) {
    problem.buffers.resize(cut);
    for (packing::Buffer b : needs_nine(kGuillotineCapacity / 8).buffers) {
      b.lower += end + 1, b.upper += end + 1;
      b.arena = arena;
      problem.buffers.push_back(b);
    }
    EXPECT_EQ(pack(problem, options).verdict, packing::Verdict::infeasible) << "arena " << arena;
  }
}

TEST(Packing, TheBoundIsWhereItSays) {
  packing::Problem problem = needs_nine(1);
  problem.buffers.resize(2);
  EXPECT_EQ(pack(problem, {}).arenas[0].bound_ticks, (packing::Lifespan{11, 12}));
  problem.buffers.push_back({.lower = 2, .upper = 4, .size = 10, .offset = 100});
  EXPECT_EQ(pack(problem, {}).arenas[0].lower_bound, 110u);
  EXPECT_EQ(pack(problem, {}).arenas[0].bound_ticks, (packing::Lifespan{2, 4}));
  const packing::Packing proved = pack(needs_nine(1), {});
  EXPECT_EQ(proved.lower_bound(), 9u);
  EXPECT_EQ(proved.arenas[0].bound_ticks, packing::Lifespan{}) << "no section needs nine";
}

TEST(Packing, UnitsDoNotCarryPastTheLimit) {
  constexpr std::uint64_t kSize = std::uint64_t{1} << 50, kAlignment = std::uint64_t{1} << 60;
  packing::Problem problem;
  for (int i = 0; i < 4; ++i)
    problem.buffers.push_back({.lower = 0, .upper = 1, .size = kSize, .alignment = kAlignment});
  EXPECT_EQ(least_height(problem), 3 * kAlignment + kSize);
  while (problem.buffers.size() < 20) {
    problem.buffers.push_back(problem.buffers.front());
    packing::PackOptions options;
    options.seconds = 0.1;
    const packing::Packing packing = pack(problem, options);
    EXPECT_EQ(packing.verdict, packing::Verdict::undecided) << problem.buffers.size();
    EXPECT_TRUE(packing.offsets.empty());
    options.capacity = {UINT64_MAX};
    EXPECT_NE(pack(problem, options).verdict, packing::Verdict::feasible);
  }
}

TEST(Packing, WhatIsQuickIsThereHoweverShortTheTime) {
  packing::PackOptions options;
  options.seconds = 0;
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    const packing::Problem problem = random_problem(kEverything, seed);
    const packing::Packing packing = pack(problem, options);
    EXPECT_EQ(packing.algorithm, packing.height() == 0 ? "" : "best fit in the order of time");
    EXPECT_FALSE(packing::find_fault(problem, packing.offsets));
  }
}

TEST(Packing, WhereNothingCanBePackedNothingIsClaimed) {
  constexpr std::uint64_t kHuge = std::uint64_t{1} << 61;
  packing::Problem problem;
  // no two of them at once, but each at a multiple of its own prime power
  problem.buffers = {{.lower = 0, .upper = 2, .size = kHuge / 2, .alignment = kHuge - 1},
                     {.lower = 1, .upper = 3, .size = kHuge / 2, .alignment = kHuge - 3},
                     {.lower = 1, .upper = 2, .size = kHuge / 2, .alignment = kHuge - 5},
                     {.lower = 1, .upper = 2, .size = kHuge / 4, .alignment = kHuge - 7}};
  packing::PackOptions options;
  options.seconds = 0.1;
  const packing::Packing packing = pack(problem, options);
  EXPECT_EQ(packing.height(), packing::ArenaPacking::kNotPacked);
  EXPECT_EQ(packing.verdict, packing::Verdict::undecided);
  EXPECT_TRUE(packing.offsets.empty());
}

TEST(SectionStack, NarrowAndWideAgreeWithSorting) {
  packing::MixedSequence random(3);
  for (int round = 0; round < 500; ++round) {
    const std::size_t count = 1 + random.below(90), boxes = 200;
    std::vector<std::int32_t> starts(boxes), sizes(count + packing::kStackPadding, 77),
        scratch(count + packing::kStackPadding);
    std::vector<std::uint32_t> ids(count + packing::kStackPadding, 199);
    for (auto& start : starts) start = static_cast<std::int32_t>(random.below(40));
    std::vector<std::pair<std::int64_t, std::int64_t>> parts;
    for (std::size_t i = 0; i < count; ++i) {
      ids[i] = static_cast<std::uint32_t>(random.below(boxes));
      sizes[i] = static_cast<std::int32_t>(1 + random.below(9));
      parts.emplace_back(starts[ids[i]], sizes[i]);
    }
    std::sort(parts.begin(), parts.end());
    std::int64_t top = 0, total = 0;
    for (const auto& [start, size] : parts) top = std::max(top, start) + size, total += size;
    const auto narrow =
        packing::stack_section(starts.data(), ids.data(), sizes.data(), count, scratch.data());
    const std::vector<std::int64_t> starts64(starts.begin(), starts.end()),
        sizes64(sizes.begin(), sizes.end());
    std::vector<std::int64_t> scratch64(scratch.size());
    const auto wide =
        packing::stack_section(starts64.data(), ids.data(), sizes64.data(), count, scratch64.data());
    ASSERT_EQ(narrow.top, top);
    ASSERT_EQ(narrow.total, total);
    ASSERT_EQ(narrow.floor, parts.front().first);
    ASSERT_EQ(narrow.on_floor, std::count_if(parts.begin(), parts.end(), [&](const auto& part) {
                return part.first == parts.front().first;
              }));
    ASSERT_EQ(wide.top, narrow.top);
    ASSERT_EQ(wide.total, narrow.total);
    ASSERT_EQ(wide.floor, narrow.floor);
    ASSERT_EQ(wide.on_floor, narrow.on_floor);
  }
}

TEST(PackingCsv, ReadsWhatItWritesAndSaysWhereItCannot) {
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    const packing::Problem problem = random_problem(kEverything, seed);
    const packing::Packing packing = pack(problem, {.seconds = 0.0});
    const packing::Problem back =
        packing::read_packing_csv(packing::packing_csv(problem, packing.offsets), "out.csv");
    ASSERT_EQ(back.buffers.size(), problem.buffers.size());
    for (std::size_t i = 0; i < back.buffers.size(); ++i) {
      EXPECT_EQ(back.buffers[i].lower, problem.buffers[i].lower);
      EXPECT_EQ(back.buffers[i].upper, problem.buffers[i].upper);
      EXPECT_EQ(back.buffers[i].size, problem.buffers[i].size);
      EXPECT_EQ(back.buffers[i].alignment, problem.buffers[i].alignment);
      EXPECT_EQ(back.buffers[i].gaps, problem.buffers[i].gaps);
      EXPECT_EQ(back.buffers[i].offset, packing.offsets[i]);
    }
  }
  const packing::Problem quoted =
      packing::read_packing_csv("start,size,end,id,hint\r\n1,8,3,\"a, \"\"b\"\"\",9\r\n\r\n", "x");
  ASSERT_EQ(quoted.buffers.size(), 1u);
  EXPECT_EQ(quoted.ids[0], "a, \"b\"");
  EXPECT_EQ(quoted.buffers[0].upper, 3u);
}

struct BadCsv {
  const char* text;
  const char* facts;
};
constexpr BadCsv kBadCsv[] = {
    {"", "malformed bad.csv 0"},
    {"lower,upper\n", "malformed bad.csv 1 'size'"},
    {"lower,upper,size,size\n", "malformed bad.csv 1 'size'"},
    {"lower,upper,size,color\n", "malformed bad.csv 1 'color'"},
    {"lower,upper,size\n1,2\n", "malformed bad.csv 2 2 3"},
    {"lower,upper,size\n1,2,-3\n", "malformed bad.csv 2 '-3' 2^64"},
    {"lower,upper,size\n1,2,18446744073709551616\n", "malformed bad.csv 2 '18446744073709551616' 2^64"},
    {"lower,upper,size\n\n1,2,x\x1b[31m\n", "malformed bad.csv 3 'x\\x1b[31m' 2^64"},
    {"lower,upper,size,id\n1,2,3,\"abc\n", "malformed bad.csv 2"},
    {"lower,upper,size,gaps\n1,9,3,2-3 5\n", "malformed bad.csv 2 '5'"},
    {"lower,upper,size,arena\n1,9,3,4000000000\n", "limit bad.csv 2 4000000000 63"},
};

TEST(PackingCsv, HostileFiles) {
  for (const BadCsv& bad : kBadCsv) {
    const std::string said = facts_of([&] { packing::read_packing_csv(bad.text, "bad.csv"); });
    EXPECT_EQ(said, bad.facts) << bad.text;
  }
}

TEST(PackingCsv, HostileProblems) {
  const BadCsv cases[] = {
      {"lower,upper,size\n5,2,3\n", "malformed '0' 5 2"},
      {"lower,upper,size,alignment\n1,2,3,0\n", "malformed '0' 0"},
      {"lower,upper,size,alignment,offset\n1,2,3,8,4\n", "malformed '0' 4 8"},
      {"lower,upper,size,offset\n1,2,3,18446744073709551615\n", "malformed '0' 18446744073709551615 3 2^62"},
      {"lower,upper,size,gaps\n1,9,3,2-12\n", "malformed '0' 2-12 1-9"},
      {"lower,upper,size,gaps\n1,9,3,4-5 2-3\n", "malformed '0' 2-3 5-9"},
      {"lower,upper,size,group,offset\n1,9,3,a,0\n1,9,3,a,8\n", "malformed '1' '0'"},
      {"lower,upper,size,group,arena\n1,9,3,a,0\n1,9,3,a,1\n", "malformed '1' 1 '0' 0"},
  };
  for (const BadCsv& bad : cases) {
    const std::string said = facts_of([&] { pack(packing::read_packing_csv(bad.text, "bad.csv"), {}); });
    EXPECT_EQ(said, bad.facts) << bad.text;
  }
}

}  // namespace

// --- Files of buffers that would take more memory than they may.

namespace {

std::string csv_fault(const std::string& text) {
  return facts_of([&] { packing::read_packing_csv(text, "bad.csv"); });
}

// A quote that is not closed stands behind the first field too many: whoever reads on complains of that.
TEST(PackingCsv, NothingIsReadBehindTheFirstFieldTooMany) {
  EXPECT_EQ(csv_fault("lower,upper,size\n1,2,3\n1,2,3,,,,\"\n"), "malformed bad.csv 3 3 3");
  std::string header = "lower,upper,size";
  for (int i = 0; i < 61; ++i) header += ",hint";
  EXPECT_EQ(csv_fault(header + "\n"), "");
  EXPECT_EQ(csv_fault(header + ",hint,\"\n"), "limit bad.csv 1 64");
}

TEST(PackingCsv, TheLastArenaIsTheLimits) {
  const auto row = [](std::uint32_t arena) {
    return "lower,upper,size,arena\n0,1,1," + std::to_string(arena) + "\n";
  };
  EXPECT_EQ(csv_fault(row(packing::kMostPackingArenas - 1)), "");
  EXPECT_EQ(csv_fault(row(packing::kMostPackingArenas)), "limit bad.csv 2 64 63");
}

}  // namespace

// --- The validator itself: against every pair of buffers, and against answers that were made wrong.

namespace {

// Whether two buffers of a group lie apart or two others share a byte: pair by pair.
bool any_pair_clashes(const packing::Problem& problem, const std::vector<std::uint64_t>& offsets) {
  for (std::size_t i = 0; i < offsets.size(); ++i)
    for (std::size_t j = 0; j < i; ++j) {
      const packing::Buffer &a = problem.buffers[i], &b = problem.buffers[j];
      if (a.group != packing::kNoGroup && a.group == b.group) {
        if (offsets[i] != offsets[j]) return true;
        continue;
      }
      if (a.arena != b.arena || a.size == 0 || b.size == 0) continue;
      if (offsets[i] + a.size <= offsets[j] || offsets[j] + b.size <= offsets[i]) continue;
      if (packing::alive_together(a, b)) return true;
    }
  return false;
}

// Offsets that keep alignments and pins, and mostly groups, and clash about as often as not.
std::vector<std::uint64_t> random_offsets(const packing::Problem& problem, packing::MixedSequence& random) {
  std::vector<std::uint64_t> offsets;
  for (const packing::Buffer& buffer : problem.buffers)
    offsets.push_back(buffer.offset.value_or(random.below(30) * buffer.alignment));
  if (random.below(4) == 0) return offsets;
  for (std::size_t i = 0; i < offsets.size(); ++i)
    for (std::size_t j = 0; j < i; ++j)
      if (problem.buffers[i].group != packing::kNoGroup &&
          problem.buffers[i].group == problem.buffers[j].group)
        offsets[i] = offsets[j];
  return offsets;
}

TEST(Validator, TheSweepAgreesWithEveryPair) {
  packing::MixedSequence random(5);
  int clashes = 0, sound = 0;
  for (std::uint64_t seed = 0; seed < 4000; ++seed) {
    const ProblemShape shape = {.buffers = 6,
                                .ticks = 12,
                                .gaps = true,
                                .groups = seed % 2 == 0,
                                .arenas = 1 + static_cast<std::uint32_t>(seed % 3)};
    packing::Problem problem = random_problem(shape, seed);
    if (seed % 5 == 0) problem.buffers.front().size = 0;
    const auto offsets = random_offsets(problem, random);
    const auto fault = packing::find_fault(problem, offsets);
    ASSERT_EQ(fault.has_value(), any_pair_clashes(problem, offsets))
        << "seed " << seed << ": " << fault.value_or("no fault");
    ++(fault ? clashes : sound);
  }
  EXPECT_GT(clashes, 500);
  EXPECT_GT(sound, 1000);
}

TEST(Validator, NamesTheTwoThatShareBytes) {
  packing::Problem problem;
  problem.buffers = {{.lower = 0, .upper = 4, .size = 8}, {.lower = 3, .upper = 5, .size = 8}};
  EXPECT_EQ(packing::find_fault(problem, std::vector<std::uint64_t>{0, 7}),
            "buffers 0 at 0 and 1 at 7 share bytes");
  EXPECT_EQ(packing::find_fault(problem, std::vector<std::uint64_t>{7, 0}),
            "buffers 0 at 7 and 1 at 0 share bytes");
  EXPECT_EQ(packing::find_fault(problem, std::vector<std::uint64_t>{0, 8}), std::nullopt);
  problem.buffers[1].lower = 4;  // the first has ended
  EXPECT_EQ(packing::find_fault(problem, std::vector<std::uint64_t>{0, 7}), std::nullopt);
}

TEST(Validator, RefusesEveryKindOfWrongAnswer) {
  packing::Problem problem;
  problem.buffers = {{.lower = 0, .upper = 4, .size = 8, .alignment = 4},
                     {.lower = 2, .upper = 6, .size = 4, .alignment = 4}};
  const packing::Packing right = pack(problem, {});
  const std::vector<std::optional<std::uint64_t>> capacity = {right.height()};
  ASSERT_EQ(packing::packing_fault(problem, right, capacity), std::nullopt);
  struct Row {
    const char* expected;
    std::function<void(packing::Packing&)> change;
  };
  const Row rows[] = {{"1 offsets for 2 buffers", [](packing::Packing& p) { p.offsets.pop_back(); }},
                      {"0 arenas of 1", [](packing::Packing& p) { p.arenas.clear(); }},
                      {"buffer 0 at 1, not a multiple of 4",
                       [](packing::Packing& p) {
                         p.offsets = {1, 12};
                       }},
                      {"buffers 0 at 0 and 1 at 4 share bytes",
                       [](packing::Packing& p) {
                         p.offsets = {0, 4};
                       }},
                      {"arena 0 has height 12, its highest end is 16",
                       [](packing::Packing& p) {
                         p.offsets = {8, 0};
                       }},
                      {"arena 0 has height 12, below its bound 13",
                       [](packing::Packing& p) { p.arenas[0].lower_bound = 13; }},
                      {"arena 0 is called optimal at 12 with bound 11",
                       [](packing::Packing& p) { p.arenas[0].lower_bound = 11; }},
                      {"called feasible, but not packed",
                       [](packing::Packing& p) { p.arenas[0].height = packing::ArenaPacking::kNotPacked; }}};
  for (const Row& row : rows) {
    packing::Packing wrong = right;
    row.change(wrong);
    EXPECT_EQ(packing::packing_fault(problem, wrong, capacity), row.expected);
  }
  const std::vector<std::optional<std::uint64_t>> less = {right.height() - 1};
  EXPECT_EQ(packing::packing_fault(problem, right, less), "arena 0 is called feasible at 12, past 11");
}

TEST(Validator, TakesABigProblemInTime) {
  // every buffer is alive with all others: pair by pair these would be 2 * 10^10 comparisons
  constexpr std::size_t kCount = 200'000;
  packing::Problem problem;
  problem.buffers.assign(kCount, {.lower = 0, .upper = 2, .size = 1});
  std::vector<std::uint64_t> offsets(kCount);
  for (std::size_t i = 0; i < kCount; ++i) offsets[i] = kCount - i;
  EXPECT_EQ(packing::find_fault(problem, offsets), std::nullopt);
  offsets.back() = 1000;
  EXPECT_EQ(packing::find_fault(problem, offsets), "buffers 199000 at 1000 and 199999 at 1000 share bytes");
}

}  // namespace

// --- The published hard instances, of tests/packing/data.

namespace {

const std::filesystem::path kFolder = LOADLINE_PACKING_DATA;

packing::Problem problem_in(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  EXPECT_TRUE(in) << "cannot open " << path;
  return packing::read_packing_csv(std::string(std::istreambuf_iterator<char>(in), {}), path.string());
}

TEST(PublishedPackings, AllElevenOfMiniMallocAreSolved) {
  constexpr std::uint64_t kCapacity = 1048576;
  for (const char name : std::string("ABCDEFGHIJK")) {
    const packing::Problem problem =
        problem_in(kFolder / "minimalloc" / (std::string(1, name) + ".1048576.csv"));
    packing::PackOptions options;
    options.capacity = {kCapacity};
    const packing::Packing packing = pack(problem, options);
    EXPECT_EQ(packing.verdict, packing::Verdict::feasible) << name;
    EXPECT_FALSE(packing::find_fault(problem, packing.offsets, options.capacity)) << name;
  }
}

TEST(PublishedPackings, LowerBoundsAreAttained) {
  struct Row {
    const char* file;
    std::uint64_t bytes;
  };
  constexpr Row kRows[] = {{"minimalloc/input.12.csv", 12},
                           {"minimalloc/C.1048576.csv", 1039360},
                           {"idealloc/G_1.csv", 3030937746},
                           {"idealloc/resnet50.csv", 1515472556}};
  for (const Row& row : kRows) {
    const packing::Problem problem = problem_in(kFolder / row.file);
    packing::PackOptions options;
    options.minimize = true;
    const packing::Packing packing = pack(problem, options);
    EXPECT_TRUE(packing.proven_optimal()) << row.file;
    EXPECT_EQ(packing.height(), row.bytes) << row.file;
    EXPECT_FALSE(packing::find_fault(problem, packing.offsets)) << row.file;
  }
}

}  // namespace

}  // namespace loadline::tests
