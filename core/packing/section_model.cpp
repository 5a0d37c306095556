// Functions that look at the whole model.
#include "core/packing/section_model.h"

#include "core/base/checked.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <tuple>

namespace loadline {
namespace {

auto key(const SectionRange& range) { return std::tuple(range.first, range.last, range.size); }

}  // namespace

std::uint64_t SectionModel::height_of(std::uint32_t box) const {
  std::uint64_t height = 0;
  for (const SectionRange& range : ranges_of(box)) height = std::max(height, range.size);
  return height;
}

bool SectionModel::over(std::uint32_t box, std::uint32_t section) const {
  const Ranges all = ranges_of(box);
  return std::ranges::any_of(
      all, [&](const SectionRange& range) { return range.first <= section && section < range.last; });
}

bool SectionModel::before(std::uint32_t a, std::uint32_t b) const {
  if (alignment_of(a) != alignment_of(b)) return alignment_of(a) < alignment_of(b);
  const Ranges x = ranges_of(a), y = ranges_of(b);
  return std::lexicographical_compare(
      x.begin(), x.end(), y.begin(), y.end(),
      [](const SectionRange& p, const SectionRange& q) { return key(p) < key(q); });
}

SectionModel reordered(const SectionModel& model, const std::vector<std::uint32_t>& order) {
  SectionModel result;
  result.sections = model.sections;
  result.obstacles = model.obstacles;
  result.ranges.reserve(model.ranges.size());
  result.ranges_from.reserve(model.ranges_from.size());
  for (const std::uint32_t box : order) {
    for (const SectionRange& range : model.ranges_of(box)) result.ranges.push_back(range);
    result.ranges_from.push_back(static_cast<std::uint32_t>(result.ranges.size()));
    if (!model.alignments.empty()) result.alignments.push_back(model.alignments[box]);
  }
  return result;
}

std::vector<std::uint32_t> by_first_section(const SectionModel& model) {
  std::vector<std::uint32_t> order(model.box_count());
  std::iota(order.begin(), order.end(), 0u);
  std::ranges::stable_sort(order, [&](std::uint32_t a, std::uint32_t b) {
    return key(*model.ranges_of(a).begin()) < key(*model.ranges_of(b).begin());
  });
  return order;
}

std::optional<std::vector<std::uint64_t>> section_sums(const SectionModel& model) {
  // begins and ends are summed separately, so that neither sum can wrap unnoticed
  std::vector<std::uint64_t> begins(model.sections + 1, 0), ends(model.sections + 1, 0);
  const auto count = [&](const SectionRange& range) {
    const auto more = checked_add(begins[range.first], range.size);
    const auto less = checked_add(ends[range.last], range.size);
    if (more) begins[range.first] = *more;
    if (less) ends[range.last] = *less;
    return more && less;
  };
  for (const SectionRange& range : model.ranges)
    if (!count(range)) return std::nullopt;
  for (const SectionModel::Obstacle& obstacle : model.obstacles)
    if (!count(obstacle.range)) return std::nullopt;
  std::vector<std::uint64_t> sums(model.sections, 0);
  std::uint64_t sum = 0;
  for (std::uint32_t section = 0; section < model.sections; ++section) {
    const auto next = checked_add(sum - ends[section], begins[section]);
    if (!next) return std::nullopt;
    sums[section] = sum = *next;
  }
  return sums;
}

std::uint64_t places_of(const SectionModel& model) {
  std::uint64_t places = 0;
  for (const SectionRange& range : model.ranges) places += range.last - range.first;
  for (const auto& obstacle : model.obstacles) places += obstacle.range.last - obstacle.range.first;
  return places;
}

template <typename T>
bool fits_in(const SectionModel& model, std::uint64_t capacity) {
  const auto sums = section_sums(model);
  if (!sums) return false;
  std::uint64_t most = 0, tops = capacity, alignment = 1;
  for (const std::uint64_t sum : *sums) most = std::max(most, sum);
  for (const std::uint64_t a : model.alignments) alignment = std::max(alignment, a);
  for (const SectionModel::Obstacle& obstacle : model.obstacles) {
    const auto top = checked_add(obstacle.offset, obstacle.range.size);
    if (!top) return false;
    tops = std::max(tops, *top);
  }
  // a start exceeds the capacity by at most one size and one alignment before the section is found to fail
  constexpr auto kLimit = static_cast<std::uint64_t>(std::numeric_limits<T>::max()) / 4;
  return most < kLimit && tops < kLimit && alignment < kLimit && most + tops + alignment < kLimit;
}

template bool fits_in<std::int32_t>(const SectionModel&, std::uint64_t);
template bool fits_in<std::int64_t>(const SectionModel&, std::uint64_t);

}  // namespace loadline
