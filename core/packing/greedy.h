// Where a box fits in a partly filled arena; greedy orders, the squeaky wheel, best fit in the order of time,
// TensorFlow Lite's planner.
#pragma once

#include "core/packing/normal_form.h"
#include "core/packing/problem.h"
#include "core/packing/search_control.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

namespace loadline::packing {

// --- A set of disjoint intervals that merges intervals as they are added.

// [from, to), from < to.
struct Interval {
  std::uint64_t from = 0;
  std::uint64_t to = 0;
};

// The union of all added intervals, in ascending order; touching intervals are merged.
class IntervalSet {
 public:
  void add(const Interval& interval) {
    const auto begin = std::ranges::lower_bound(parts_, interval.from, {}, &Interval::to);
    auto end = begin;
    Interval sum = interval;
    for (; end != parts_.end() && end->from <= interval.to; ++end)
      sum = {std::min(sum.from, end->from), std::max(sum.to, end->to)};
    if (begin == end) {
      parts_.insert(begin, sum);
    } else {
      *begin = sum;
      parts_.erase(begin + 1, end);
    }
  }
  void clear() { parts_.clear(); }
  const std::vector<Interval>& parts() const { return parts_; }

 private:
  std::vector<Interval> parts_;
};

// --- Finds places for boxes in a partly filled arena: the occupied bytes, indexed by time.

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

// --- Places one box after the other: fast heuristics for problems of any size.

// The order in which boxes are placed, and how each finds its place.
struct GreedyRule {
  std::string_view id;
  Fit fit;
  // Whether a goes before b; ties by number.
  bool (*before)(const SectionModel& model, std::uint32_t a, std::uint32_t b);
};
// The first rule is TensorFlow Lite's planner: boxes alive throughout first, then the largest, then the
// earliest.
std::span<const GreedyRule> greedy_rules();

std::vector<std::uint32_t> order_by(const SectionModel& model, const GreedyRule& rule);

struct GreedyPacking {
  std::vector<std::uint64_t> offsets = {};  // by box
  std::uint64_t height = UINT64_MAX;        // including obstacles; UINT64_MAX: the attempt was abandoned
};

// Abandons the packing as soon as a box ends above `most` or `rule` is due. `most` is in units and at most
// kHighestPacking in bytes. `index` belongs to the model and is cleared first.
GreedyPacking pack_in_order(const SectionModel& model, ArenaIndex& index,
                            std::span<const std::uint32_t> order, Fit fit, std::uint64_t most,
                            const StopRule& rule = {});

// Squeaky wheel (Joslin and Clements 1999): boxes that end above `target` move forward in the next round's
// order. Starts from `order`, whose packing has `height`. Stops at `target`, after `rounds` rounds, or when
// `rule` is due. Returns the best packing lower than `height`; its height is UINT64_MAX if there is none.
GreedyPacking squeaky_wheel(const SectionModel& model, ArenaIndex& index, std::vector<std::uint32_t> order,
                            Fit fit, std::uint64_t height, std::uint64_t target, std::uint64_t rounds,
                            std::uint64_t seed, const StopRule& rule);

// --- An online allocator, which does not know the future: places each box, in order of time, in the smallest
// hole that is large enough.

// A fast packing for problems of any size: O(n log n). Boxes with several ranges count as alive from the
// first to the last range. All boxes lie above every obstacle. Abandoned (height UINT64_MAX) if it exceeds
// `most`.
GreedyPacking pack_by_time(const SectionModel& model, std::uint64_t most);

// --- The baseline for comparisons: TensorFlow Lite's planner.

// The planner's height in each arena. It places boxes alive throughout first, then the largest, then the
// earliest, each in the tightest gap that is large enough. Absent if the height exceeds 2^62 or `rule` is
// due. Throws as check_problem() and normal_form().
std::vector<std::optional<std::uint64_t>> greedy_by_size_heights(const Problem& problem,
                                                                 const StopRule& rule = {});
// The greatest height of all arenas.
std::optional<std::uint64_t> greedy_by_size_height(const Problem& problem, const StopRule& rule = {});

}  // namespace loadline::packing
