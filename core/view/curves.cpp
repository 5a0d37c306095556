// One pass over the points; one over the blocks, largest first.
#include "core/view/curves.h"

#include "core/plan/plan.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>
#include <type_traits>
#include <utility>

namespace loadline::view {

// --- One pass over each curve's points; each column keeps the extremes that it meets.

namespace {

template <typename Point, typename PlaceOf, typename ValueOf, typename Less>
auto reduced(std::span<const Point> curve, double x0, double x1, std::size_t columns, PlaceOf place_of,
             ValueOf value_of, Less less) {
  using Value = std::invoke_result_t<ValueOf, const Point&>;
  std::vector<ColumnRange<Value>> result(columns);
  if (columns == 0 || !(x1 > x0)) return result;
  const auto column_of = [&](double x) {
    return std::min(static_cast<std::size_t>((x - x0) * static_cast<double>(columns) / (x1 - x0)),
                    columns - 1);
  };
  // several points may share an x: each of them counts, also at the left edge
  auto point = std::ranges::lower_bound(curve, x0, {}, place_of);
  Value current = point == curve.begin() ? Value() : value_of(*std::prev(point));
  if (point != curve.end() && place_of(*point) == x0) current = value_of(*point);
  for (std::size_t i = 0; i < columns; ++i) {
    ColumnRange<Value>& column = result[i] = {current, current, current};
    // where the column ends is searched for: a division for each point would cost more than all else
    const auto end = std::partition_point(point, curve.end(), [&](const Point& at) {
      return place_of(at) <= x1 && column_of(place_of(at)) <= i;
    });
    for (; point != end; ++point) {
      current = value_of(*point);
      if (less(current, column.low)) column.low = current;
      if (less(column.high, current)) column.high = current;
    }
    column.last = current;
  }
  return result;
}

}  // namespace

std::vector<CurveColumn> step_columns(std::span<const CurvePoint> curve, double x0, double x1,
                                      std::size_t columns) {
  return reduced(
      curve, x0, x1, columns, [](const CurvePoint& point) { return point.x; },
      [](const CurvePoint& point) { return point.y; }, std::less<>());
}

double value_at(std::span<const CurvePoint> curve, double x) {
  const auto after = std::ranges::upper_bound(curve, x, {}, &CurvePoint::x);
  return after == curve.begin() ? 0 : std::prev(after)->y;
}

std::vector<double> byte_ticks(double most, std::size_t wanted) {
  if (!(most > 0) || wanted == 0) return {0};
  const double step = std::exp2(std::max(0.0, std::ceil(std::log2(most / static_cast<double>(wanted)))));
  std::vector<double> ticks;
  for (double at = 0; at < most + step; at += step) ticks.push_back(at);
  return ticks;
}

std::vector<double> decimal_ticks(double from, double to, std::size_t wanted) {
  if (!(to > from) || wanted == 0) return {};
  const double raw = (to - from) / static_cast<double>(wanted);
  const double magnitude = std::pow(10.0, std::floor(std::log10(raw)));
  double step = 10 * magnitude;
  for (const double factor : {5.0, 2.0, 1.0})
    if (factor * magnitude >= raw) step = factor * magnitude;
  // from 2^53 on neighboring indices are the same double
  constexpr double kMostIndex = 0x1p53;
  const double first = std::ceil(from / step), last = std::floor(to / step);
  if (!(std::abs(first) < kMostIndex && std::abs(last) < kMostIndex)) return {};
  std::vector<double> ticks;
  // computed from the index, so that errors do not add up
  for (double i = first; i <= last && ticks.size() <= wanted; ++i) ticks.push_back(i * step);
  return ticks;
}

// --- The axis of a run.

namespace {

// The moments that are known before and behind a place in the list of usage.
struct Moments {
  double from_step = 0, to_step = 0;
  double from_seconds = 0, to_seconds = 0;
};

Moments moments_around(const plan::Timeline& timeline, std::size_t steps, std::size_t at) {
  const auto& usage = timeline.usage;
  Moments around;
  around.to_step = static_cast<double>(steps);
  around.to_seconds = timeline.seconds;
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

double x_of(const plan::UsagePoint& point, RunAxis axis) {
  return axis == RunAxis::steps ? static_cast<double>(point.step) : point.seconds;
}

double length_of(const plan::Timeline& timeline, std::size_t steps, RunAxis axis) {
  return axis == RunAxis::steps ? static_cast<double>(steps) : timeline.seconds;
}

double x_of_step(const plan::Timeline& timeline, std::size_t steps, RunAxis axis, std::size_t step) {
  if (axis == RunAxis::steps) return static_cast<double>(step);
  const auto& usage = timeline.usage;
  const auto at = std::ranges::lower_bound(usage, step, {}, &plan::UsagePoint::step);
  if (at != usage.end() && at->step == step) return at->seconds;
  const Moments around = moments_around(timeline, steps, static_cast<std::size_t>(at - usage.begin()));
  return around.from_seconds + (around.to_seconds - around.from_seconds) *
                                   (static_cast<double>(step) - around.from_step) /
                                   std::max(1.0, around.to_step - around.from_step);
}

std::size_t step_at_x(const plan::Timeline& timeline, std::size_t steps, RunAxis axis, double x) {
  const std::size_t last = steps == 0 ? 0 : steps - 1;
  if (x <= 0) return 0;
  if (axis == RunAxis::steps) return std::min(static_cast<std::size_t>(x), last);
  const auto& usage = timeline.usage;
  const auto after = std::ranges::upper_bound(usage, x, {}, &plan::UsagePoint::seconds);
  const Moments around = moments_around(timeline, steps, static_cast<std::size_t>(after - usage.begin()));
  const double length = around.to_seconds - around.from_seconds;
  const double share = length > 0 ? std::clamp((x - around.from_seconds) / length, 0.0, 1.0) : 0;
  return std::min(last,
                  static_cast<std::size_t>(around.from_step + share * (around.to_step - around.from_step)));
}

double x_of_sample(const plan::Timeline& timeline, std::size_t steps, RunAxis axis, double seconds) {
  if (axis == RunAxis::seconds) return seconds;
  const auto after = std::ranges::upper_bound(timeline.usage, seconds, {}, &plan::UsagePoint::seconds);
  if (after == timeline.usage.begin()) return 0;
  return after == timeline.usage.end() ? length_of(timeline, steps, axis) : x_of(*std::prev(after), axis);
}

// --- One pass over the points of a run, and one over its blocks, largest first.

std::vector<UsageColumn> usage_columns(const plan::Timeline& timeline, std::size_t steps, RunAxis axis,
                                       unsigned mask, std::size_t columns) {
  const double end = length_of(timeline, steps, axis);
  const bool takes_time = end > 0;
  const auto ranges = reduced(
      std::span<const plan::UsagePoint>(timeline.usage), 0, takes_time ? end : 1, takes_time ? columns : 1,
      [&](const plan::UsagePoint& point) { return std::min(x_of(point, axis), end); },
      [](const plan::UsagePoint& point) { return &point; },
      [&](const plan::UsagePoint* a, const plan::UsagePoint* b) {
        return (a == nullptr ? 0 : plan::sum_over(a->bytes, mask)) <
               (b == nullptr ? 0 : plan::sum_over(b->bytes, mask));
      });
  const auto column = [](const plan::UsagePoint* point) {
    return point == nullptr ? UsageColumn{} : UsageColumn{point->bytes, point->step};
  };
  if (!takes_time) return std::vector<UsageColumn>(columns, column(ranges.front().high));
  std::vector<UsageColumn> result;
  for (const auto& range : ranges) result.push_back(column(range.high));
  return result;
}

std::vector<AliveAt> alive_at_steps(const plan::Timeline& timeline, const plan::Plan& plan,
                                    std::span<const std::size_t> moments, unsigned mask, std::size_t most) {
  struct Seen {
    std::uint64_t bytes;
    plan::BlockId block;
    std::size_t from, to;  // moments: from the first, up to the second
  };
  const auto moment_at = [&](std::size_t step) {
    return static_cast<std::size_t>(std::ranges::lower_bound(moments, step) - moments.begin());
  };
  std::vector<AliveAt> result(moments.size());
  std::vector<std::ptrdiff_t> change(moments.size() + 1);  // of the count, at each moment
  // of blocks that come and go between the same moments, no list names more than the largest
  std::vector<std::vector<Seen>> between(moments.size() * (moments.size() + 1));
  const auto larger = [](const Seen& a, const Seen& b) {
    return std::pair(b.bytes, a.block) < std::pair(a.bytes, b.block);
  };
  for (std::size_t i = 0; i < plan.blocks.size(); ++i) {
    const plan::Lifetime& life = timeline.lifetimes[i];
    if ((mask & plan::space_bit(plan.blocks[i].space)) == 0 || life.from_step == plan::kNever) continue;
    const std::size_t from = moment_at(life.from_step);
    const std::size_t to = life.to_step == plan::kNever ? moments.size() : moment_at(life.to_step);
    if (from >= to) continue;  // most blocks of a load: they come and go between two moments
    ++change[from];
    --change[to];
    const Seen block = {plan.blocks[i].bytes, plan::BlockId{static_cast<std::uint32_t>(i)}, from, to};
    std::vector<Seen>& alike = between[from * (moments.size() + 1) + to];
    if (alike.size() == most) {
      if (most == 0 || !larger(block, alike.back())) continue;
      alike.pop_back();
    }
    alike.insert(std::ranges::upper_bound(alike, block, larger), block);
  }
  std::ptrdiff_t count = 0;
  for (std::size_t i = 0; i < moments.size(); ++i)
    result[i].count = static_cast<std::size_t>(count += change[i]);

  if (most == 0) return result;
  std::vector<Seen> seen;
  for (const std::vector<Seen>& alike : between) seen.insert(seen.end(), alike.begin(), alike.end());
  std::ranges::sort(seen, larger);
  // open[i]: a moment at or after i; the lists from i up to it are full
  std::vector<std::size_t> open(moments.size() + 1);
  std::iota(open.begin(), open.end(), std::size_t{0});
  const auto next_open = [&](std::size_t i) {
    while (open[i] != i) i = open[i] = open[open[i]];
    return i;
  };
  for (const Seen& block : seen) {
    if (next_open(0) == moments.size()) break;
    for (std::size_t i = next_open(block.from); i < block.to; i = next_open(i + 1)) {
      result[i].largest.push_back(block.block);
      if (result[i].largest.size() == most) open[i] = i + 1;
    }
  }
  return result;
}

std::vector<UsageColumn> fewer_columns(std::span<const UsageColumn> from, unsigned mask,
                                       std::size_t columns) {
  std::vector<UsageColumn> result(std::min(columns, from.size()));
  for (std::size_t i = 0; i < from.size(); ++i) {
    UsageColumn& column = result[i * result.size() / from.size()];
    if (plan::sum_over(from[i].bytes, mask) > plan::sum_over(column.bytes, mask)) column = from[i];
  }
  return result;
}

}  // namespace loadline::view
