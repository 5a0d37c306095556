// Finds places for boxes in a partly filled arena: the occupied bytes, indexed by time.
#pragma once

#include "core/packing/interval_set.h"
#include "core/packing/section_model.h"

#include <cstdint>
#include <vector>

namespace loadline {

enum class Fit : std::uint8_t {
  first,  // the lowest offset
  best    // the tightest gap, lowest of equals; above everything if none is large enough
};

// A segment tree over the sections. A node stores two interval sets: the bytes of boxes that cover all of its
// sections (`whole`) and the bytes of boxes that cover some of them (`parts`). A well packed arena has few
// intervals, however many boxes there are. To find or take a place costs O(log sections) such sets.
class ArenaIndex {
 public:
  // The model must outlive the index. Its obstacles are placed at once.
  explicit ArenaIndex(const SectionModel& model);

  // Restores the state after construction.
  void clear();
  // An offset for a box at which it overlaps nothing placed so far.
  std::uint64_t find(std::uint32_t box, Fit fit);
  void take(std::uint32_t box, std::uint64_t offset);

 private:
  struct Node {
    IntervalSet whole, parts;
  };
  void add(std::size_t node, std::uint32_t first, std::uint32_t last, const SectionRange& range,
           const Interval& taken);
  void collect(std::size_t node, std::uint32_t first, std::uint32_t last, const SectionRange& range);
  void meet(const IntervalSet& taken, std::uint64_t size);
  // A range of free start offsets: from `from` up to the interval that ends the gap. The topmost gap has no
  // end.
  struct Gap {
    std::uint64_t from = 0;
    std::uint64_t spare = UINT64_MAX;  // how far the start may move up
    std::uint64_t behind = 0;          // end of the interval above the gap
  };
  Gap next_gap(std::uint64_t start, std::uint64_t alignment);
  void take_obstacles();

  const SectionModel& model_;
  std::vector<SectionModel::Obstacle> obstacles_;  // by offset
  std::vector<Node> nodes_;                        // node i has children 2i and 2i + 1; the root is 1
  // The occupied intervals of one node, from the first that may still block the box; used during find().
  struct Taken {
    const Interval* next;
    const Interval* end;
    std::uint64_t size;  // size of the box in that node's sections
  };
  std::vector<Taken> taken_;
};

}  // namespace loadline
