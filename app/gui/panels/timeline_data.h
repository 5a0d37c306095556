// The curves of a projection, and of the upload that followed it, ready to be plotted.
#pragma once

#include "app/gui/session/workspace.h"
#include "core/view/curves.h"

#include <array>
#include <string>
#include <vector>

namespace loadline::gui {

enum class TimeAxis { steps, seconds };

// From the bottom of the stack: lasting memory (device) below temporary memory.
inline constexpr std::array<Space, kSpaceCount> kStackOrder = {Space::device, Space::host, Space::staging,
                                                               Space::page_cache};
std::string_view space_title(Space space);

struct MeasuredCurve {
  std::string label;
  bool ledger = false;  // bytes that the program allocated; else bytes that the system counted
  std::vector<view::CurvePoint> points;
};

struct TimelineCurves {
  TimeAxis axis = TimeAxis::steps;
  double length = 0;  // x of the end
  double modelled_length = 0;
  std::array<std::vector<view::CurvePoint>, kSpaceCount> spaces;   // by Space
  std::array<std::vector<view::CurvePoint>, kSpaceCount> stacked;  // sums, in kStackOrder from the bottom
  std::vector<MeasuredCurve> measured;                             // of all spaces together
  std::array<std::vector<view::CurvePoint>, kSpaceCount> measured_spaces;  // what was allocated, by Space
  std::array<double, kSpaceCount> most = {};  // by Space; measured curves are not in it
  double most_stacked = 0;
  double most_measured = 0;
};

// `upload` may be null.
TimelineCurves timeline_curves(const Projection& projection, const UploadResult* upload, TimeAxis axis);

// Converts between places on the axis and steps of the plan.
double x_of_step(const Projection& projection, TimeAxis axis, std::size_t step);
std::size_t step_at_x(const Projection& projection, TimeAxis axis, double x);

}  // namespace loadline::gui
