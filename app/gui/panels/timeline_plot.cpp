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

TimelinePlot::Area TimelinePlot::inside(const Ui& ui, const Frame& frame) {
  // on whole pixels, as the columns are
  const ImVec2 low = {std::round(frame.low.x + ui.px(kPlotAxisWidth)), std::round(frame.low.y + ui.px(8))};
  return {low,
          {std::max(std::round(frame.high.x - ui.px(6)), low.x + 1),
           std::max(std::round(frame.high.y - ui.px(kPlotAxisHeight)), low.y + 1)}};
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
  const Area whole = inside(ui, frame);
  if (!frame.lanes) return {{whole, top_of_stack(), {0, 1, 2, 3}}};
  std::vector<Lane> result;
  for (std::size_t level = 0; level < kSpaceCount; ++level) {
    const double most = curves_.most[index(kStackOrder[level])];
    if (most > 0) result.push_back({{}, most * kPlotHeadroom, {level}});
  }
  const float gap = ui.px(14);
  const auto count = static_cast<float>(result.size());
  const float height = (whole.high.y - whole.low.y - gap * (count - 1)) / std::max(count, 1.0f);
  for (std::size_t i = 0; i < result.size(); ++i) {
    const float top = whole.low.y + static_cast<float>(i) * (height + gap);
    result[i].area = {{whole.low.x, top}, {whole.high.x, top + height}};
  }
  return result;
}

float TimelinePlot::pixel_of(const Ui& ui, const Frame& frame, double x) const {
  const Area area = inside(ui, frame);
  const double share = curves_.length > 0 ? x / curves_.length : 0;
  const double seen = (share - frame.range.from) / (frame.range.to - frame.range.from);
  return area.low.x + static_cast<float>(seen) * (area.high.x - area.low.x);
}

double TimelinePlot::x_at(const Ui& ui, const Frame& frame, float pixel) const {
  const Area area = inside(ui, frame);
  const double seen = static_cast<double>((pixel - area.low.x) / (area.high.x - area.low.x));
  return (frame.range.from + seen * (frame.range.to - frame.range.from)) * curves_.length;
}

void TimelinePlot::draw_steps_axis(const Ui& ui, const Frame& frame) const {
  const Area area = inside(ui, frame);
  const auto wanted = static_cast<std::size_t>(std::max(1.0f, (area.high.x - area.low.x) / ui.px(110)));
  for (const double tick :
       view::decimal_ticks(frame.range.from * curves_.length, frame.range.to * curves_.length, wanted)) {
    const bool steps = curves_.axis == TimeAxis::steps;
    const std::string label = !steps     ? tick == 0 ? "0" : format_seconds(tick)
                                  : tick < 1 ? "start"
                                         : "step " + format_grouped(static_cast<std::uint64_t>(tick));
    paint_tick(ui, area, pixel_of(ui, frame, tick), label);
  }
}

void TimelinePlot::draw_line(const Ui& ui, const Lane& lane, const std::vector<view::CurveColumn>& columns,
                             bool ledger) const {
  const float width = (lane.area.high.x - lane.area.low.x) / static_cast<float>(columns.size());
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
  ImDrawList* draw = ImGui::GetWindowDrawList();
  draw->AddRectFilled({at.x - ui.px(5), at.y - ui.px(2)},
                      {at.x + size.x + ui.px(5), at.y + size.y + ui.px(2)},
                      with_alpha(ui.theme->panel, 0.88f), ui.px(4));
  draw->AddText(at, ui.theme->text, label.c_str());
}

void TimelinePlot::draw(const Ui& ui, const Frame& frame) {
  flags_.clear();
  const Area area = inside(ui, frame);
  const auto columns = static_cast<std::size_t>(std::max(1.0f, std::round(area.high.x - area.low.x)));
  refresh(columns, frame.range);
  const std::vector<Lane> all = lanes(ui, frame);
  for (const Lane& lane : all) {
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
  const Area area = inside(ui, frame);
  const float at = pixel_of(ui, frame, x);
  if (at < area.low.x || at > area.high.x) return;
  ImDrawList* draw = ImGui::GetWindowDrawList();
  paint_dashed(*draw, {at, area.low.y}, {at, area.high.y}, color, ui.px(4), std::max(1.0f, ui.px(1.25f)));
  if (!frame.lanes) {
    const float y = plot_y(area, top_of_stack(), view::value_at(curves_.stacked.back(), x));
    draw->AddCircleFilled({at, y}, ui.px(4.5f), ui.theme->panel);
    draw->AddCircleFilled({at, y}, ui.px(3.2f), color);
  }
  if (!label.empty()) paint_flag(ui, area, at, color, label, flags_);
}

}  // namespace loadline::gui
