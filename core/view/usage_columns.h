// The usage of a run reduced to the columns of a stacked plot, and what is alive at chosen moments.
#pragma once

#include "core/plan/timeline.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace loadline::view {

enum class CurveAxis : std::uint8_t { seconds, steps };

// One moment of a run: of all that fall into a column, the first one with the greatest sum over a mask. Only
// the spaces of that mask count.
struct UsageColumn {
  PerSpace<std::uint64_t> bytes = {};
  std::size_t step = 0;
};

// A run of `steps` steps in `columns` equal columns from its start to its end. In each the moment when the
// spaces of `mask` together hold most, what they hold when the column begins included: no peak is lost,
// however short. Each column is whole: its parts were there at once. All columns of a run that takes no
// time are its highest moment. O(usage + columns).
std::vector<UsageColumn> usage_columns(const Timeline& timeline, std::size_t steps, CurveAxis axis,
                                       unsigned mask, std::size_t columns);

// Where a step is on the axis, from 0 to 1.
double axis_place(const Timeline& timeline, std::size_t steps, CurveAxis axis, std::size_t step);

struct AliveAt {
  std::vector<BlockId> largest;  // ties by id
  std::size_t count = 0;         // of all that are alive
};
// Blocks of the spaces in `mask` that are alive after each of `moments` (steps that do not decrease), at most
// `most` of each. One pass over the blocks.
std::vector<AliveAt> alive_at_steps(const Timeline& timeline, const Plan& plan,
                                    std::span<const std::size_t> moments, unsigned mask, std::size_t most);

// `from` in fewer columns: of those that become one, the one whose spaces of `mask` hold most.
std::vector<UsageColumn> fewer_columns(std::span<const UsageColumn> from, unsigned mask, std::size_t columns);

}  // namespace loadline::view
