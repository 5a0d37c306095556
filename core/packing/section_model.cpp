// Functions that look at the whole model.
#include "core/packing/section_model.h"

#include "core/base/checked_arithmetic.h"

#include <algorithm>
#include <limits>
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

double SectionModel::length_of(std::uint32_t box) const {
  double length = 0;
  for (const SectionRange& range : ranges_of(box)) length += range.last - range.first;
  return length;
}

std::uint64_t SectionModel::top_of_obstacles() const {
  std::uint64_t top = 0;
  for (const Obstacle& obstacle : obstacles) top = std::max(top, obstacle.offset + obstacle.range.size);
  return top;
}

bool SectionModel::over(std::uint32_t box, std::uint32_t section) const {
  return std::ranges::any_of(ranges_of(box), [&](const SectionRange& range) {
    return range.first <= section && section < range.last;
  });
}

bool SectionModel::before(std::uint32_t a, std::uint32_t b) const {
  if (alignment_of(a) != alignment_of(b)) return alignment_of(a) < alignment_of(b);
  return std::ranges::lexicographical_compare(ranges_of(a), ranges_of(b), {}, key, key);
}

SectionModel reordered(const SectionModel& model, const std::vector<std::uint32_t>& order) {
  SectionModel result;
  result.sections = model.sections;
  result.obstacles = model.obstacles;
  result.ranges.reserve(model.ranges.size());
  result.ranges_from.reserve(model.ranges_from.size());
  for (const std::uint32_t box : order) {
    const auto ranges = model.ranges_of(box);
    result.ranges.insert(result.ranges.end(), ranges.begin(), ranges.end());
    result.ranges_from.push_back(static_cast<std::uint32_t>(result.ranges.size()));
    if (!model.alignments.empty()) result.alignments.push_back(model.alignments[box]);
  }
  return result;
}

std::vector<std::uint32_t> by_first_section(const SectionModel& model) {
  return boxes_by(model, [&](std::uint32_t a, std::uint32_t b) {
    return key(model.ranges_of(a).front()) < key(model.ranges_of(b).front());
  });
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
