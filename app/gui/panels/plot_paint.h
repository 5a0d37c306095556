// What plots of bytes have in common: the axis, a filled step curve, a marked place.
#pragma once

#include "app/gui/panels/plot_range.h"
#include "app/gui/ui.h"
#include "core/view/curves.h"

#include <optional>
#include <span>
#include <string_view>
#include <vector>

namespace loadline::gui {

// The rectangle inside the axes.
struct PlotArea {
  ImVec2 low = {};
  ImVec2 high = {};

  bool operator==(const PlotArea& other) const {
    return low.x == other.low.x && low.y == other.low.y && high.x == other.high.x && high.y == other.high.y;
  }
  float width() const { return high.x - low.x; }
  float height() const { return high.y - low.y; }
  bool overlaps(const PlotArea& other) const {
    return low.x < other.high.x && other.low.x < high.x && low.y < other.high.y && other.low.y < high.y;
  }
};
inline constexpr float kPlotAxisWidth = 74;    // of the bytes, at the left
inline constexpr float kPlotAxisHeight = 24;   // of steps or operators, below
inline constexpr double kPlotHeadroom = 1.06;  // so that a peak does not touch the frame

// Inside axes of that width at the left, of a plot from `low` to `high`; on whole pixels, as columns are.
PlotArea inside_axes(const Ui& ui, ImVec2 low, ImVec2 high, float axis_width);
// Where a share of the axis that `range` shows a part of is in the area, and the other way.
float pixel_of_share(const PlotArea& area, const PlotRange& range, double share);
double share_at_pixel(const PlotArea& area, const PlotRange& range, float pixel);
// The pixel row of that many bytes, where `most` is the top.
float plot_y(const PlotArea& area, double most, double bytes);
void paint_byte_axis(const Ui& ui, const PlotArea& area, double most);
// Solid up to the lowest value in a column, lighter up to the highest: fast saw teeth stay visible.
void paint_level(const Ui& ui, const PlotArea& area, double most, std::span<const view::CurveColumn> columns,
                 ImU32 color);
// From `from` down to `to`, or to its right.
void paint_dashed(ImVec2 from, ImVec2 to, ImU32 color, float dash, float gap, float thickness);
// A dashed line down the area, and a dot on it.
void paint_mark(const Ui& ui, const PlotArea& area, float x, ImU32 color, std::optional<float> dot);
// A label on a ground of that colour, to the right of `x` where it fits, else to its left, and below what is
// `taken` by other flags already; left out where there is no room.
void paint_flag(const Ui& ui, const PlotArea& area, float x, ImU32 color, std::string_view label,
                std::vector<PlotArea>& taken);
// A label under the axis at `x`, with its tick.
void paint_tick(const Ui& ui, const PlotArea& area, float x, std::string_view label);
// How many of them have room.
std::size_t tick_room(const Ui& ui, const PlotArea& area);

// The width of a list at the right of a plot, of the room for both; 0 where only the plot has room.
float list_width(const Ui& ui, ImVec2 room);

}  // namespace loadline::gui
