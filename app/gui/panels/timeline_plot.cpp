// Painter's order from the top of the stack down: each level covers what lies below its sum.
#include "app/gui/panels/timeline_plot.h"

#include "app/gui/widgets.h"
#include "core/base/text.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

namespace loadline::gui {

void TimelinePlot::set_curves(TimelineCurves curves) {
  curves_ = std::move(curves);
  columns_ = 0;
}

double TimelinePlot::top_of_stack() const {
  return std::max(curves_.most_stacked, curves_.most_measured) * kPlotHeadroom;
}

void TimelinePlot::refresh(std::size_t columns, const PlotRange& range) {
  if (columns == columns_ && range == columns_range_) return;
  columns_ = columns;
  columns_range_ = range;
  const double x0 = range.from * curves_.length;
  const double x1 = range.to * curves_.length;
  for (std::size_t i = 0; i < kSpaceCount; ++i) {
    space_columns_[i] = view::step_columns(curves_.spaces[i], x0, x1, columns);
    stacked_columns_[i] = view::step_columns(curves_.stacked[i], x0, x1, columns);
    measured_space_columns_[i] = view::step_columns(curves_.measured_spaces[i], x0, x1, columns);
  }
  measured_columns_.clear();
  for (const MeasuredCurve& curve : curves_.measured)
    measured_columns_.push_back(view::step_columns(curve.points, x0, x1, columns));
}

std::vector<TimelinePlot::Lane> TimelinePlot::lanes(const Ui& ui, const Frame& frame) const {
  const PlotArea& whole = frame.area;
  if (!frame.lanes) return {{whole, top_of_stack(), {0, 1, 2, 3}}};
  std::vector<Lane> result;
  for (std::size_t level = 0; level < kSpaceCount; ++level) {
    const double most = curves_.most[index(kStackOrder[level])];
    if (most > 0) result.push_back({{}, most * kPlotHeadroom, {level}});
  }
  const float gap = ui.px(14);
  const auto count = static_cast<float>(result.size());
  const float height = (whole.height() - gap * (count - 1)) / std::max(count, 1.0f);
  for (std::size_t i = 0; i < result.size(); ++i) {
    const float top = whole.low.y + static_cast<float>(i) * (height + gap);
    result[i].area = {{whole.low.x, top}, {whole.high.x, top + height}};
  }
  return result;
}

float TimelinePlot::pixel_of(const Frame& frame, double x) const {
  return pixel_of_share(frame.area, frame.range, curves_.length > 0 ? x / curves_.length : 0);
}

void TimelinePlot::draw_steps_axis(const Ui& ui, const Frame& frame) const {
  for (const double tick : view::decimal_ticks(frame.range.from * curves_.length,
                                               frame.range.to * curves_.length, tick_room(ui, frame.area))) {
    const bool steps = curves_.axis == TimeAxis::steps;
    const std::string label = !steps     ? tick == 0 ? "0" : format_seconds(tick)
                                  : tick < 1 ? "start"
                                         : "step " + format_grouped(static_cast<std::uint64_t>(tick));
    paint_tick(ui, frame.area, pixel_of(frame, tick), label);
  }
}

void TimelinePlot::draw_line(const Ui& ui, const Lane& lane, const std::vector<view::CurveColumn>& columns,
                             bool ledger) const {
  const float width = lane.area.width() / static_cast<float>(columns.size());
  std::vector<ImVec2> points;
  points.reserve(columns.size());
  for (std::size_t i = 0; i < columns.size(); ++i)
    points.push_back({lane.area.low.x + (static_cast<float>(i) + 0.5f) * width,
                      plot_y(lane.area, lane.most, columns[i].high)});
  ImGui::GetWindowDrawList()->AddPolyline(points.data(), static_cast<int>(points.size()),
                                          ledger ? ui.theme->highlight : ui.theme->accent, 0,
                                          ui.px(ledger ? 2.0f : 1.6f));
}

// At the right, where the peak's label seldom is.
void TimelinePlot::draw_lane_title(const Ui& ui, const Lane& lane) const {
  const FontScope font(ui.fonts.small);
  const Space space = kStackOrder[lane.levels.front()];
  const std::string label = fmt::format("{}  {}", space_title(space),
                                        format_bytes(static_cast<std::uint64_t>(curves_.most[index(space)])));
  const ImVec2 size = ImGui::CalcTextSize(label.c_str());
  const ImVec2 at = {lane.area.high.x - size.x - ui.px(8), lane.area.low.y + ui.px(4)};
  const ImVec2 pad = {ui.px(5), ui.px(2)};
  ImGui::GetWindowDrawList()->AddRectFilled(at - pad, at + size + pad, with_alpha(ui.theme->panel, 0.88f),
                                            ui.px(4));
  put_text(at, ui.theme->text, label);
}

void TimelinePlot::draw(const Ui& ui, const Frame& frame) {
  flags_.clear();
  refresh(static_cast<std::size_t>(std::max(1.0f, std::round(frame.area.width()))), frame.range);
  for (const Lane& lane : lanes(ui, frame)) {
    paint_byte_axis(ui, lane.area, lane.most);
    for (auto level = lane.levels.rbegin(); level != lane.levels.rend(); ++level) {
      const std::size_t space = index(kStackOrder[*level]);
      if (curves_.most[space] <= 0) continue;
      paint_level(ui, lane.area, lane.most, frame.lanes ? space_columns_[space] : stacked_columns_[*level],
                  ui.theme->spaces[space]);
    }
    if (frame.lanes) {
      const std::size_t space = index(kStackOrder[lane.levels.front()]);
      if (!measured_columns_.empty()) draw_line(ui, lane, measured_space_columns_[space], true);
      draw_lane_title(ui, lane);
    } else {
      for (std::size_t i = 0; i < measured_columns_.size(); ++i)
        draw_line(ui, lane, measured_columns_[i], curves_.measured[i].ledger);
    }
  }
  draw_steps_axis(ui, frame);
}

void TimelinePlot::mark(const Ui& ui, const Frame& frame, double x, ImU32 color, std::string_view label) {
  const float at = pixel_of(frame, x);
  if (at < frame.area.low.x || at > frame.area.high.x) return;
  std::optional<float> dot;
  if (!frame.lanes) dot = plot_y(frame.area, top_of_stack(), view::value_at(curves_.stacked.back(), x));
  paint_mark(ui, frame.area, at, color, dot);
  if (!label.empty()) paint_flag(ui, frame.area, at, color, label, flags_);
}

}  // namespace loadline::gui
