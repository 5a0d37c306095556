// The visible range decides which rows exist, so zooming in makes rows taller.
#include "core/view/lanes.h"

#include <algorithm>
#include <cmath>

namespace loadline::view {
namespace {

// The edges of a span inside the rectangle, at least one unit apart.
Span drawn(const Span& span, double x0, double scale, double width) {
  const double left = std::clamp((span.from - x0) * scale, 0.0, std::max(width - 1, 0.0));
  const double right = std::clamp((span.to - x0) * scale, left + 1, std::max(width, left + 1));
  return {left, right};
}

}  // namespace

LaneLayout layout_lane(std::span<const Span> spans, double x0, double x1, double width, double height,
                       const LaneOptions& options) {
  LaneLayout layout;
  if (!(x1 > x0) || !(width >= 1) || !(height >= 1)) return layout;
  for (std::size_t i = 0; i < spans.size(); ++i)
    if (spans[i].from < x1 && spans[i].to > x0 && spans[i].to > spans[i].from) layout.rows.push_back(i);
  const auto count = static_cast<double>(layout.rows.size());
  if (layout.rows.empty()) return layout;
  const double scale = width / (x1 - x0);
  layout.row_height = std::min(options.tallest, height / count);
  if (layout.row_height >= 1) {
    const double gap = layout.row_height >= 4 * options.gap ? options.gap : 0;
    for (std::size_t row = 0; row < layout.rows.size(); ++row) {
      const Span edges = drawn(spans[layout.rows[row]], x0, scale, width);
      layout.bars.push_back({row,
                             1,
                             {edges.from, static_cast<double>(row) * layout.row_height, edges.to - edges.from,
                              layout.row_height - gap}});
    }
    return layout;
  }
  const auto lines = static_cast<std::size_t>(height);
  for (std::size_t line = 0; line < lines; ++line) {
    const std::size_t first = line * layout.rows.size() / lines;
    const std::size_t end = (line + 1) * layout.rows.size() / lines;
    std::size_t begin = first;  // first row of the merged bar
    const auto bar = [&](const Span& edges, std::size_t behind) {
      layout.bars.push_back(
          {begin, behind - begin, {edges.from, static_cast<double>(line), edges.to - edges.from, 1}});
      begin = behind;
    };
    Span joined = drawn(spans[layout.rows[first]], x0, scale, width);
    for (std::size_t row = first + 1; row < end; ++row) {
      const Span edges = drawn(spans[layout.rows[row]], x0, scale, width);
      if (edges.from > joined.to + 1 || edges.to < joined.from - 1) {
        bar(joined, row);
        joined = edges;
      } else {
        joined = {std::min(joined.from, edges.from), std::max(joined.to, edges.to)};
      }
    }
    bar(joined, end);
  }
  return layout;
}

std::size_t lane_row_at(const LaneLayout& layout, double y) {
  if (layout.rows.empty() || y < 0) return layout.rows.size();
  const double rows = std::floor(y / layout.row_height);
  return rows < static_cast<double>(layout.rows.size()) ? static_cast<std::size_t>(rows) : layout.rows.size();
}

}  // namespace loadline::view
