// Bounds, heuristics, files, and what must not change an answer.
#include "tests/support/packing.h"

#include "core/base/error.h"
#include "core/packing/pack.h"
#include "core/packing/problem.h"
#include "core/packing/search_control.h"
#include "core/packing/skyline.h"
#include "tests/packing/guillotine.h"
#include "tests/packing/random_problem.h"

#include <algorithm>
#include <functional>

#include <gtest/gtest.h>

namespace loadline {
namespace {

std::string refusal(const std::function<void()>& act) {
  try {
    act();
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

std::uint64_t least_height(const Problem& problem) {
  PackOptions options;
  options.minimize = true;
  const Packing packing = pack(problem, options);
  EXPECT_TRUE(packing.proven_optimal());
  EXPECT_FALSE(find_fault(problem, packing.offsets));
  return packing.height();
}

TEST(Packing, ZeroSlackIsFilledOnOneThreadAndOnTwo) {
  for (const unsigned threads : {1u, 2u})
    for (std::uint64_t seed = 0; seed < 3; ++seed) {
      const Problem problem = guillotine(150, seed);
      PackOptions options;
      options.capacity = {kGuillotineCapacity};
      options.threads = threads;
      const Packing packing = pack(problem, options);
      ASSERT_EQ(packing.verdict, Verdict::feasible);
      EXPECT_TRUE(packing.proven_optimal());
      EXPECT_FALSE(find_fault(problem, packing.offsets, options.capacity));
      EXPECT_EQ(pack(problem, options).offsets, packing.offsets) << "the same seed gives the same packing";
    }
}

TEST(Packing, HeuristicsKeepEveryRule) {
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    const Problem problem = random_problem(kEverything, seed);
    PackOptions options;
    options.effort = Effort::greedy;
    const Packing packing = pack(problem, options);
    const auto fault = find_fault(problem, packing.offsets);
    ASSERT_FALSE(fault) << "seed " << seed << ": " << *fault;
    EXPECT_GE(packing.height(), packing.lower_bound());
    EXPECT_EQ(packing.verdict, Verdict::feasible) << "without a capacity every packing will do";
  }
}

// One after the other, as a load that passes its tensors on. Quadratic time would not come back.
TEST(Packing, VeryManyComponentsAreNoTask) {
  constexpr std::uint64_t kCount = 200'000;
  Problem problem;
  for (std::uint64_t i = 0; i < kCount; ++i)
    problem.buffers.push_back({.lower = 2 * i, .upper = 2 * i + 1, .size = 1 + i % 1000});
  for (const Effort effort : {Effort::greedy, Effort::bounded, Effort::full}) {
    PackOptions options;
    options.effort = effort;
    const Packing packing = pack(problem, options);
    EXPECT_EQ(packing.height(), 1000u);
    EXPECT_TRUE(packing.proven_optimal());
  }
}

// What is never alive, or only in a gap, needs no room: for the solver and for who checks it.
TEST(Packing, WhoIsNeverAliveNeedsNoRoom) {
  Problem problem;
  problem.buffers = {{.lower = 0, .upper = 5, .size = 3},
                     {.lower = 4, .upper = 4, .size = 9},
                     {.lower = 1, .upper = 3, .size = 9, .gaps = {{1, 3}}},
                     {.lower = 1, .upper = 3, .size = 9, .offset = 8, .gaps = {{1, 3}}}};
  PackOptions options;
  options.capacity = {3};
  const Packing packing = pack(problem, options);
  EXPECT_EQ(packing.verdict, Verdict::feasible);
  const auto fault = find_fault(problem, packing.offsets, options.capacity);
  EXPECT_FALSE(fault) << *fault;
}

TEST(Packing, ATimeoutIsNoProof) {
  const Problem problem = guillotine(400, 7);
  PackOptions options;
  options.capacity = {kGuillotineCapacity};
  options.seconds = 0;
  const Packing packing = pack(problem, options);
  EXPECT_NE(packing.verdict, Verdict::infeasible);
  options.capacity = {kGuillotineCapacity - 1};
  EXPECT_EQ(pack(problem, options).verdict, Verdict::infeasible) << "the bound alone proves this";
}

TEST(Packing, AnswersDoNotHangOnNamesUnitsOrOrder) {
  const ProblemShape shape = {.buffers = 12, .ticks = 10, .most_size = 6, .gaps = true, .groups = true};
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    const Problem problem = random_problem(shape, seed);
    const std::uint64_t least = least_height(problem);
    Problem later = problem, longer = problem, larger = problem, mixed = problem, more = problem;
    for (Buffer& b : later.buffers) {
      b.lower += 1000, b.upper += 1000;
      for (Lifespan& gap : b.gaps) gap.lower += 1000, gap.upper += 1000;
    }
    for (Buffer& b : longer.buffers) {
      b.lower *= 7, b.upper *= 7;
      for (Lifespan& gap : b.gaps) gap.lower *= 7, gap.upper *= 7;
    }
    for (Buffer& b : larger.buffers) b.size *= 4096;
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
  Problem problem;
  problem.buffers = {{.lower = 0, .upper = 2, .size = kHuge},
                     {.lower = 1, .upper = 3, .size = kHuge},
                     {.lower = 2, .upper = 4, .size = kHuge - 1}};
  EXPECT_EQ(least_height(problem), 2 * kHuge);
  PackOptions options;
  options.capacity = {2 * kHuge - 1};
  EXPECT_EQ(pack(problem, options).verdict, Verdict::infeasible);
  problem.buffers.push_back({.lower = 1, .upper = 2, .size = kHuge});
  EXPECT_NE(refusal([&] { pack(problem, {}); }).find("2^62"), std::string::npos);
  problem.buffers = {{.lower = 0, .upper = 1, .size = UINT64_MAX}};
  EXPECT_NE(refusal([&] { pack(problem, {}); }).find("over the limit"), std::string::npos);
}

TEST(Packing, ArenasAreApart) {
  Problem problem;
  problem.buffers = {{.lower = 0, .upper = 2, .size = 10},
                     {.lower = 0, .upper = 2, .size = 10, .arena = 1},
                     {.lower = 1, .upper = 2, .size = 5, .arena = 1}};
  PackOptions options;
  options.capacity = {10, 14};
  const Packing packing = pack(problem, options);
  EXPECT_EQ(packing.verdict, Verdict::infeasible);
  ASSERT_EQ(packing.arenas.size(), 2u);
  EXPECT_EQ(packing.arenas[0].height, 10u);
  EXPECT_EQ(packing.arenas[1].lower_bound, 15u);
  EXPECT_EQ(packing.arenas[1].bound_ticks, (Lifespan{1, 2}));
  options.capacity = {10, 15};
  EXPECT_EQ(pack(problem, options).verdict, Verdict::feasible);
}

TEST(Packing, NothingAndNothingAlive) {
  const Packing none = pack({}, {});
  EXPECT_EQ(none.verdict, Verdict::feasible);
  EXPECT_EQ(none.height(), 0u);
  EXPECT_TRUE(none.proven_optimal());
  Problem problem;
  problem.buffers = {{.lower = 3, .upper = 3, .size = 7},
                     {.lower = 0, .upper = 4, .size = 0},
                     {.lower = 1, .upper = 3, .size = 2, .gaps = {{1, 3}}}};
  const Packing empty = pack(problem, {});
  EXPECT_EQ(empty.height(), 0u);
  EXPECT_FALSE(find_fault(problem, empty.offsets));
}

TEST(Packing, PinsThatOverlapAreRefused) {
  Problem problem;
  problem.ids = {"first", "second"};
  problem.buffers = {{.lower = 0, .upper = 4, .size = 8, .offset = 0},
                     {.lower = 3, .upper = 5, .size = 8, .offset = 7}};
  const std::string text = refusal([&] { pack(problem, {}); });
  EXPECT_NE(text.find("'first' and 'second' are pinned to 0 and 7"), std::string::npos) << text;
  problem.buffers[1].lower = 4;
  EXPECT_EQ(pack(problem, {}).height(), 15u);
}

TEST(Packing, PinsAreRefusedExactlyWhereTheyOverlap) {
  MixedSequence random(11);
  int refused = 0, taken = 0;
  for (int round = 0; round < 2000; ++round) {
    Problem problem;
    std::vector<std::uint64_t> offsets;
    for (std::uint64_t i = 0; i < 2 + random.below(5); ++i) {
      const std::uint64_t lower = random.below(12), size = random.below(6);
      Buffer buffer = {.lower = lower, .upper = lower + 1 + random.below(8), .size = size};
      buffer.offset = random.below(20);
      if (buffer.upper - lower > 2 && random.below(3) == 0) buffer.gaps = {{lower + 1, buffer.upper - 1}};
      if (random.below(4) == 0 && i > 0) {
        buffer.group = 1;
        for (const Buffer& other : problem.buffers)
          if (other.group == 1) buffer.offset = other.offset;
      }
      offsets.push_back(*buffer.offset);
      problem.buffers.push_back(buffer);
    }
    const auto fault = find_fault(problem, offsets);
    const std::string text = refusal([&] { pack(problem, {}); });
    EXPECT_EQ(fault.has_value(), !text.empty()) << round << ": " << (fault ? *fault : text);
    ++(fault ? refused : taken);
  }
  EXPECT_GT(refused, 300);
  EXPECT_GT(taken, 300);
}

TEST(Packing, ManyPinsAreNoTrouble) {
  Problem problem;
  for (std::uint64_t i = 0; i < 50'000; ++i)
    problem.buffers.push_back({.lower = 0, .upper = 1 + i % 7, .size = 3, .offset = 4 * i});
  problem.buffers.push_back({.lower = 0, .upper = 1, .size = 2});
  PackOptions options;
  options.effort = Effort::greedy;
  const Packing packing = pack(problem, options);
  EXPECT_EQ(packing.offsets.back(), 200'000u - 1) << "the gaps are a byte each";
}

// Eight units suffice for every sum, but search proves soon that nine are needed.
Problem needs_nine(std::uint64_t unit) {
  constexpr struct {
    std::uint64_t lower, upper, units;
  } kRows[] = {{11, 12, 1}, {11, 12, 4}, {5, 9, 1},  {1, 4, 4},  {4, 6, 3},
               {2, 9, 2},   {4, 5, 3},   {5, 11, 2}, {8, 10, 2}, {9, 11, 4}};
  Problem problem;
  for (const auto& [lower, upper, units] : kRows)
    problem.buffers.push_back({.lower = lower, .upper = upper, .size = units * unit});
  return problem;
}

TEST(Packing, OneHardPartDoesNotKeepAnotherFromItsProof) {
  // too large for exact search and without a byte to spare: only time ends it
  Problem problem = guillotine(5000, 3);
  PackOptions options;
  options.capacity = {kGuillotineCapacity, kGuillotineCapacity};
  options.seconds = 0.1;
  EXPECT_EQ(pack(problem, options).verdict, Verdict::undecided);
  options.seconds = 300;  // it takes one; sanitizers take their time
  const std::size_t cut = problem.buffers.size();
  std::uint64_t end = 0;
  for (const Buffer& b : problem.buffers) end = std::max(end, b.upper);
  for (const std::uint32_t arena : {0u, 1u}) {
    problem.buffers.resize(cut);
    for (Buffer b : needs_nine(kGuillotineCapacity / 8).buffers) {
      b.lower += end + 1, b.upper += end + 1;
      b.arena = arena;
      problem.buffers.push_back(b);
    }
    EXPECT_EQ(pack(problem, options).verdict, Verdict::infeasible) << "arena " << arena;
  }
}

TEST(Packing, TheBoundIsWhereItSays) {
  Problem problem = needs_nine(1);
  problem.buffers.resize(2);
  EXPECT_EQ(pack(problem, {}).arenas[0].bound_ticks, (Lifespan{11, 12}));
  problem.buffers.push_back({.lower = 2, .upper = 4, .size = 10, .offset = 100});
  EXPECT_EQ(pack(problem, {}).arenas[0].lower_bound, 110u);
  EXPECT_EQ(pack(problem, {}).arenas[0].bound_ticks, (Lifespan{2, 4}));
  const Packing proved = pack(needs_nine(1), {});
  EXPECT_EQ(proved.lower_bound(), 9u);
  EXPECT_EQ(proved.arenas[0].bound_ticks, Lifespan{}) << "no section needs nine";
}

TEST(Packing, UnitsDoNotCarryPastTheLimit) {
  constexpr std::uint64_t kSize = std::uint64_t{1} << 50, kAlignment = std::uint64_t{1} << 60;
  Problem problem;
  for (int i = 0; i < 4; ++i)
    problem.buffers.push_back({.lower = 0, .upper = 1, .size = kSize, .alignment = kAlignment});
  EXPECT_EQ(least_height(problem), 3 * kAlignment + kSize);
  while (problem.buffers.size() < 20) {
    problem.buffers.push_back(problem.buffers.front());
    PackOptions options;
    options.seconds = 0.1;
    const Packing packing = pack(problem, options);
    EXPECT_EQ(packing.verdict, Verdict::undecided) << problem.buffers.size();
    EXPECT_TRUE(packing.offsets.empty());
    options.capacity = {UINT64_MAX};
    EXPECT_NE(pack(problem, options).verdict, Verdict::feasible);
  }
}

TEST(Packing, WhatIsQuickIsThereHoweverShortTheTime) {
  PackOptions options;
  options.seconds = 0;
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    const Problem problem = random_problem(kEverything, seed);
    const Packing packing = pack(problem, options);
    EXPECT_EQ(packing.algorithm, packing.height() == 0 ? "" : "best fit in the order of time");
    EXPECT_FALSE(find_fault(problem, packing.offsets));
  }
}

TEST(Packing, WhereNothingCanBePackedNothingIsClaimed) {
  constexpr std::uint64_t kHuge = std::uint64_t{1} << 61;
  Problem problem;
  // no two of them at once, but each at a multiple of its own prime power
  problem.buffers = {{.lower = 0, .upper = 2, .size = kHuge / 2, .alignment = kHuge - 1},
                     {.lower = 1, .upper = 3, .size = kHuge / 2, .alignment = kHuge - 3},
                     {.lower = 1, .upper = 2, .size = kHuge / 2, .alignment = kHuge - 5},
                     {.lower = 1, .upper = 2, .size = kHuge / 4, .alignment = kHuge - 7}};
  PackOptions options;
  options.seconds = 0.1;
  const Packing packing = pack(problem, options);
  EXPECT_EQ(packing.height(), ArenaPacking::kNotPacked);
  EXPECT_EQ(packing.verdict, Verdict::undecided);
  EXPECT_TRUE(packing.offsets.empty());
}

TEST(SectionStack, NarrowAndWideAgreeWithSorting) {
  MixedSequence random(3);
  for (int round = 0; round < 500; ++round) {
    const std::size_t count = 1 + random.below(90), boxes = 200;
    std::vector<std::int32_t> starts(boxes), sizes(count + kStackPadding, 77), scratch(count + kStackPadding);
    std::vector<std::uint32_t> ids(count + kStackPadding, 199);
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
    const auto narrow = stack_section(starts.data(), ids.data(), sizes.data(), count, scratch.data());
    const std::vector<std::int64_t> starts64(starts.begin(), starts.end()),
        sizes64(sizes.begin(), sizes.end());
    std::vector<std::int64_t> scratch64(scratch.size());
    const auto wide = stack_section(starts64.data(), ids.data(), sizes64.data(), count, scratch64.data());
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
    const Problem problem = random_problem(kEverything, seed);
    const Packing packing = pack(problem, {.seconds = 0.0});
    const Problem back = read_packing_csv(packing_csv(problem, packing.offsets), "out.csv");
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
  const Problem quoted = read_packing_csv("start,size,end,id,hint\r\n1,8,3,\"a, \"\"b\"\"\",9\r\n\r\n", "x");
  ASSERT_EQ(quoted.buffers.size(), 1u);
  EXPECT_EQ(quoted.ids[0], "a, \"b\"");
  EXPECT_EQ(quoted.buffers[0].upper, 3u);
}

struct BadCsv {
  const char* text;
  const char* says;
};
constexpr BadCsv kBadCsv[] = {
    {"", "no line that names the columns"},
    {"lower,upper\n", "no column 'size'"},
    {"lower,upper,size,size\n", "a second column for 'size'"},
    {"lower,upper,size,colour\n", "column 'colour' is unknown"},
    {"lower,upper,size\n1,2\n", "line 2: 2 fields, 3 columns"},
    {"lower,upper,size\n1,2,-3\n", "line 2: size '-3' is no whole number"},
    {"lower,upper,size\n1,2,18446744073709551616\n", "is no whole number below 2^64"},
    {"lower,upper,size\n\n1,2,x\x1b[31m\n", "line 3: size 'x\\x1b[31m'"},
    {"lower,upper,size,id\n1,2,3,\"abc\n", "a quote is not closed"},
    {"lower,upper,size,gaps\n1,9,3,2-3 5\n", "gap '5' is not FROM-TO"},
    {"lower,upper,size,arena\n1,9,3,4000000000\n", "over the limit of"},
};

TEST(PackingCsv, HostileFiles) {
  for (const BadCsv& bad : kBadCsv) {
    const std::string said = refusal([&] { read_packing_csv(bad.text, "bad.csv"); });
    EXPECT_NE(said.find(bad.says), std::string::npos) << "'" << bad.text << "' says: " << said;
    EXPECT_EQ(said.rfind("bad.csv: ", 0), 0u) << said;
  }
}

TEST(PackingCsv, HostileProblems) {
  const BadCsv cases[] = {
      {"lower,upper,size\n5,2,3\n", "its lifetime begins at 5 and ends at 2"},
      {"lower,upper,size,alignment\n1,2,3,0\n", "alignment 0"},
      {"lower,upper,size,alignment,offset\n1,2,3,8,4\n", "pinned offset 4 is no multiple of its alignment 8"},
      {"lower,upper,size,offset\n1,2,3,18446744073709551615\n", "end past 2^62"},
      {"lower,upper,size,gaps\n1,9,3,2-12\n", "gap 2-12 is not in what is left of its lifetime, 1-9"},
      {"lower,upper,size,gaps\n1,9,3,4-5 2-3\n", "gap 2-3"},
      {"lower,upper,size,group,offset\n1,9,3,a,0\n1,9,3,a,8\n", "not pinned as '0' of its group is"},
      {"lower,upper,size,group,arena\n1,9,3,a,0\n1,9,3,a,1\n", "in arena 1, and '0' of its group in 0"},
  };
  for (const BadCsv& bad : cases) {
    const std::string said = refusal([&] { pack(read_packing_csv(bad.text, "bad.csv"), {}); });
    EXPECT_NE(said.find(bad.says), std::string::npos) << "'" << bad.text << "' says: " << said;
  }
}

}  // namespace
}  // namespace loadline
