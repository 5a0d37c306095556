// The visible part of an axis.
#pragma once

namespace loadline::gui {

// The visible part, as shares of the axis's length.
struct PlotRange {
  double from = 0;
  double to = 1;
  bool operator==(const PlotRange&) const = default;
};

}  // namespace loadline::gui
