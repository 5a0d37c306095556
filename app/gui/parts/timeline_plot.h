// Draws the curves of a projection into a rectangle: one side above the axis, the other below it, on one
// scale.
#pragma once

#include "app/gui/parts/plot.h"
#include "app/gui/parts/timeline_data.h"
#include "app/gui/parts/ui.h"

#include <cstddef>
#include <span>
#include <string>
#include <vector>

namespace loadline::gui {

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
  void take_samples(const SampleLog::Entries& samples);
  // Another load's curves, drawn as outlines over these; none: nothing.
  void set_ghost(std::optional<TimelineCurves> ghost);

  struct Frame {
    PlotArea area;  // inside the axes
    PlotRange range;
  };

  void draw(const Ui& ui, const Frame& frame);
  // Draws a dashed line at `x` over both sides.
  void mark(const Ui& ui, const Frame& frame, double x, ImU32 color) const;
  // Draws the label of a mark; after all marks, so that none goes through a label.
  void label_mark(const Ui& ui, const Frame& frame, double x, std::string_view label);
  // Draws a dot and a label at the peak of a side.
  void mark_peak(const Ui& ui, const Frame& frame, std::size_t side, double x, std::string_view label);
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
    std::vector<Columns> sums;
    Columns measured, ghost;
  };

  double top_of(std::size_t side) const;
  std::array<Lane, 2> lanes(const Frame& frame) const;
  void refresh(std::size_t columns, const PlotRange& range);
  void draw_byte_axis(const Ui& ui, const Lane& lane) const;
  void draw_level(const Ui& ui, const Lane& lane, const Columns& columns, Space space) const;
  void draw_excess(const Ui& ui, const Lane& lane, const Columns& columns, std::uint64_t budget) const;
  // `until`: x at which the line ends.
  void draw_line(const Ui& ui, const Lane& lane, const Columns& columns, ImU32 color, float width,
                 std::optional<double> until = {}) const;
  void draw_lines_of_levels(const Ui& ui, const Lane& lane, const TimelineSide& side);
  void draw_steps_axis(const Ui& ui, const Frame& frame) const;

  TimelineCurves curves_;
  std::optional<TimelineCurves> ghost_;
  std::vector<TimelineLevel> levels_;
  PlotRange columns_range_;
  std::size_t columns_ = 0;
  std::array<SideColumns, 2> side_columns_;
  Columns process_columns_, driver_columns_;
  bool samples_stale_ = false;
  std::vector<PlotArea> flags_, labels_;  // of this frame
};

}  // namespace loadline::gui
