// Draws a forward pass into a rectangle: the curve, then a lane each for weights, cache, activations and
// temporaries, with the model's layers as bands behind them.
#pragma once

#include "app/gui/panels/lifetimes_data.h"
#include "app/gui/parts/plot.h"
#include "app/gui/parts/ui.h"

#include <array>
#include <memory>
#include <optional>
#include <vector>

namespace loadline::gui {

class AxisLabels;

inline constexpr float kLanesAxisWidth = 88;  // room for the names of the lanes, at the left

class LifetimesPlot {
 public:
  struct Frame {
    PlotArea area;  // around curve and lanes, inside the axes
    PlotRange range;
    bool everything = false;                // the curve includes weights and cache
    std::optional<TensorId> selected = {};  // outlined in the lane of weights
  };

  void set_data(std::shared_ptr<const PassData> data);
  const PassData& data() const { return *data_; }
  const std::shared_ptr<const PassData>& shared_data() const { return data_; }

  void draw(const Ui& ui, const Frame& frame);
  // Draws a line through curve and lanes at the middle of an operator; for a peak, dashed with dot and label.
  void mark(const Ui& ui, const Frame& frame, std::uint32_t op, ImU32 color, std::string_view label);

  // The operator at a pixel.
  std::uint32_t op_at(const Frame& frame, float pixel) const;
  // The row under the mouse, of the lanes last drawn.
  const PassRow* row_at(const Frame& frame, ImVec2 at) const;

 private:
  struct Lane {
    PassLane lane = PassLane::weights;
    float top = 0, bottom = 0;
    view::LaneLayout layout;
  };
  float pixel_of(const Frame& frame, double x) const;
  PlotArea curve_area(const Frame& frame) const;
  double top_of_curve(const Frame& frame) const;
  void arrange(const Ui& ui, const Frame& frame);
  void arrange_lanes(const Ui& ui, const PlotArea& area, double x0, double x1);
  void draw_bands(const Ui& ui, const Frame& frame) const;
  void draw_curve(const Ui& ui, const Frame& frame) const;
  void draw_lane(const Ui& ui, const Frame& frame, const Lane& lane) const;
  void draw_label(const Ui& ui, const PassRow& row, ImVec2 low, ImVec2 high, float right, ImU32 color) const;
  void draw_gutter(const Ui& ui, float right, const Lane& lane) const;
  void draw_axis(const Ui& ui, const Frame& frame) const;
  bool draw_layers(const Ui& ui, const Frame& frame, double x0, double x1, AxisLabels& labels) const;

  std::shared_ptr<const PassData> data_;
  std::vector<Lane> lanes_;
  std::array<std::vector<view::CurveColumn>, kPassLanes> columns_;  // by PassLane
  float curve_bottom_ = 0;
  // what the lanes were arranged for
  std::shared_ptr<const PassData> arranged_;
  PlotRange range_;
  PlotArea area_;
  std::vector<PlotArea> flags_;  // of this frame
};

}  // namespace loadline::gui
