// Each level counts from its own column until the next one is reached.
#include "core/load/measure/counter_curve.h"

#include "core/plan/space_sum.h"

#include <algorithm>
#include <cassert>

namespace loadline {
namespace {

class Columns {
 public:
  Columns(std::size_t steps, std::size_t columns)
      : steps_(std::max<std::size_t>(steps, 1)), most_(columns, 0) {}

  void add(std::size_t step, std::uint64_t bytes) {
    const std::size_t to = std::min(step * most_.size() / steps_, most_.size() - 1);
    reach(to);
    level_ = bytes;
    most_[to] = std::max(most_[to], bytes);
  }
  std::vector<std::uint64_t> take() {
    reach(most_.size() - 1);
    return std::move(most_);
  }

 private:
  void reach(std::size_t to) {
    for (; at_ < to; ++at_) most_[at_ + 1] = std::max(most_[at_ + 1], level_);
  }

  std::size_t steps_;
  std::vector<std::uint64_t> most_;
  std::size_t at_ = 0;
  std::uint64_t level_ = 0;
};

}  // namespace

CounterCurve counter_curve(std::span<const UsagePoint> usage, unsigned spaces,
                           std::span<const StepCount> counted, std::size_t steps, std::size_t columns) {
  assert(columns > 0);
  Columns projected(steps, columns), measured(steps, columns);
  for (const UsagePoint& point : usage) projected.add(point.step, sum_over(point.bytes, spaces));
  for (const StepCount& count : counted) measured.add(count.step, count.bytes);
  return {projected.take(), measured.take()};
}

std::uint64_t most_of(const CounterCurve& curve) {
  std::uint64_t most = 0;
  for (const auto* list : {&curve.projected, &curve.measured})
    for (const std::uint64_t bytes : *list) most = std::max(most, bytes);
  return most;
}

}  // namespace loadline
