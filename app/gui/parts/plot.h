// Axes, stacks, zooming, and the colors of tiles and memory spaces.
#pragma once

#include "app/gui/parts/theme.h"
#include "app/gui/state/base/coordinates.h"
#include "app/gui/state/workspace.h"
#include "core/view/curves.h"

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace loadline::gui {

// --- The mouse over a plot: zooming and panning.

// Handles the mouse on the last ImGui item, which is the plot. The wheel zooms around `share`, the place
// under the mouse. The right button pans an axis of `width` pixels. A double click shows everything.
void zoom_with_mouse(PlotRange& range, double share, float width);

// The same in both directions at once: `share_y` and `height` count from below. With Shift only the first is
// zoomed, with Ctrl only the second.
void zoom_with_mouse(PlotRange& across, PlotRange& up, double share_x, double share_y, float width,
                     float height);

// --- Painting shared by plots of bytes: axes, filled step curves, marks and labels.

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

// The area inside the axes of a plot from `low` to `high`, with `axis_width` at the left; on whole pixels, as
// columns are.
PlotArea inside_axes(const Ui& ui, ImVec2 low, ImVec2 high, float axis_width);
// Converts between a share of the whole axis and a pixel in the area, which shows the part `range`.
float pixel_of_share(const PlotArea& area, const PlotRange& range, double share);
double share_at_pixel(const PlotArea& area, const PlotRange& range, float pixel);
// The pixel row of `bytes`, if `most` bytes are at the top.
float plot_y(const PlotArea& area, double most, double bytes);
// The label of a tick. Ticks are powers of two: "128 GiB", not "128.00 GiB".
std::string tick_label(std::uint64_t bytes);
void paint_byte_axis(const Ui& ui, const PlotArea& area, double most);
// Fills each column solid up to its lowest value, lighter up to its highest, so that short peaks stay
// visible.
void paint_level(const Ui& ui, const PlotArea& area, double most, std::span<const view::CurveColumn> columns,
                 ImU32 color);
// Paints a dashed line from `from` down or right to `to`.
void paint_dashed(ImVec2 from, ImVec2 to, ImU32 color, float dash, float gap, float thickness);
// Paints a dashed vertical line in the area, with a dot on it.
void paint_mark(const Ui& ui, const PlotArea& area, float x, ImU32 color, std::optional<float> dot);
// Paints a label on a ground of `color`, to the right of `x` if it fits, else to the left, and below the
// flags in `taken`. Paints nothing if there is no room. Returns where it is.
std::optional<PlotArea> paint_flag(const Ui& ui, const PlotArea& area, float x, ImU32 color,
                                   std::string_view label, std::vector<PlotArea>& taken);
// Paints the name of a curve beside the point `at` of it, where nothing in `taken` is and, if there is room
// nearby, none of `lines`; with a bar of `color` and, from further off, a line to the point. Paints nothing
// if there is no room.
void paint_curve_name(const Ui& ui, const PlotArea& area, ImVec2 at, ImU32 color, std::string_view name,
                      std::span<const PlotArea> lines, std::vector<PlotArea>& taken);
// A label under the axis at `x`, with its tick.
void paint_tick(const Ui& ui, const PlotArea& area, float x, std::string_view label);
// The number of ticks that have room under the area.
std::size_t tick_room(const Ui& ui, const PlotArea& area);

// The width of a list at the right of a plot, in the room for both; 0 if only the plot has room.
float list_width(const Ui& ui, ImVec2 room);

// --- The color of a tile of the map, and its row in the legend.

// `category` is the row of the legend: a role, an index in Model::dtypes, a layer or a file; -1 = none.
struct Paint {
  int category = -1;
  ImU32 color = 0;
};

Paint paint_of(const Model& model, const Theme& theme, ColorBy mode, graph::TensorId id);
// The ground of a tensor that differs that way from one of another model. Red is for what is over a budget.
ImU32 diff_color(const Theme& theme, DiffKind kind);
Paint paint_of_difference(const ModelDiff& diff, const Theme& theme, graph::TensorId id);
Paint paint_of_difference(const ModelDiff& diff, const Theme& theme, graph::NodeId module);
// With more files than there are colors, the files have a ramp from the first to the last.
bool has_file_ramp(const Model& model, const Theme& theme);
ImU32 file_color(const Model& model, const Theme& theme, std::size_t file);
// The paint of a module whose tensors are too small to draw: by the role or layer in its path, or the type or
// file of at least half of its bytes.
Paint paint_of_module(const Model& model, const Theme& theme, ColorBy mode, graph::NodeId node);
// The legend of the colors that the map and the strips of files share: at the cursor, or behind the last item
// unless it is `first`; in at most so many lines, without the rows that have no more room. Returns the
// category of paint_of() under the mouse, else -1. `diff` may be null.
int coloring_legend(const Ui& ui, const Model& model, ColorBy mode, const ModelDiff* diff, bool first,
                    int lines = 1);
// Slanted red lines over what finds no room.
void hatch_over(const Ui& ui, ImVec2 low, ImVec2 high);
// Fills a rectangle with the color of a space, and hatches it: level lines for the host, upright ones for
// the page cache.
void paint_space(const Ui& ui, plan::Space space, ImVec2 low, ImVec2 high);

}  // namespace loadline::gui
