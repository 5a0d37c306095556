// Loads run on the host while the system's own counters are watched.
#include "core/base/error.h"
#include "core/load/measure/rehearse.h"
#include "core/load/request/method.h"
#include "tests/support/builders.h"
#include "tests/support/sanitizers.h"

#include <algorithm>

#include <gtest/gtest.h>

namespace loadline {
namespace {

Plan plan_of(const MetaGraph& graph, const char* method) {
  return make_plan(graph, find_method(method), find_order("file").make(graph), {});
}

double mib(std::uint64_t bytes) { return static_cast<double>(bytes) / (1 << 20); }

TEST(Measure, TheSystemCountsWhatIsProjected) {
  const testing::TemporaryFolder folder;
  const MetaGraphPtr graph =
      testing::byte_model(folder, {9 << 20, 40 << 20, 8 << 20, 2 << 20, 1 << 20, 1 << 20, 1 << 20});
  for (const char* method : {"state_dict", "mmap_copy", "per_tensor"}) {
    const Plan plan = plan_of(*graph, method);
    Progress progress;
    const HostMeasurement measured = measure_on_host(graph, plan, false, progress);
    for (const MemoryCounter& counter : kMemoryCounters) {
      SCOPED_TRACE(std::string(method) + " " + std::string(counter.name));
      const double projected = mib(measured.projected.*counter.count),
                   counted = mib(measured.measured.*counter.count);
      EXPECT_GE(counted, projected - 6);
      if (!testing::kSanitized) EXPECT_LE(counted, projected + 6);
      std::vector<StepCount> counts;
      for (std::size_t i = 0; i < measured.steps.size(); ++i)
        counts.push_back({measured.steps[i], measured.timeline.measured[i].memory.*counter.count});
      const CounterCurve curve =
          counter_curve(measured.timeline.usage, counter.spaces, counts, plan.steps.size(), 50);
      EXPECT_EQ(*std::max_element(curve.projected.begin(), curve.projected.end()),
                measured.projected.*counter.count);
      EXPECT_EQ(*std::max_element(curve.measured.begin(), curve.measured.end()),
                measured.measured.*counter.count);
    }
    EXPECT_GE(mib(measured.measured_held), mib(measured.projected_held) - 6);
    if (!testing::kSanitized) EXPECT_LE(mib(measured.measured_held), mib(measured.projected_held) + 6);
    EXPECT_EQ(measured.page_cache.files, file_bytes(*graph));
    EXPECT_LE(measured.page_cache.before, measured.page_cache.most);
    EXPECT_LE(measured.page_cache.after, measured.page_cache.most);
    ASSERT_EQ(measured.steps.size(), measured.timeline.measured.size());
    EXPECT_TRUE(std::is_sorted(measured.steps.begin(), measured.steps.end()));
    EXPECT_LE(measured.steps.back(), plan.steps.size());
  }
}

// RssAnon falls while RssShmem grows: each has a peak of W, and their sum never has twice that.
TEST(Measure, WhatIsHeldAtOnceIsNoSumOfPeaks) {
  const testing::TemporaryFolder folder;
  const MetaGraphPtr graph = testing::byte_model(folder, std::vector<std::uint64_t>(16, 4 << 20));
  Progress progress;
  const HostMeasurement measured =
      measure_on_host(graph, plan_of(*graph, "executorch_after"), false, progress);
  EXPECT_GE(mib(measured.measured.rss_anon) + mib(measured.measured.rss_shmem), 2 * 64 - 6);
  if (!testing::kSanitized) EXPECT_LE(mib(measured.measured_held), 64 + 2 * 4 + 6);
}

TEST(Measure, RefusesWhatCannotBeRun) {
  const testing::TemporaryFolder folder;
  const MetaGraphPtr graph = testing::byte_model(folder, {1000, 2000});
  const auto code_of = [](const MetaGraphPtr& model, const Plan& plan) {
    Progress progress;
    try {
      measure_on_host(model, plan, false, progress);
    } catch (const Error& error) {
      return error.code();
    }
    return ErrorCode::io;
  };
  auto deflated = std::make_shared<MetaGraph>(*graph);
  deflated->storages[0].encoding = Encoding::deflate;
  EXPECT_EQ(code_of(deflated, plan_of(*deflated, "mmap_assign")), ErrorCode::unsupported);
  Plan quantised;
  const BlockId block = alloc(quantised, {.space = Space::host, .bytes = 18});
  copy(quantised, block, 0, StorageId{0}, 0, 64, Cast{DType::bf16, DType::q4_0});
  EXPECT_EQ(code_of(graph, quantised), ErrorCode::unsupported);
  Plan huge;
  alloc(huge, {.space = Space::host, .bytes = std::uint64_t{1} << 60});
  EXPECT_EQ(code_of(graph, huge), ErrorCode::no_fit);
  Plan wrong;
  free(wrong, alloc(wrong, {.space = Space::host, .bytes = 8}));
  free(wrong, BlockId{0});
  EXPECT_EQ(code_of(graph, wrong), ErrorCode::usage);

  std::stop_source stop;
  stop.request_stop();
  Progress progress(stop.get_token());
  EXPECT_THROW(measure_on_host(graph, plan_of(*graph, "per_tensor"), true, progress), Error);
}

}  // namespace
}  // namespace loadline
