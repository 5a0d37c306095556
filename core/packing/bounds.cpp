// Sums sizes over sections.
#include "core/packing/bounds.h"

#include "core/base/checked_arithmetic.h"

#include <algorithm>
#include <numeric>

namespace loadline {
namespace {

// Section sums with every size rounded up to the alignment. Adds up differences: O(ranges + sections).
std::vector<std::uint64_t> padded_sums(const SectionModel& model, std::uint64_t alignment) {
  std::vector<std::uint64_t> change(model.sections + 1, 0), sums(model.sections, 0);
  for (const SectionRange& range : model.ranges) {
    change[range.first] += align_up(range.size, alignment);
    change[range.last] -= align_up(range.size, alignment);  // may wrap around; the sums wrap back
  }
  std::partial_sum(change.begin(), change.end() - 1, sums.begin());
  return sums;
}

}  // namespace

LowerBound lower_bound(const SectionModel& model) {
  std::uint64_t alignment = 0;
  for (const std::uint64_t a : model.alignments) alignment = std::gcd(alignment, a);
  if (alignment == 0 || !model.obstacles.empty()) alignment = 1;
  std::uint64_t padding = 0;
  for (const SectionRange& range : model.ranges)
    padding = std::max(padding, align_up(range.size, alignment) - range.size);
  LowerBound bound;
  const auto raise = [&](std::uint64_t units, std::uint32_t section) {
    if (units > bound.units) bound = {units, section};
  };
  const std::vector<std::uint64_t> padded = padded_sums(model, alignment);
  const auto sums = section_sums(model);
  for (std::uint32_t section = 0; section < model.sections; ++section) {
    raise((*sums)[section], section);
    if (padded[section] > padding) raise(padded[section] - padding, section);
  }
  for (const auto& obstacle : model.obstacles)
    raise(obstacle.offset + obstacle.range.size, obstacle.range.first);
  return bound;
}

}  // namespace loadline
