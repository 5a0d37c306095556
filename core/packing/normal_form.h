// Boxes over sections of time, the reduction of a problem to them, the lower bound of every packing.
#pragma once

#include "core/packing/problem.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <optional>
#include <span>
#include <vector>

namespace loadline::packing {

// --- A packing problem in normal form: boxes over sections of time, with sizes in units.

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

// --- Reduces a problem to boxes over sections: removes details that do not matter to the search and splits
// it into independent components.

// Time is reduced to sections: the stretches of ticks whose set of living buffers is not contained in a
// neighboring stretch's set. Where no buffer lives across the border of two stretches, two components share
// the arena and nothing else. Buffers of a group become one box. Gaps in a lifetime split a box into ranges.
// Pinned buffers become obstacles, cut to each component. Sizes count in units: the greatest common divisor
// of all sizes, obstacle offsets and needed alignments. Alignments that every multiple of the unit satisfies
// are removed.
struct PackingComponent {
  SectionModel model = {};           // in units
  std::uint64_t unit = 1;            // bytes
  std::vector<Lifespan> ticks = {};  // by section; in this time all its buffers are alive
};

struct NormalForm {
  static constexpr std::uint32_t kNoBox = UINT32_MAX;
  struct Place {
    std::uint32_t component = 0;
    std::uint32_t box = kNoBox;  // none for pinned buffers and buffers never alive
  };
  std::vector<PackingComponent> components = {};
  std::vector<Place> places = {};  // by buffer
};

// The normal form of one arena's buffers. The problem must have passed check_problem. Throws Error{limit} if
// the boxes over a section need 2^62 bytes or more, or a group has no common alignment below that;
// Error{malformed} if pinned buffers overlap each other.
NormalForm normal_form(const Problem& problem, std::uint32_t arena = 0);

// --- A lower bound for the height of every packing.

// The greatest bound of any section. The boxes of a section need the sum of their sizes, rounded up to the
// common alignment of all boxes except for one box. Obstacles need the height of their highest end.
struct LowerBound {
  std::uint64_t units = 0;
  std::uint32_t section = 0;  // the first section with that need
};
LowerBound lower_bound(const SectionModel& model);

}  // namespace loadline::packing
