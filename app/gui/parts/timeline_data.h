// The curves of a projection, and of the upload that followed it, ready to be plotted.
#pragma once

#include "app/gui/state/workspace.h"
#include "core/view/curves.h"

#include <array>
#include <optional>
#include <string>
#include <vector>

namespace loadline::gui {

enum class TimeAxis { steps, seconds };
// Split: the device above the axis, the host's memory below it, each against its own budget. Stacked: all
// spaces as one sum, for memory that they share.
enum class TimelineShape { split, stacked };

// From the bottom of the stack: lasting memory (device) below temporary memory. Mapped pages, which no budget
// counts, come last.
inline constexpr std::array<Space, kSpaceCount> kStackOrder = {Space::device, Space::host, Space::staging,
                                                               Space::page_cache};
std::string_view space_title(Space space);

// The spaces on one side of the axis.
struct TimelineSide {
  std::vector<Space> spaces;                        // from the axis outwards; none: nothing is drawn
  std::vector<std::vector<view::CurvePoint>> sums;  // parallel to spaces: each with those before it
  std::vector<view::CurvePoint> measured;           // what the program allocated, of all of them
  Peak peak;                                        // of the spaces that budgets count
  double most = 0;                                  // of all curves
  std::optional<std::uint64_t> budget = std::nullopt;
};

struct TimelineCurves {
  TimeAxis axis = TimeAxis::steps;
  TimelineShape shape = TimelineShape::split;
  double length = 0;  // x of the end
  double modelled_length = 0;
  std::array<TimelineSide, 2> sides;  // above the axis, below it
  // Of a stack alone: what the system counted for the process, and the driver for the device.
  std::vector<view::CurvePoint> process, driver;
  std::optional<double> sampled_until = std::nullopt;  // x of the last sample while an upload runs
};

// Replaces the curves of samples by those of an upload that runs.
void take_samples(TimelineCurves& curves, const SampleLog::Entries& samples);

// `upload` may be null.
TimelineCurves timeline_curves(const Projection& projection, const UploadResult* upload, const Budget& budget,
                               TimeAxis axis, TimelineShape shape);

// Converts between places on the axis and steps of the plan.
double x_of_step(const Projection& projection, TimeAxis axis, std::size_t step);
std::size_t step_at_x(const Projection& projection, TimeAxis axis, double x);
// The step of another load at the moment on its clock that the first load's step has.
std::size_t step_in_step(const Projection& first, std::size_t step, const Projection& other);
// What the step does: "copy wte.weight to the device". Empty behind the last step.
std::string step_text(const Model& model, const Projection& projection, std::size_t step);

}  // namespace loadline::gui
