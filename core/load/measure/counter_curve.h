// What a plan holds and what was counted while it ran, over its steps, as columns of equal width.
#pragma once

#include "core/plan/timeline.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace loadline {

// A count of bytes while a step ran.
struct StepCount {
  std::size_t step = 0;
  std::uint64_t bytes = 0;
};

// The maximum in each column.
struct CounterCurve {
  std::vector<std::uint64_t> projected, measured;
};

// `usage` is summed over `spaces` (bits of space_bit()). Both lists are in the order of steps, of which there
// are `steps`. `columns` > 0.
CounterCurve counter_curve(std::span<const UsagePoint> usage, unsigned spaces,
                           std::span<const StepCount> counted, std::size_t steps, std::size_t columns);

// The maximum of both curves.
std::uint64_t most_of(const CounterCurve& curve);

}  // namespace loadline
