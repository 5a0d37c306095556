// Many lifetimes in little room: one row for each, or several rows to a line where they do not all fit.
#pragma once

#include "core/view/geometry.h"

#include <cstddef>
#include <span>
#include <vector>

namespace loadline::view {

// When something is there: [from, to).
struct Span {
  double from = 0;
  double to = 0;
};

struct LaneOptions {
  double tallest = 18;  // of a row
  double gap = 1;       // between rows, where they are at least four times as tall
};

// A rectangle of a lane: one span, or what a line of several joins to.
struct LaneBar {
  std::size_t first = 0;  // position in LaneLayout::rows
  std::size_t count = 1;  // rows that it joins
  Rect rect;
};

struct LaneLayout {
  std::vector<std::size_t> rows;  // the spans that are drawn, by position, top to bottom
  double row_height = 0;          // below 1: several rows share a line of height 1
  std::vector<LaneBar> bars;      // in the order of rows
};

// The spans that overlap [x0, x1), in the order given, in a rectangle of that size with x0 at its left edge.
// Spans of one line join where no gap as wide as one unit is between them, and every bar is at least one unit
// wide, so that nothing that overlaps the range is left out. O(spans + bars); linear also where many rows
// share a line, provided that spans are sorted by `from`.
LaneLayout layout_lane(std::span<const Span> spans, double x0, double x1, double width, double height,
                       const LaneOptions& options = {});

// The row at a point of that layout, as a position in `rows`; rows.size() where there is none.
std::size_t lane_row_at(const LaneLayout& layout, double y);

}  // namespace loadline::view
