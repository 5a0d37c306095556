// Turns usage points into step curves over steps or seconds.
#include "app/gui/parts/timeline_data.h"

#include "core/base/text.h"

#include <algorithm>
#include <span>
#include <variant>

#include <fmt/format.h>

namespace loadline::gui {
namespace {

double x_of(const UsagePoint& point, TimeAxis axis) {
  return axis == TimeAxis::steps ? static_cast<double>(point.step) : point.seconds;
}

std::vector<Space> spaces_of(TimelineShape shape, bool above) {
  if (shape == TimelineShape::stacked)
    return above ? std::vector<Space>(kStackOrder.begin(), kStackOrder.end()) : std::vector<Space>();
  return above ? std::vector{Space::device} : std::vector{Space::host, Space::staging, Space::page_cache};
}

std::vector<view::CurvePoint> sum_curve(const Timeline& timeline, std::span<const Space> spaces,
                                        TimeAxis axis) {
  std::vector<view::CurvePoint> points;
  points.reserve(timeline.usage.size());
  for (const UsagePoint& point : timeline.usage) {
    double sum = 0;
    for (const Space space : spaces) sum += static_cast<double>(point.bytes[index(space)]);
    points.push_back({x_of(point, axis), sum});
  }
  return points;
}

double most_of(std::span<const view::CurvePoint> curve) {
  double most = 0;
  for (const view::CurvePoint& point : curve) most = std::max(most, point.y);
  return most;
}

TimelineSide make_side(const Timeline& timeline, const Timeline* measured, std::vector<Space> spaces,
                       TimeAxis axis) {
  TimelineSide side;
  unsigned counted = 0;
  for (const Space space : spaces) {
    if (space != Space::page_cache) counted |= 1u << index(space);
    if (timeline.peaks[index(space)].bytes > 0) side.spaces.push_back(space);
  }
  for (std::size_t i = 1; i <= side.spaces.size(); ++i)
    side.sums.push_back(sum_curve(timeline, std::span(side.spaces).first(i), axis));
  if (side.spaces.empty()) return side;
  side.most = most_of(side.sums.back());
  side.peak = peak_over(timeline, counted);
  if (measured == nullptr) return side;
  side.measured = sum_curve(*measured, side.spaces, axis);
  side.most = std::max(side.most, most_of(side.measured));
  return side;
}

// Samples carry the machine's clock only. The usage of the same run says which step that was.
double x_of_sample(const Timeline& run, TimeAxis axis, double seconds, double end) {
  if (axis == TimeAxis::seconds) return seconds;
  const auto after = std::ranges::upper_bound(run.usage, seconds, {}, &UsagePoint::seconds);
  if (after == run.usage.begin()) return 0;
  return after == run.usage.end() ? end : static_cast<double>(std::prev(after)->step);
}

void add_sample(TimelineCurves& curves, double x, const MemorySample& sample) {
  const auto process = static_cast<double>(sample.memory.rss_anon + sample.memory.rss_shmem);
  const auto driver = static_cast<double>(sample.device_counted);
  curves.process.push_back({x, process});
  curves.driver.push_back({x, driver});
  curves.sides[0].most = std::max({curves.sides[0].most, process, driver});
}

// The moments that are known before and behind a place in the list of usage.
struct Moments {
  double from_step = 0, to_step = 0;
  double from_seconds = 0, to_seconds = 0;
};

Moments moments_around(const Projection& projection, std::size_t at) {
  const auto& usage = projection.timeline.usage;
  Moments around;
  around.to_step = static_cast<double>(projection.plan.steps.size());
  around.to_seconds = projection.timeline.seconds;
  if (at > 0) {
    around.from_step = static_cast<double>(usage[at - 1].step);
    around.from_seconds = usage[at - 1].seconds;
  }
  if (at < usage.size()) {
    around.to_step = static_cast<double>(usage[at].step);
    around.to_seconds = usage[at].seconds;
  }
  return around;
}

}  // namespace

std::string_view space_title(Space space) {
  constexpr PerSpace<std::string_view> kTitles = {"Host", "Page cache", "Staging", "Device"};
  return kTitles[index(space)];
}

TimelineCurves timeline_curves(const Projection& projection, const UploadResult* upload, const Budget& budget,
                               TimeAxis axis, TimelineShape shape) {
  TimelineCurves curves;
  curves.axis = axis;
  curves.shape = shape;
  const std::size_t steps = projection.plan.steps.size();
  curves.modelled_length = axis == TimeAxis::steps ? static_cast<double>(steps) : projection.timeline.seconds;
  curves.length = curves.modelled_length;
  const Timeline* const measured = upload == nullptr ? nullptr : &upload->report.measured;
  for (const bool above : {true, false})
    curves.sides[above ? 0 : 1] = make_side(projection.timeline, measured, spaces_of(shape, above), axis);
  curves.sides[0].budget = shape == TimelineShape::stacked ? budget.unified : budget.device;
  curves.sides[1].budget = budget.host;
  if (measured == nullptr) return curves;
  if (axis == TimeAxis::seconds) curves.length = std::max(curves.length, measured->seconds);
  if (shape == TimelineShape::split) return curves;
  for (const MemorySample& sample : measured->measured)
    add_sample(curves, x_of_sample(*measured, axis, sample.seconds, static_cast<double>(steps)), sample);
  if (!upload->report.device_budget_peak) curves.driver.clear();
  return curves;
}

void take_samples(TimelineCurves& curves, const SampleLog::Entries& samples) {
  curves.process.clear();
  curves.driver.clear();
  for (std::size_t i = 0; i < samples.samples.size(); ++i)
    add_sample(curves, static_cast<double>(samples.steps[i]), samples.samples[i]);
  curves.sampled_until = samples.steps.empty() ? 0 : static_cast<double>(samples.steps.back());
  if (std::ranges::all_of(curves.driver, [](const view::CurvePoint& point) { return point.y == 0; }))
    curves.driver.clear();
}

// Between two allocations or frees the clock is taken to run evenly: only those moments are kept.
double x_of_step(const Projection& projection, TimeAxis axis, std::size_t step) {
  if (axis == TimeAxis::steps) return static_cast<double>(step);
  const auto& usage = projection.timeline.usage;
  const auto at = std::ranges::lower_bound(usage, step, {}, &UsagePoint::step);
  if (at != usage.end() && at->step == step) return at->seconds;
  const Moments around = moments_around(projection, static_cast<std::size_t>(at - usage.begin()));
  return around.from_seconds + (around.to_seconds - around.from_seconds) *
                                   (static_cast<double>(step) - around.from_step) /
                                   std::max(1.0, around.to_step - around.from_step);
}

std::size_t step_at_x(const Projection& projection, TimeAxis axis, double x) {
  const std::size_t last = projection.plan.steps.empty() ? 0 : projection.plan.steps.size() - 1;
  if (x <= 0) return 0;
  if (axis == TimeAxis::steps) return std::min(static_cast<std::size_t>(x), last);
  const auto& usage = projection.timeline.usage;
  const auto after = std::ranges::upper_bound(usage, x, {}, &UsagePoint::seconds);
  const Moments around = moments_around(projection, static_cast<std::size_t>(after - usage.begin()));
  const double length = around.to_seconds - around.from_seconds;
  const double share = length > 0 ? std::clamp((x - around.from_seconds) / length, 0.0, 1.0) : 0;
  return std::min(last,
                  static_cast<std::size_t>(around.from_step + share * (around.to_step - around.from_step)));
}

std::size_t step_in_step(const Projection& first, std::size_t step, const Projection& other) {
  return step_at_x(other, TimeAxis::seconds, x_of_step(first, TimeAxis::seconds, step));
}

std::string step_text(const Model& model, const Projection& projection, std::size_t step) {
  const Plan& plan = projection.plan;
  if (step >= plan.steps.size()) return {};
  constexpr std::array<std::string_view, 3> kVerbs = {"allocate", "copy", "free"};
  const Step& now = plan.steps[step];
  const Block& block = plan.block(now.block);
  const auto* const storage = std::get_if<StorageId>(&now.from);
  const bool reads = now.verb == Verb::copy && storage != nullptr;
  // into a slot of a ring: what is read says more than where it goes
  const auto owner = reads ? model.owners[index(*storage)] : std::nullopt;
  const std::string name =
      owner ? model.tensor(*owner).name.str() : block_label(block, *model.graph, model.owners);
  const std::string_view verb =
      reads && block.space != Space::page_cache ? "read" : kVerbs[static_cast<std::size_t>(now.verb)];
  return fmt::format("{} {}, {}", verb, safe_display(name, 60), space_name(block.space));
}

}  // namespace loadline::gui
