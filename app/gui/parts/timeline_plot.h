// Usage over steps or seconds as curves, and the plot that draws them.
#pragma once

#include "app/gui/parts/plot.h"
#include "app/gui/parts/theme.h"
#include "app/gui/state/load/load.h"
#include "app/gui/state/workspace.h"
#include "core/view/curves.h"

#include <array>
#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace loadline::gui {

// --- The curves of a projection, and of the upload that followed it, ready to be plotted.

// Split: the device above the axis, the host's memory below it, each against its own budget. Stacked: all
// spaces as one sum, for memory that they share.
enum class TimelineShape { split, stacked };

// The spaces on one side of the axis.
struct TimelineSide {
  std::vector<plan::Space> spaces;                  // from the axis outwards; none: nothing is drawn
  std::vector<std::vector<view::CurvePoint>> sums;  // parallel to spaces: each with those before it
  // Parallel to spaces: what has arrived in it, above those before it; empty where that is not known.
  std::vector<std::vector<view::CurvePoint>> arrived = {};
  std::vector<view::CurvePoint> measured;  // what the program allocated, of all of them
  plan::Peak peak;                         // of the spaces that budgets count
  double most = 0;                         // of all curves
  std::optional<std::uint64_t> budget = std::nullopt;
};

struct TimelineCurves {
  view::RunAxis axis = view::RunAxis::steps;
  TimelineShape shape = TimelineShape::split;
  double length = 0;  // x of the end
  double modeled_length = 0;
  std::array<TimelineSide, 2> sides;  // above the axis, below it
  // Of a stack alone: what the system counted for the process, and the driver for the device.
  std::vector<view::CurvePoint> process, driver;
  std::optional<double> sampled_until = std::nullopt;  // x of the last sample while an upload runs
};

// Replaces the curves of samples by those of an upload that runs.
void take_samples(TimelineCurves& curves, const load::SampleLog::Entries& samples);

// `upload` and `arrivals` may be null.
TimelineCurves timeline_curves(const load::Projection& projection, const UploadResult* upload,
                               const load::Budget& budget, view::RunAxis axis, TimelineShape shape,
                               const Arrivals* arrivals = nullptr);

// --- The time axis that timeline, Load and Lifetimes share: their plots begin and end at the same pixels.

// The end of the axis, in its unit: of the load, of one that is played beside it or previewed, and of its
// upload.
double axis_length(const Workspace& workspace);
// The place of a panel's plot on the axis. It leaves the timeline the room for its labels, and the timeline
// takes its edges.
PlotArea on_time_axis(const Ui& ui, Document& document, PlotArea area);
// Its labels below the area.
void paint_time_axis(const Ui& ui, const PlotArea& area, const PlotRange& range, view::RunAxis unit,
                     double length);
// The line of a budget, the same in every chart: level, in the color of text. Red is what lies above it.
void paint_budget_line(const Ui& ui, float left, float right, float y);
// "step 1,204" or "3.1 s".
std::string moment_text(view::RunAxis unit, double x);
// The switch between the units of the axis.
inline constexpr std::array<std::string_view, 2> kAxisUnits = {"Steps", "Time"};
void unit_switch(const Ui& ui, Document& document);
// The color of what is allocated in a space while nothing has arrived there, and of what has arrived.
ImU32 allocated_color(const Theme& theme, plan::Space space);
ImU32 arrived_color(const Theme& theme, plan::Space space);
// The space with the largest peak.
plan::Space largest_space(const load::Projection& projection);

// The step of another load at the moment on its clock that the first load's step has.
std::size_t step_at_same_time(const load::Projection& first, std::size_t step, const load::Projection& other);
// What the step does: "copy wte.weight to the device". Empty behind the last step.
std::string step_text(const Model& model, const load::Projection& projection, std::size_t step);

// --- The map at a time: the legend of where the bytes are, and the chip that says when.

// What a tile has as long as none of its bytes has arrived.
ImU32 unloaded_color(const Ui& ui, ImU32 color);
// The same of what the model has most of, in a square of a legend.
void paint_unloaded(const Model& model, const Ui& ui, const PlotArea& square);
// What is held in a space now, of each map that is not empty; empty if none holds anything there.
std::string held_figures(const std::array<HeldBytes, 2>& maps, plan::Space space);
// "at the end", with a cross, as a choice that is on; true when it was clicked.
bool moment_chip(const Ui& ui, std::string_view words);
float moment_chip_width(const Ui& ui, std::string_view words);

