// A packing problem in normal form: boxes over sections of time, with sizes in units.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <optional>
#include <span>
#include <vector>

namespace loadline {

// Sections [first, last), first < last, in which `size` > 0 units are occupied.
struct SectionRange {
  std::uint32_t first = 0;
  std::uint32_t last = 0;
  std::uint64_t size = 0;
};

// A box has one offset for all of its ranges. Most boxes have one range. Buffers with gaps in their lifetime,
// and buffers that share memory, have several, of different sizes. Obstacles have fixed offsets.
struct SectionModel {
  struct Obstacle {
    SectionRange range = {};
    std::uint64_t offset = 0;
  };

  std::uint32_t sections = 0;
  std::vector<SectionRange> ranges = {};         // box after box; for each box from left to right
  std::vector<std::uint32_t> ranges_from = {0};  // by box: index of its first range; one extra entry
  std::vector<std::uint64_t> alignments = {};    // by box; empty if all are 1
  std::vector<Obstacle> obstacles = {};

  std::uint32_t box_count() const { return static_cast<std::uint32_t>(ranges_from.size() - 1); }
  std::span<const SectionRange> ranges_of(std::uint32_t box) const {
    return {ranges.data() + ranges_from[box], ranges.data() + ranges_from[box + 1]};
  }
  std::uint64_t alignment_of(std::uint32_t box) const { return alignments.empty() ? 1 : alignments[box]; }
  // The first section of the first range, and the end of the last range.
  std::uint32_t first_of(std::uint32_t box) const { return ranges[ranges_from[box]].first; }
  std::uint32_t last_of(std::uint32_t box) const { return ranges[ranges_from[box + 1] - 1].last; }
  std::uint64_t height_of(std::uint32_t box) const;  // its greatest size in any section
  double length_of(std::uint32_t box) const;         // number of sections that it covers
  bool over(std::uint32_t box, std::uint32_t section) const;
  // A strict order in which boxes with equal ranges and alignments are equivalent.
  bool before(std::uint32_t a, std::uint32_t b) const;

  std::uint64_t top_of_obstacles() const;  // 0 if there are none
};

// The model with its boxes in another order: the new box i is the old box order[i].
SectionModel reordered(const SectionModel& model, const std::vector<std::uint32_t>& order);
// Box numbers sorted by `before`; equal boxes in ascending order.
template <typename Before>
std::vector<std::uint32_t> boxes_by(const SectionModel& model, const Before& before) {
  std::vector<std::uint32_t> boxes(model.box_count());
  std::iota(boxes.begin(), boxes.end(), 0u);
  std::ranges::stable_sort(boxes, before);
  return boxes;
}
// Box numbers sorted by first section, then by last section, then by size.
std::vector<std::uint32_t> by_first_section(const SectionModel& model);
// The sum of sizes over each section, obstacles included; absent if a sum overflows.
std::optional<std::vector<std::uint64_t>> section_sums(const SectionModel& model);
// The number of boxes and obstacles, each counted once for every section that it covers.
std::uint64_t places_of(const SectionModel& model);
// Whether T can represent every sum that a search forms: twice capacity and section sum, and the alignment.
template <typename T>
bool fits_in(const SectionModel& model, std::uint64_t capacity);

}  // namespace loadline
