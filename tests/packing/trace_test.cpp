// Recorded runs of packing.

#include "core/packing/trace.h"

#include "core/packing/greedy.h"
#include "core/packing/pack.h"
#include "core/packing/problem.h"
#include "core/packing/search_control.h"
#include "tests/packing/guillotine.h"
#include "tests/packing/random_problem.h"
#include "tests/support/packing.h"

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace loadline::tests {

// --- Recorded runs: what is shown step by step must be what happened.

namespace {

// Why the placed buffers cannot stand together, with what is not placed left out.
std::optional<std::string> fault_of(const packing::Problem& problem,
                                    const std::vector<std::optional<std::uint64_t>>& placed) {
  packing::Problem part;
  std::vector<std::uint64_t> offsets;
  for (std::size_t i = 0; i < placed.size(); ++i) {
    if (!placed[i]) continue;
    part.buffers.push_back(problem.buffers[i]);
    offsets.push_back(*placed[i]);
  }
  return packing::find_fault(part, offsets);
}

// Every state on the way; and no step takes back what is not there, or places what is.
void expect_sound(const packing::Problem& problem, const packing::PackingTrace& trace, std::uint64_t seed) {
  std::vector<bool> there(problem.buffers.size(), false);
  for (std::size_t step = 0; step < trace.steps.size(); ++step) {
    const packing::PackingStep& now = trace.steps[step];
    ASSERT_LT(now.buffer, there.size());
    ASSERT_EQ(there[now.buffer], now.event == packing::PackingEvent::taken_back)
        << "seed " << seed << " step " << step;
    there[now.buffer] = !there[now.buffer];
    const auto fault = fault_of(problem, packing::placed_after(trace, problem.buffers.size(), step + 1));
    ASSERT_FALSE(fault) << "seed " << seed << " step " << step << ": " << *fault;
  }
}

std::vector<std::uint64_t> offsets_of(const packing::Problem& problem, const packing::PackingTrace& trace) {
  std::vector<std::uint64_t> offsets(problem.buffers.size(), 0);
  const auto placed = packing::placed_after(trace, problem.buffers.size(), trace.steps.size());
  for (std::size_t i = 0; i < offsets.size(); ++i) {
    const packing::Buffer& buffer = problem.buffers[i];
    offsets[i] = placed[i] ? *placed[i] : buffer.offset.value_or(0);
    const bool lives = buffer.size > 0 && packing::alive_together(buffer, buffer);
    EXPECT_EQ(placed[i].has_value(), lives) << i;
  }
  return offsets;
}

TEST(Trace, GreedyPlacesEveryBufferOnce) {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    const packing::Problem problem = random_problem(kEverything, seed);
    for (const packing::GreedyRule& rule : packing::greedy_rules()) {
      const packing::PackingTrace trace = packing::greedy_trace(problem, rule, UINT64_MAX);
      EXPECT_EQ(trace.end, packing::TraceEnd::packed);
      expect_sound(problem, trace, seed);
      EXPECT_FALSE(packing::find_fault(problem, offsets_of(problem, trace)));
    }
  }
}

TEST(Trace, WhatGapsLeaveNothingOfIsLeftOut) {
  packing::Problem problem;
  problem.buffers = {{.lower = 0, .upper = 5, .size = 3},
                     {.lower = 1, .upper = 3, .size = 9, .offset = 8, .gaps = {{1, 3}}},
                     {.lower = 1, .upper = 3, .size = 2, .group = 0},
                     {.lower = 1, .upper = 3, .size = 7, .gaps = {{1, 2}, {2, 3}}, .group = 0}};
  for (const packing::GreedyRule& rule : packing::greedy_rules()) {
    const packing::PackingTrace trace = packing::greedy_trace(problem, rule, 5);
    EXPECT_EQ(trace.end, packing::TraceEnd::packed);
    EXPECT_EQ(trace.height, 5u);
    EXPECT_EQ(trace.steps.size(), 2u);
    offsets_of(problem, trace);
    expect_sound(problem, trace, 0);
  }
  const packing::PackingTrace trace = packing::search_trace(problem, 5, {});
  EXPECT_EQ(trace.end, packing::TraceEnd::packed);
  EXPECT_EQ(trace.height, 5u);
  EXPECT_EQ(trace.steps.size(), 2u);
}

TEST(Trace, GreedyEndsWhereItsTimeDoes) {
  packing::StopRule rule;
  rule.deadline = std::chrono::steady_clock::now();
  const packing::PackingTrace trace =
      packing::greedy_trace(guillotine(50, 2), packing::greedy_rules()[0], kGuillotineCapacity, 0, rule);
  EXPECT_EQ(trace.end, packing::TraceEnd::gave_up);
  EXPECT_TRUE(trace.steps.empty());
}

TEST(Trace, TheFirstThatEndsAboveTheCapacityIsMarked) {
  const packing::Problem problem = guillotine(60, 3);
  const packing::PackingTrace trace =
      packing::greedy_trace(problem, packing::greedy_rules()[0], kGuillotineCapacity);
  ASSERT_EQ(trace.end, packing::TraceEnd::too_high);
  EXPECT_GT(trace.height, kGuillotineCapacity);
  std::size_t marked = 0;
  for (const packing::PackingStep& step : trace.steps) {
    const bool above = step.offset + problem.buffers[step.buffer].size > kGuillotineCapacity;
    if (step.event == packing::PackingEvent::too_high) ++marked;
    EXPECT_EQ(step.event == packing::PackingEvent::too_high, above && marked == 1)
        << "one only, and the first";
    if (marked == 0) EXPECT_FALSE(above);
    if (step.event == packing::PackingEvent::too_high) marked = 2;
  }
  EXPECT_EQ(marked, 2u);
}

TEST(Trace, SearchEndsInAValidPacking) {
  std::size_t packed = 0;
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    const packing::Problem problem = random_problem(kEverything, seed);
    packing::PackOptions options;
    options.minimize = true;
    options.effort = packing::Effort::bounded;
    const packing::Packing packing = pack(problem, options);
    const packing::PackingTrace trace = packing::search_trace(problem, packing.height(), {});
    expect_sound(problem, trace, seed);
    EXPECT_NE(trace.end, packing::TraceEnd::infeasible) << "seed " << seed;
    if (trace.end != packing::TraceEnd::packed) continue;
    ++packed;
    EXPECT_LE(trace.height, packing.height());
    EXPECT_FALSE(packing::find_fault(problem, offsets_of(problem, trace), {{packing.height()}}))
        << "seed " << seed;
  }
  EXPECT_GT(packed, 180u);
}

