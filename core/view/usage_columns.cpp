// One pass over the points of a run, and one over its blocks.
#include "core/view/usage_columns.h"

#include "core/plan/space_sum.h"

#include <algorithm>
#include <set>
#include <utility>

namespace loadline::view {
namespace {

double place_of(const UsagePoint& point, CurveAxis axis, double end) {
  const double x = axis == CurveAxis::steps ? static_cast<double>(point.step) : point.seconds;
  return end > 0 ? std::clamp(x / end, 0.0, 1.0) : 0;
}

double end_of(const Timeline& timeline, std::size_t steps, CurveAxis axis) {
  return axis == CurveAxis::steps ? static_cast<double>(steps) : timeline.seconds;
}

}  // namespace

std::vector<UsageColumn> usage_columns(const Timeline& timeline, std::size_t steps, CurveAxis axis,
                                       unsigned mask, std::size_t columns) {
  std::vector<UsageColumn> result;
  const double end = end_of(timeline, steps, axis);
  UsageColumn now, most;
  const auto raise = [&](UsageColumn& column) {
    if (sum_over(now.bytes, mask) > sum_over(column.bytes, mask)) column = now;
  };
  for (const UsagePoint& point : timeline.usage) {
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

double axis_place(const Timeline& timeline, std::size_t steps, CurveAxis axis, std::size_t step) {
  const auto at = std::ranges::lower_bound(timeline.usage, step, {}, &UsagePoint::step);
  if (at == timeline.usage.end()) return 1;
  const double end = end_of(timeline, steps, axis);
  if (axis == CurveAxis::steps) return end > 0 ? std::min(static_cast<double>(step) / end, 1.0) : 0;
  return place_of(*at, axis, end);
}

std::vector<AliveAt> alive_at_steps(const Timeline& timeline, const Plan& plan,
                                    std::span<const std::size_t> moments, unsigned mask, std::size_t most) {
  using Key = std::pair<std::uint64_t, std::uint32_t>;  // largest first, then by id
  std::vector<std::pair<std::size_t, Key>> begins, ends;
  for (std::size_t i = 0; i < plan.blocks.size(); ++i) {
    const Lifetime& life = timeline.lifetimes[i];
    if ((mask & space_bit(plan.blocks[i].space)) == 0 || life.from_step == kNever) continue;
    const Key key = {~plan.blocks[i].bytes, static_cast<std::uint32_t>(i)};
    begins.emplace_back(life.from_step, key);
    if (life.to_step != kNever) ends.emplace_back(life.to_step, key);
  }
  std::ranges::sort(begins);
  std::ranges::sort(ends);
  std::set<Key> alive;
  std::vector<AliveAt> result;
  auto begin = begins.begin();
  auto end = ends.begin();
  for (const std::size_t moment : moments) {
    for (; begin != begins.end() && begin->first <= moment; ++begin) alive.insert(begin->second);
    for (; end != ends.end() && end->first <= moment; ++end) alive.erase(end->second);
    AliveAt& at = result.emplace_back();
    at.count = alive.size();
    for (auto it = alive.begin(); it != alive.end() && at.largest.size() < most; ++it)
      at.largest.push_back(BlockId{it->second});
  }
  return result;
}

std::vector<UsageColumn> fewer_columns(std::span<const UsageColumn> from, unsigned mask,
                                       std::size_t columns) {
  std::vector<UsageColumn> result(std::min(columns, from.size()));
  for (std::size_t i = 0; i < from.size(); ++i) {
    UsageColumn& column = result[i * result.size() / from.size()];
    if (sum_over(from[i].bytes, mask) > sum_over(column.bytes, mask)) column = from[i];
  }
  return result;
}

}  // namespace loadline::view