// --- Draws the curves of a projection into a rectangle: one side above the axis, the other below it, on one
// scale.

inline constexpr float kLevelLabels = 100;  // room for the names of lines, at the right of the plot

// A height that is worth a line: the weights, twice the weights.
struct TimelineLevel {
  std::uint64_t bytes = 0;
  std::string label;
};

// Keeps the columns of every curve for one width and range, and remakes them if width or range change.
class TimelinePlot {
 public:
  void set_curves(TimelineCurves curves, std::vector<TimelineLevel> levels);
  const TimelineCurves& curves() const { return curves_; }
  // As gui::take_samples(), of the curves that are set.
  void take_samples(const load::SampleLog::Entries& samples);
  // Another load's curves, drawn over these as dashed outlines with a label; none: nothing.
  void set_ghost(std::optional<TimelineCurves> ghost, std::string label);

  struct Frame {
    PlotArea area;  // inside the axes
    PlotRange range;
  };

  void draw(const Ui& ui, const Frame& frame);
  // Whether the last frame shows memory that is allocated and whose bytes have not arrived.
  bool shows_waiting() const { return shows_waiting_; }
  // Draws a dashed line at `x` over both sides.
  void mark(const Ui& ui, const Frame& frame, double x, ImU32 color) const;
  // Draws the label of a mark; after all marks, so that none goes through a label. Returns where it is.
  std::optional<PlotArea> label_mark(const Ui& ui, const Frame& frame, double x, ImU32 color,
                                     std::string_view label);
  // Draws a dot and a label at the peak of a side.
  void mark_peak(const Ui& ui, const Frame& frame, std::size_t side, double x, std::string_view label);
  // Names the other load; after the peaks, whose labels it leaves free.
  void label_ghosts(const Ui& ui, const Frame& frame) {
    for (std::size_t i = 0; i < side_columns_.size(); ++i) label_ghost(ui, frame, i);
  }
  float pixel_of(const Frame& frame, double x) const;

 private:
  // One side's place: bytes grow from `base` towards `far`.
  struct Lane {
    float left = 0, right = 0, base = 0, far = 0;
    double most = 0;  // bytes at `far`
    float y(double bytes) const;
    float towards(float pixels) const { return far < base ? -pixels : pixels; }
  };
  using Columns = std::vector<view::CurveColumn>;
  struct SideColumns {
    std::vector<Columns> sums, arrived;
    Columns measured, ghost;
  };

  double top_of(std::size_t side) const;
  std::array<Lane, 2> lanes(const Ui& ui, const Frame& frame) const;
  // Where a label of that size lies at a place of a curve without covering it or another label.
  PlotArea place_of_label(const Ui& ui, const Frame& frame, std::size_t side, ImVec2 at, ImVec2 size) const;
  void refresh(std::size_t columns, const PlotRange& range);
  void draw_byte_axis(const Ui& ui, const Lane& lane) const;
  struct Inks {
    // Below the lowest value of a column, up to its highest, on that; and between that and what is above.
    ImU32 body = 0, teeth = 0, edge = 0, gap = 0;
  };
  void draw_level(const Ui& ui, const Lane& lane, const Columns& columns, const Inks& inks) const;
  void draw_levels(const Ui& ui, const Lane& lane, const TimelineSide& side,
                   const SideColumns& columns) const;
  void draw_excess(const Ui& ui, const Lane& lane, const Columns& columns, std::uint64_t budget) const;
  // `until`: x at which the line ends.
  void draw_ghost(const Ui& ui, const Lane& lane, const Columns& columns);
  void label_ghost(const Ui& ui, const Frame& frame, std::size_t side);
  void draw_line(const Ui& ui, const Lane& lane, const Columns& columns, ImU32 color, float width,
                 std::optional<double> until = {}) const;
  void draw_lines_of_levels(const Ui& ui, const Lane& lane, const TimelineSide& side);

  TimelineCurves curves_;
  std::optional<TimelineCurves> ghost_;
  std::string ghost_label_;
  std::vector<TimelineLevel> levels_;
  PlotRange columns_range_;
  std::size_t columns_ = 0;
  std::array<SideColumns, 2> side_columns_;
  Columns process_columns_, driver_columns_;
  bool samples_stale_ = false;
  bool shows_waiting_ = false;
  std::vector<PlotArea> flags_, labels_;  // of this frame
};

}  // namespace loadline::gui
