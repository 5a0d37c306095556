// What plots of bytes have in common: the axis, a filled step curve, a marked place.
#pragma once

#include "app/gui/ui.h"
#include "core/view/curves.h"

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace loadline::gui {

// The rectangle inside the axes.
struct PlotArea {
  ImVec2 low = {};
  ImVec2 high = {};
};
inline constexpr float kPlotAxisWidth = 74;    // of the bytes, at the left
inline constexpr float kPlotAxisHeight = 24;   // of steps or operators, below
inline constexpr double kPlotHeadroom = 1.06;  // so that a peak does not touch the frame

// The pixel row of that many bytes, where `most` is the top.
float plot_y(const PlotArea& area, double most, double bytes);
void paint_byte_axis(const Ui& ui, const PlotArea& area, double most);
// Solid up to the lowest value in a column, lighter up to the highest: fast saw teeth stay visible.
void paint_level(const Ui& ui, const PlotArea& area, double most, std::span<const view::CurveColumn> columns,
                 ImU32 color);
void paint_dashed(ImDrawList& draw, ImVec2 from, ImVec2 to, ImU32 color, float dash, float thickness);
// A label on a ground of that colour, to the right of `x` where it fits, else to its left, and below what is
// `taken` by other flags already; left out where there is no room.
void paint_flag(const Ui& ui, const PlotArea& area, float x, ImU32 color, std::string_view label,
                std::vector<PlotArea>& taken);
// A label under the axis at `x`, with its tick.
void paint_tick(const Ui& ui, const PlotArea& area, float x, std::string_view label);

}  // namespace loadline::gui
