// A packing problem in normal form: boxes over sections of time, in units.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace loadline {

// Sections [first, last), first < last, and how much is taken over them: `size` > 0.
struct SectionRange {
  std::uint32_t first = 0;
  std::uint32_t last = 0;
  std::uint64_t size = 0;
};

// A box takes one offset, the same over all of its ranges: most have one; a buffer with gaps in its lifetime,
// and buffers that share memory, have several of different sizes. Obstacles stand where they stand.
struct SectionModel {
  struct Obstacle {
    SectionRange range = {};
    std::uint64_t offset = 0;
  };
  struct Ranges {
    const SectionRange* from;
    const SectionRange* to;
    const SectionRange* begin() const { return from; }
    const SectionRange* end() const { return to; }
    std::size_t size() const { return static_cast<std::size_t>(to - from); }
  };

  std::uint32_t sections = 0;
  std::vector<SectionRange> ranges = {};         // of one box after the other, each from left to right
  std::vector<std::uint32_t> ranges_from = {0};  // by box, and one more: where its ranges begin
  std::vector<std::uint64_t> alignments = {};    // by box; empty where every offset will do
  std::vector<Obstacle> obstacles = {};

  std::uint32_t box_count() const { return static_cast<std::uint32_t>(ranges_from.size() - 1); }
  Ranges ranges_of(std::uint32_t box) const {
    return {ranges.data() + ranges_from[box], ranges.data() + ranges_from[box + 1]};
  }
  std::uint64_t alignment_of(std::uint32_t box) const { return alignments.empty() ? 1 : alignments[box]; }
  // Sections from the first to the last range.
  std::uint32_t first_of(std::uint32_t box) const { return ranges[ranges_from[box]].first; }
  std::uint32_t last_of(std::uint32_t box) const { return ranges[ranges_from[box + 1] - 1].last; }
  std::uint64_t height_of(std::uint32_t box) const;  // the most that it takes anywhere
  bool over(std::uint32_t box, std::uint32_t section) const;
  // An order in which boxes that are alike, in ranges and alignment, are equal.
  bool before(std::uint32_t a, std::uint32_t b) const;

  void add(const SectionRange& range) {
    ranges.push_back(range);
    ranges_from.push_back(static_cast<std::uint32_t>(ranges.size()));
  }
};

// The model with its boxes in another order: box i is what order[i] was.
SectionModel reordered(const SectionModel& model, const std::vector<std::uint32_t>& order);
// Box numbers by first section, then by last, then by what they take.
std::vector<std::uint32_t> by_first_section(const SectionModel& model);
// The most that is taken over each section, obstacles included; nothing where a sum overflows.
std::optional<std::vector<std::uint64_t>> section_sums(const SectionModel& model);
// Boxes and obstacles, each counted once for every section that it stands over.
std::uint64_t places_of(const SectionModel& model);
// Whether every sum that a search can form (twice capacity and section sum, alignment included) is in T.
template <typename T>
bool fits_in(const SectionModel& model, std::uint64_t capacity);

}  // namespace loadline
