// Draws an arena as rectangles over time and offset, with level of detail, and finds the buffer at a point.
#pragma once

#include "core/packing/problem.h"
#include "core/view/curves.h"
#include "core/view/layouts.h"

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace loadline::view {

// A buffer, or one part of it if its lifetime has gaps: ticks [lower, upper), bytes [from, to).
struct ArenaBox {
  std::uint32_t buffer = 0;
  std::uint64_t lower = 0, upper = 0;
  std::uint64_t from = 0, to = 0;
};

// Appends the boxes of a buffer at that offset; none if it has no bytes or no ticks.
void append_boxes(const packing::Buffer& buffer, std::uint32_t number, std::uint64_t offset,
                  std::vector<ArenaBox>& boxes);

// The visible part: ticks [x0, x1) from left to right, bytes [y0, y1) from the bottom up.
struct ArenaSight {
  double x0 = 0, x1 = 1, y0 = 0, y1 = 1;
  bool operator==(const ArenaSight&) const = default;
};

struct ArenaRect {
  Rect rect = {};  // origin in the upper left corner; clipped to the picture
  std::uint32_t buffer = 0;
};
// Cells that stand for boxes too small to draw: how much of the area is covered, in eighths, and the kind
// that covers most.
struct ArenaCells {
  Rect rect = {};
  std::uint8_t eighths = 0;  // 1 to 8: a covered area is never left out
  std::uint8_t kind = 0;
};
struct ArenaPicture {
  std::vector<ArenaRect> rects = {};
  std::vector<ArenaCells> cells = {};
};

inline constexpr std::uint8_t kMostArenaKinds = 16;

// Boxes of at least `least` units in both directions become rectangles, all others cells with that side.
// `kinds` gives a kind below kMostArenaKinds for each buffer. O(boxes + cells), whatever the boxes' sizes.
ArenaPicture draw_arena(std::span<const ArenaBox> boxes, std::span<const std::uint8_t> kinds,
                        const ArenaSight& sight, double width, double height, double least = 2);

// A packed arena: its boxes, its curves over time, and an index.
class ArenaChart {
 public:
  ArenaChart() = default;
  // `offsets`: by buffer. O(n log n).
  ArenaChart(const packing::Problem& problem, std::span<const std::uint64_t> offsets,
             std::uint32_t arena = 0);

  const std::vector<ArenaBox>& boxes() const { return boxes_; }
  std::uint64_t first_tick() const { return ticks_.empty() ? 0 : ticks_.front(); }
  std::uint64_t last_tick() const { return ticks_.empty() ? 0 : ticks_.back(); }
  std::uint64_t height() const { return height_; }
  // The buffer with the highest end, the first of equals; nothing if there is none.
  std::optional<std::uint32_t> highest() const { return highest_; }

  // Two curves by tick: the bytes in use, with members of a group counted once, and the highest end. The
  // difference is free memory below a buffer.
  const std::vector<CurvePoint>& taken() const { return taken_; }
  const std::vector<CurvePoint>& tops() const { return tops_; }
  double most_free() const { return most_free_; }  // of tops - taken

  // The buffer at that byte and tick; in a group the largest member. O(log^2 n).
  std::optional<std::uint32_t> buffer_at(std::uint64_t tick, std::uint64_t byte) const;

 private:
  void sweep(const packing::Problem& problem);
  void build_index();

  std::vector<ArenaBox> boxes_;  // by offset, then by end
  std::vector<std::uint64_t> ticks_;
  std::uint64_t height_ = 0;
  std::optional<std::uint32_t> highest_;
  std::vector<CurvePoint> taken_, tops_;
  double most_free_ = 0;
  // A segment tree over the intervals between ticks_. Each box of a node is alive in the node's whole
  // interval, so their byte ranges are disjoint and a bisection finds the one at an offset.
  std::vector<std::uint32_t> node_from_, node_boxes_;
};

}  // namespace loadline::view
