// The mouse over a plot: zooming and panning.
#pragma once

#include "app/gui/state/base/plot_range.h"

namespace loadline::gui {

// Handles the mouse on the last ImGui item, which is the plot. The wheel zooms around `share`, the place
// under the mouse. The right button pans an axis of `width` pixels. A double click shows everything.
void zoom_with_mouse(PlotRange& range, double share, float width);

// The same in both directions at once: `share_y` and `height` count from below. With Shift only the first is
// zoomed, with Ctrl only the second.
void zoom_with_mouse(PlotRange& across, PlotRange& up, double share_x, double share_y, float width,
                     float height);

}  // namespace loadline::gui
