// Draws the curves of a projection into a rectangle: stacked, or one lane per space.
#pragma once

#include "app/gui/panels/plot_paint.h"
#include "app/gui/panels/timeline_data.h"
#include "app/gui/ui.h"

#include <cstddef>
#include <vector>

namespace loadline::gui {

// Keeps the columns of every curve for one width and range, and remakes them if width or range change.
class TimelinePlot {
 public:
  void set_curves(TimelineCurves curves);
  const TimelineCurves& curves() const { return curves_; }

  struct Frame {
    PlotArea area;  // inside the axes
    PlotRange range;
    bool lanes = false;
  };

  void draw(const Ui& ui, const Frame& frame);
  // Draws a dashed line at `x`, with a dot at the height of the stack and a label.
  void mark(const Ui& ui, const Frame& frame, double x, ImU32 color, std::string_view label);
  float pixel_of(const Frame& frame, double x) const;

 private:
  struct Lane {
    PlotArea area;
    double most = 0;
    std::vector<std::size_t> levels;  // of the stack, from the bottom; a lane of one space has one
  };
  std::vector<Lane> lanes(const Ui& ui, const Frame& frame) const;
  double top_of_stack() const;
  void refresh(std::size_t columns, const PlotRange& range);
  void draw_steps_axis(const Ui& ui, const Frame& frame) const;
  void draw_line(const Ui& ui, const Lane& lane, const std::vector<view::CurveColumn>& columns,
                 bool ledger) const;
  void draw_lane_title(const Ui& ui, const Lane& lane) const;

  TimelineCurves curves_;
  PlotRange columns_range_;
  std::size_t columns_ = 0;
  std::array<std::vector<view::CurveColumn>, kSpaceCount> space_columns_;    // by Space
  std::array<std::vector<view::CurveColumn>, kSpaceCount> stacked_columns_;  // from the bottom
  std::vector<std::vector<view::CurveColumn>> measured_columns_;
  std::array<std::vector<view::CurveColumn>, kSpaceCount> measured_space_columns_;  // by Space
  std::vector<PlotArea> flags_;                                                     // of this frame
};

}  // namespace loadline::gui
