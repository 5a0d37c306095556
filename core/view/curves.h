// Step curves and the usage of a run, reduced to the columns of a plot; axes and their ticks; blocks alive at
// chosen moments.
#pragma once

#include "core/plan/timeline.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace loadline::view {

// --- Step curves reduced to the columns of a plot, and the axis ticks that go with them.

// A step curve: `y` holds from `x` until the next point. Points are in non-decreasing x.
struct CurvePoint {
  double x = 0;
  double y = 0;
};

// A curve's range inside one column of a plot. No point is lost: a spike narrower than a column still shows
// in `high`. Of equal values the first one stands.
template <typename Value>
struct ColumnRange {
  Value low = {}, high = {};
  Value last = {};  // at the column's right edge
  bool operator==(const ColumnRange&) const = default;
};
using CurveColumn = ColumnRange<double>;

// The curve over [x0, x1] in `columns` equal columns; 0 before its first point. O(points + columns).
std::vector<CurveColumn> step_columns(std::span<const CurvePoint> curve, double x0, double x1,
                                      std::size_t columns);

// The curve's value at `x`; 0 before the first point.
double value_at(std::span<const CurvePoint> curve, double x);

// Ticks from 0 to at least `most` (> 0), about `wanted` of them: a power of two bytes apart.
std::vector<double> byte_ticks(double most, std::size_t wanted);
// Ticks in [from, to] at multiples of 1, 2 or 5 times a power of ten, about `wanted` of them. None if
// neighboring ticks would be the same double.
std::vector<double> decimal_ticks(double from, double to, std::size_t wanted);

// --- The axis of a run: its steps, or the seconds on its machine's clock.

enum class RunAxis : std::uint8_t { steps, seconds };

double x_of(const plan::UsagePoint& point, RunAxis axis);
// The end of a run of `steps` steps.
double length_of(const plan::Timeline& timeline, std::size_t steps, RunAxis axis);
// Convert between places on the axis and steps. Between two moments of `usage` the clock is taken to run
// evenly: only those moments are kept.
double x_of_step(const plan::Timeline& timeline, std::size_t steps, RunAxis axis, std::size_t step);
std::size_t step_at_x(const plan::Timeline& timeline, std::size_t steps, RunAxis axis, double x);
// Samples carry the machine's clock only. The usage of the same run says which step that was.
double x_of_sample(const plan::Timeline& timeline, std::size_t steps, RunAxis axis, double seconds);

// --- Reduces the usage of a run to the columns of a stacked plot, and lists the blocks alive at chosen
// moments.

// One moment of a run that stands for its column: the first one with the greatest sum over a mask. Only the
// spaces of the mask count for the sum.
struct UsageColumn {
  plan::PerSpace<std::uint64_t> bytes = {};
  std::size_t step = 0;
};

// Divides a run of `steps` steps into `columns` equal columns. Each column shows the moment at which the
// spaces of `mask` together hold most, including the level at its start, so no peak is lost, however short.
// The parts of a column were present at the same time. If a run takes no time, all columns show its highest
// moment. O(usage + columns).
std::vector<UsageColumn> usage_columns(const plan::Timeline& timeline, std::size_t steps, RunAxis axis,
                                       unsigned mask, std::size_t columns);

struct AliveAt {
  std::vector<plan::BlockId> largest;  // ties by id
  std::size_t count = 0;               // of all blocks alive
};
// Blocks of the spaces in `mask` that are alive after each of `moments` (steps in ascending order), at most
// `most` for each moment. O(blocks log blocks + moments * most).
std::vector<AliveAt> alive_at_steps(const plan::Timeline& timeline, const plan::Plan& plan,
                                    std::span<const std::size_t> moments, unsigned mask, std::size_t most);

// Merges `from` into fewer columns; each keeps the column whose spaces of `mask` hold most.
std::vector<UsageColumn> fewer_columns(std::span<const UsageColumn> from, unsigned mask, std::size_t columns);

}  // namespace loadline::view
