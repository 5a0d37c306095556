// One pass over the points; one over the blocks, largest first.
#include "core/view/curves.h"

#include "core/plan/plan.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

namespace loadline::view {

// --- One pass over each curve's points; each column keeps the extremes that it meets.

std::vector<CurveColumn> step_columns(std::span<const CurvePoint> curve, double x0, double x1,
                                      std::size_t columns) {
  std::vector<CurveColumn> result(columns);
  if (columns == 0 || !(x1 > x0)) return result;
  const double width = (x1 - x0) / static_cast<double>(columns);
  // several points may share an x: each of them counts, also at the left edge
  auto point = std::ranges::lower_bound(curve, x0, {}, &CurvePoint::x);
  double current = point == curve.begin() ? 0 : std::prev(point)->y;
  if (point != curve.end() && point->x == x0) current = point->y;
  for (std::size_t i = 0; i < columns; ++i) {
    const double right = i + 1 == columns ? x1 : x0 + width * static_cast<double>(i + 1);
    CurveColumn& column = result[i] = {current, current, current};
    for (; point != curve.end() && point->x < right; ++point) {
      current = point->y;
      column.low = std::min(column.low, current);
      column.high = std::max(column.high, current);
    }
    column.last = current;
  }
  return result;
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

// --- One pass over the points of a run, and one over its blocks, largest first.

namespace {

double place_of(const plan::UsagePoint& point, CurveAxis axis, double end) {
  const double x = axis == CurveAxis::steps ? static_cast<double>(point.step) : point.seconds;
  return end > 0 ? std::clamp(x / end, 0.0, 1.0) : 0;
}

double end_of(const plan::Timeline& timeline, std::size_t steps, CurveAxis axis) {
  return axis == CurveAxis::steps ? static_cast<double>(steps) : timeline.seconds;
}

}  // namespace

std::vector<UsageColumn> usage_columns(const plan::Timeline& timeline, std::size_t steps, CurveAxis axis,
                                       unsigned mask, std::size_t columns) {
  std::vector<UsageColumn> result;
  const double end = end_of(timeline, steps, axis);
  UsageColumn now, most;
  const auto raise = [&](UsageColumn& column) {
    if (plan::sum_over(now.bytes, mask) > plan::sum_over(column.bytes, mask)) column = now;
  };
  for (const plan::UsagePoint& point : timeline.usage) {
    const auto column = static_cast<std::size_t>(place_of(point, axis, end) * static_cast<double>(columns));
    while (result.size() < std::min(column, columns - 1)) {
      result.push_back(most);
      most = now;
    }
    now = {point.bytes, point.step};
    raise(most);
  }
  if (end <= 0) return std::vector<UsageColumn>(columns, most);
  while (result.size() < columns) {
    result.push_back(most);
    most = now;
  }
  return result;
}

double axis_place(const plan::Timeline& timeline, std::size_t steps, CurveAxis axis, std::size_t step) {
  const auto at = std::ranges::lower_bound(timeline.usage, step, {}, &plan::UsagePoint::step);
  if (at == timeline.usage.end()) return 1;
  const double end = end_of(timeline, steps, axis);
  if (axis == CurveAxis::steps) return end > 0 ? std::min(static_cast<double>(step) / end, 1.0) : 0;
  return place_of(*at, axis, end);
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
