// One pass over each curve's points; each column keeps the extremes that it meets.
#include "core/view/curves.h"

#include <algorithm>
#include <cmath>

namespace loadline::view {

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
  // from 2^53 on neighbouring indices are the same double
  constexpr double kMostIndex = 0x1p53;
  const double first = std::ceil(from / step), last = std::floor(to / step);
  if (!(std::abs(first) < kMostIndex && std::abs(last) < kMostIndex)) return {};
  std::vector<double> ticks;
  // computed from the index, so that errors do not add up
  for (double i = first; i <= last && ticks.size() <= wanted; ++i) ticks.push_back(i * step);
  return ticks;
}

}  // namespace loadline::view
