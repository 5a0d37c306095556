// The visible part of an axis, and the mouse that changes it.
#pragma once

namespace loadline::gui {

// As shares of the axis's length.
struct PlotRange {
  double from = 0;
  double to = 1;
  bool operator==(const PlotRange&) const = default;
};

// For the last item, which is the plot: the wheel zooms around `share`, the place under the mouse; the right
// button pulls, on an axis of `width` pixels; a double click shows everything.
void zoom_with_mouse(PlotRange& range, double share, float width);

// The same in both directions at once: `share_y` and `height` count from below. With Shift only the first is
// zoomed, with Ctrl only the second.
void zoom_with_mouse(PlotRange& across, PlotRange& up, double share_x, double share_y, float width,
                     float height);

}  // namespace loadline::gui
