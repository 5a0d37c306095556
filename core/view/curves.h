// Step curves reduced to the columns of a plot, and the axis ticks that go with them.
#pragma once

#include <span>
#include <vector>

namespace loadline::view {

// A step curve: `y` holds from `x` until the next point. Points are in non-decreasing x.
struct CurvePoint {
  double x = 0;
  double y = 0;
};

// The curve's range inside one column of a plot. No point is lost: a spike narrower than a column still shows
// in `high`.
struct CurveColumn {
  double low = 0;
  double high = 0;
  double last = 0;  // at the column's right edge
  bool operator==(const CurveColumn&) const = default;
};

// The curve over [x0, x1) in `columns` equal columns; 0 before its first point. O(points + columns).
std::vector<CurveColumn> step_columns(std::span<const CurvePoint> curve, double x0, double x1,
                                      std::size_t columns);

// The curve's value at `x`; 0 before the first point.
double value_at(std::span<const CurvePoint> curve, double x);

// Ticks from 0 to at least `most` (> 0), about `wanted` of them: a power of two bytes apart.
std::vector<double> byte_ticks(double most, std::size_t wanted);
// Ticks in [from, to] at multiples of 1, 2 or 5 times a power of ten, about `wanted` of them. None if
// neighbouring ticks would be the same double.
std::vector<double> decimal_ticks(double from, double to, std::size_t wanted);

}  // namespace loadline::view
