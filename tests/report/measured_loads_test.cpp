// Measured loads made from measurements that never ran.
#include "app/report/measured_loads.h"

#include <algorithm>

#include <gtest/gtest.h>

namespace loadline::report {
namespace {

constexpr std::uint64_t kMiB = 1 << 20;

MeasuredLoad row_of(std::initializer_list<std::uint64_t> anon, std::uint64_t projected) {
  HostMeasurement measurement;
  measurement.projected.rss_anon = projected;
  Plan plan;
  for (const std::uint64_t bytes : anon) {
    measurement.timeline.measured.push_back({0, {.rss_anon = bytes, .rss_file = 0, .rss_shmem = 0}, 0});
    measurement.steps.push_back(plan.steps.size());
    measurement.measured.rss_anon = std::max(measurement.measured.rss_anon, bytes);
    plan.steps.push_back({});
  }
  return rehearsed_load(find_method("per_tensor"), "file", plan, measurement);
}

TEST(MeasuredLoad, CountsTheSamplesAboveTheProjection) {
  const MeasuredLoad differs = row_of({0, 10 * kMiB, 40 * kMiB, 60 * kMiB, 5 * kMiB}, 10 * kMiB);
  EXPECT_EQ(differs.agrees(), false);
  EXPECT_EQ(differs.counters[0].beyond.samples, 2u);
  EXPECT_EQ(differs.counters[0].beyond.first_step, 2u);
  EXPECT_EQ(differs.counters[1].beyond.samples + differs.counters[2].beyond.samples, 0u);
}

TEST(MeasuredLoad, CountsNoneWhereTheLoadAgreesOrNeededLess) {
  const MeasuredLoad near = row_of({0, 110 * kMiB}, 100 * kMiB);
  EXPECT_EQ(near.agrees(), true);
  EXPECT_EQ(near.counters[0].beyond.samples, 0u);
  const MeasuredLoad less = row_of({0, 10 * kMiB}, 100 * kMiB);
  EXPECT_EQ(less.agrees(), false);
  EXPECT_EQ(less.counters[0].beyond.samples, 0u);
}

}  // namespace
}  // namespace loadline::report
