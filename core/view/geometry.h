// Plain shapes in whatever unit the caller draws in.
#pragma once

namespace loadline::view {

// Half-open: contains its left and top edges, not its right and bottom ones.
struct Rect {
  double x = 0;
  double y = 0;
  double w = 0;
  double h = 0;

  double area() const { return w * h; }
  bool contains(double px, double py) const { return px >= x && px < x + w && py >= y && py < y + h; }
  bool operator==(const Rect&) const = default;
};

}  // namespace loadline::view