TEST(Trace, ALongSearchShowsItsEnd) {
  const packing::Problem problem = guillotine(120, 1);
  const packing::PackingTrace whole =
      packing::search_trace(problem, kGuillotineCapacity, {.most_steps = 1 << 20});
  ASSERT_EQ(whole.end, packing::TraceEnd::packed);
  EXPECT_EQ(whole.shortened, 0u);
  const packing::PackingTrace tail = packing::search_trace(problem, kGuillotineCapacity, {.most_steps = 40});
  ASSERT_EQ(tail.end, packing::TraceEnd::packed);
  EXPECT_LE(tail.steps.size(), 40 + problem.buffers.size());
  EXPECT_GT(tail.shortened, 0u);
  expect_sound(problem, tail, 1);
  EXPECT_TRUE(std::equal(tail.steps.end() - 40, tail.steps.end(), whole.steps.end() - 40));
  EXPECT_EQ(offsets_of(problem, tail), offsets_of(problem, whole));
}

TEST(Trace, WhatCannotBePackedIsProved) {
  packing::Problem problem;
  for (int i = 0; i < 3; ++i) problem.buffers.push_back({.lower = 0, .upper = 2, .size = 4});
  const packing::PackingTrace trace = packing::search_trace(problem, 11, {});
  EXPECT_EQ(trace.end, packing::TraceEnd::infeasible);
  EXPECT_EQ(packing::search_trace(problem, 12, {}).end, packing::TraceEnd::packed);
}

TEST(Trace, AStopIsNoProof) {
  packing::StopRule rule;
  rule.deadline = std::chrono::steady_clock::now();
  const packing::PackingTrace trace = packing::search_trace(guillotine(50, 2), kGuillotineCapacity, {}, rule);
  EXPECT_EQ(trace.end, packing::TraceEnd::gave_up);
  EXPECT_TRUE(trace.steps.empty());
}

TEST(Trace, OnTheTeachingProblemGreedyFailsAndSearchSucceeds) {
  const packing::Problem problem = packing::teaching_problem();
  for (const packing::GreedyRule& rule : packing::greedy_rules()) {
    const packing::PackingTrace trace = packing::greedy_trace(problem, rule, packing::kTeachingCapacity);
    EXPECT_EQ(trace.end, packing::TraceEnd::too_high) << rule.id;
  }
  const packing::PackingTrace trace = packing::search_trace(problem, packing::kTeachingCapacity, {});
  ASSERT_EQ(trace.end, packing::TraceEnd::packed);
  EXPECT_EQ(trace.attempts, 1u);
  EXPECT_FALSE(packing::find_fault(problem, offsets_of(problem, trace), {{packing::kTeachingCapacity}}));
  const auto taken_back = std::count_if(
      trace.steps.begin(), trace.steps.end(),
      [](const packing::PackingStep& step) { return step.event == packing::PackingEvent::taken_back; });
  EXPECT_GT(taken_back, 0);
  expect_sound(problem, trace, 0);
}

}  // namespace

}  // namespace loadline::tests
