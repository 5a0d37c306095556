// Draws many lifetimes in little space: one row each, or several rows per line if they do not all fit.
#pragma once

#include "core/view/geometry.h"

#include <cstddef>
#include <span>
#include <vector>

namespace loadline::view {

// The time range [from, to) of one lifetime.
struct Span {
  double from = 0;
  double to = 0;
};

struct LaneOptions {
  double tallest = 18;  // maximal height of a row
  double gap = 1;       // between rows; left out if rows are lower than four times this
};

// A rectangle in a lane: one span, or several spans of a line merged.
struct LaneBar {
  std::size_t first = 0;  // position in LaneLayout::rows
  std::size_t count = 1;  // number of rows merged
  Rect rect;
};

struct LaneLayout {
  std::vector<std::size_t> rows;  // positions of the drawn spans, top to bottom
  double row_height = 0;          // below 1: several rows share a line of height 1
  std::vector<LaneBar> bars;      // in the order of rows
};

// Lays out the spans that overlap [x0, x1), in the given order, in a rectangle of width x height with x0 at
// its left edge. If rows share a line, spans in it merge unless a gap of one unit or more is between them.
// Every bar is at least one unit wide, so that no overlapping span is left out. O(spans + bars); this holds
// for shared lines only if the spans are sorted by `from`.
LaneLayout layout_lane(std::span<const Span> spans, double x0, double x1, double width, double height,
                       const LaneOptions& options = {});

// The row at height `y` of the layout, as a position in `rows`; rows.size() if there is none.
std::size_t lane_row_at(const LaneLayout& layout, double y);

}  // namespace loadline::view
