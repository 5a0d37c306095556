// Where boxes of an arena may still be placed: what is taken, by time.
#pragma once

#include "core/packing/interval_set.h"
#include "core/packing/section_model.h"

#include <cstdint>
#include <vector>

namespace loadline {

enum class Fit : std::uint8_t {
  first,  // the lowest offset
  best    // the gap with the least to spare, the lowest of these; above everything where none is large enough
};

// A binary tree over the sections. A node knows what boxes take that stand over all of it (`whole`), and
// what those take that stand over parts of it (`parts`), each as intervals: in a well packed arena there are
// few, however many boxes there are. Finding and taking a place cost O(log sections) such sets.
class ArenaIndex {
 public:
  // The model outlives the index. Its obstacles are placed.
  explicit ArenaIndex(const SectionModel& model);

  // As made.
  void clear();
  // An offset for a box that meets nothing placed so far.
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
  // Starts from `from` on that nothing is in the way of, up to the part that ends them; none does at the top.
  struct Gap {
    std::uint64_t from = 0;
    std::uint64_t spare = UINT64_MAX;  // how far up
    std::uint64_t behind = 0;          // where that part ends
  };
  Gap next_gap(std::uint64_t start, std::uint64_t alignment);
  void take_obstacles();

  const SectionModel& model_;
  std::vector<SectionModel::Obstacle> obstacles_;  // by offset
  std::vector<Node> nodes_;                        // of node i: children 2i and 2i + 1; 1 is the root
  // What is taken in one node, from the first part on that may still be in a box's way; while find() runs.
  struct Taken {
    const Interval* next;
    const Interval* end;
    std::uint64_t size;  // of the box there
  };
  std::vector<Taken> taken_;
};

}  // namespace loadline
