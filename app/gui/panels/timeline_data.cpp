// Turns usage points into step curves over steps or seconds.
#include "app/gui/panels/timeline_data.h"

#include <algorithm>
#include <numeric>

namespace loadline::gui {
namespace {

double x_of(const UsagePoint& point, TimeAxis axis) {
  return axis == TimeAxis::steps ? static_cast<double>(point.step) : point.seconds;
}

void add_spaces(TimelineCurves& curves, const Timeline& timeline) {
  for (auto& curve : curves.spaces) curve.reserve(timeline.usage.size());
  for (auto& curve : curves.stacked) curve.reserve(timeline.usage.size());
  for (const UsagePoint& point : timeline.usage) {
    const double x = x_of(point, curves.axis);
    double sum = 0;
    for (std::size_t level = 0; level < kSpaceCount; ++level) {
      const std::size_t space = index(kStackOrder[level]);
      const auto bytes = static_cast<double>(point.bytes[space]);
      sum += bytes;
      curves.spaces[space].push_back({x, bytes});
      curves.stacked[level].push_back({x, sum});
      curves.most[space] = std::max(curves.most[space], bytes);
    }
    curves.most_stacked = std::max(curves.most_stacked, sum);
  }
}

// Samples carry the machine's clock only. The usage of the same run says which step that was.
double x_of_sample(const Timeline& run, TimeAxis axis, double seconds, double end) {
  if (axis == TimeAxis::seconds) return seconds;
  const auto after = std::ranges::upper_bound(run.usage, seconds, {}, &UsagePoint::seconds);
  if (after == run.usage.begin()) return 0;
  return after == run.usage.end() ? end : static_cast<double>(std::prev(after)->step);
}

void add_measured(TimelineCurves& curves, const Timeline& run, std::size_t steps) {
  MeasuredCurve ledger{"measured: allocated", true, {}};
  for (const UsagePoint& point : run.usage) {
    const std::uint64_t sum = std::accumulate(point.bytes.begin(), point.bytes.end(), std::uint64_t{0});
    const double x = x_of(point, curves.axis);
    ledger.points.push_back({x, static_cast<double>(sum)});
    for (std::size_t space = 0; space < kSpaceCount; ++space)
      curves.measured_spaces[space].push_back({x, static_cast<double>(point.bytes[space])});
  }
  MeasuredCurve process{"measured: process", false, {}};
  for (const MemorySample& sample : run.measured) {
    const double x = x_of_sample(run, curves.axis, sample.seconds, static_cast<double>(steps));
    process.points.push_back({x, static_cast<double>(sample.memory.rss_anon + sample.memory.rss_shmem)});
  }
  for (MeasuredCurve* curve : {&ledger, &process}) {
    if (curve->points.empty()) continue;
    for (const view::CurvePoint& point : curve->points)
      curves.most_measured = std::max(curves.most_measured, point.y);
    curves.measured.push_back(std::move(*curve));
  }
}

}  // namespace

std::string_view space_title(Space space) {
  constexpr PerSpace<std::string_view> kTitles = {"Host", "Page cache", "Staging", "Device"};
  return kTitles[index(space)];
}

TimelineCurves timeline_curves(const Projection& projection, const UploadResult* upload, TimeAxis axis) {
  TimelineCurves curves;
  curves.axis = axis;
  const std::size_t steps = projection.plan.steps.size();
  curves.modelled_length = axis == TimeAxis::steps ? static_cast<double>(steps) : projection.timeline.seconds;
  curves.length = curves.modelled_length;
  add_spaces(curves, projection.timeline);
  if (upload != nullptr) {
    add_measured(curves, upload->report.measured, steps);
    if (axis == TimeAxis::seconds) curves.length = std::max(curves.length, upload->report.measured.seconds);
  }
  return curves;
}

double x_of_step(const Projection& projection, TimeAxis axis, std::size_t step) {
  if (axis == TimeAxis::steps) return static_cast<double>(step);
  const auto& usage = projection.timeline.usage;
  const auto at = std::ranges::lower_bound(usage, step, {}, &UsagePoint::step);
  return at == usage.end() ? projection.timeline.seconds : at->seconds;
}

std::size_t step_at_x(const Projection& projection, TimeAxis axis, double x) {
  const std::size_t last = projection.plan.steps.empty() ? 0 : projection.plan.steps.size() - 1;
  if (x <= 0) return 0;
  if (axis == TimeAxis::steps) return std::min(static_cast<std::size_t>(x), last);
  const auto& usage = projection.timeline.usage;
  const auto after = std::ranges::upper_bound(usage, x, {}, &UsagePoint::seconds);
  return after == usage.begin() ? 0 : std::prev(after)->step;
}

}  // namespace loadline::gui
