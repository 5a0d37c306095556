// Small multiples to one scale: the device above the water line, the host's spaces hanging below it.
#include "app/gui/panels/methods.h"
#include "app/gui/parts/plot.h"
#include "app/gui/parts/timeline_data.h"
#include "app/gui/parts/widgets.h"
#include "core/base/text.h"
#include "core/plan/space_sum.h"
#include "core/view/curves.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include <fmt/format.h>

namespace loadline::gui {
namespace {

bool hangs(const report::CurveBand& band) { return (band.mask & space_bit(Space::device)) == 0; }

// The plot inside a cell; bytes above the water line are positive.
class Place {
 public:
  Place(const report::ChartScale& scale, double end, ImVec2 low, ImVec2 high) : low_(low), high_(high) {
    share_ = scale.end > 0 && end > 0 ? static_cast<float>(end / scale.end) : 1;
    const auto all = static_cast<double>(scale.above) + static_cast<double>(scale.below);
    unit_ = static_cast<double>(high.y - low.y) / all;
    water_ = low.y + static_cast<float>(static_cast<double>(scale.above) * unit_);
  }
  float x(double place) const { return low_.x + static_cast<float>(place) * share_ * (high_.x - low_.x); }
  // A small amount stays visible.
  float y(std::uint64_t bytes, bool below) const {
    const float height =
        bytes > 0 ? std::max(1.5f, static_cast<float>(static_cast<double>(bytes) * unit_)) : 0;
    return below ? std::min(water_ + height, high_.y) : std::max(water_ - height, low_.y);
  }
  float water() const { return water_; }
  ImVec2 low() const { return low_; }
  ImVec2 high() const { return high_; }
  // 0 to 1 on this row's own axis; beyond 1 behind its end.
  double place_of(float pixel) const {
    const float width = (high_.x - low_.x) * share_;
    return width > 0 ? static_cast<double>((pixel - low_.x) / width) : 2;
  }

 private:
  ImVec2 low_, high_;
  float share_ = 1;
  double unit_ = 1;
  float water_ = 0;
};

// Draws the whole stack first, then the layers nearer to the water line over it.
void paint_band(const Ui& ui, const report::CurveBand& band, const Place& place) {
  unsigned mask = band.mask;
  const std::vector<Space> stack = report::stack_of(band.mask);
  const auto count = static_cast<double>(band.columns.size());
  for (auto space = stack.rbegin(); space != stack.rend(); mask &= ~space_bit(*space), ++space) {
    const ImU32 colour = mix(ui.theme->panel, ui.theme->spaces[index(*space)], 0.85f);
    for (std::size_t i = 0; i < band.columns.size();) {
      const float edge = place.y(sum_over(band.columns[i].bytes, mask), hangs(band));
      std::size_t end = i + 1;
      while (end < band.columns.size() &&
             place.y(sum_over(band.columns[end].bytes, mask), hangs(band)) == edge)
        ++end;
      const float x0 = place.x(static_cast<double>(i) / count);
      const float x1 = std::max(place.x(static_cast<double>(end) / count), x0 + 1);
      if (edge != place.water() && band.columns[i].bytes[index(*space)] > 0)
        ImGui::GetWindowDrawList()->AddRectFilled({x0, std::min(edge, place.water())},
                                                  {x1, std::max(edge, place.water())}, colour);
      i = end;
    }
  }
}

void paint_budget(const Ui& ui, const BoundRequest& bound, const Place& place) {
  const auto limit = leading_budget(bound);
  if (!limit) return;
  const float y = place.y(*limit, false);
  if (y <= place.low().y + 1) return;
  paint_dashed({place.low().x, y}, {place.high().x, y}, ui.theme->bad, ui.px(5), ui.px(3), ui.px(1.25f));
}

// W and 2W, where the laws count from; named at the left where there is room above or below the line.
void paint_weights(const Ui& ui, const report::ChartScale& scale, const Place& place) {
  const float line = ImGui::GetFontSize();
  const bool named = place.y(0, false) - place.y(scale.weights, false) >= line;
  for (const auto& [bytes, name] : {std::pair{scale.weights, "W"}, std::pair{2 * scale.weights, "2W"}}) {
    if (bytes == 0 || bytes > scale.above) continue;
    const float y = place.y(bytes, false);
    paint_dashed({place.low().x, y}, {place.high().x, y}, ui.theme->muted, ui.px(2), ui.px(3), ui.px(1));
    const float top = y - line >= place.low().y ? y - line : y;
    if (named) put_text({place.low().x + ui.px(2), top}, ui.theme->muted, name);
  }
}

std::string moment_text(const report::RowCurve& curve, double place) {
  const double at = place * curve.end;
  return curve.axis == view::CurveAxis::steps
             ? ""
             : fmt::format("at {} of {}", format_seconds(at), format_seconds(curve.end));
}

// The lines of a slice: its figures, then the tensors alive.
void slice_lines(const Ui& ui, std::string_view slice, bool names) {
  const std::size_t first = std::min(slice.find('\n'), slice.size());
  text(slice.substr(0, first));
  if (names && first < slice.size()) muted(ui, slice.substr(first + 1));
}

void curve_card(const Ui& ui, const report::PicturedRow& pictured, double place, bool below) {
  const report::RowCurve& curve = *pictured.curve;
  hover_card(ui, [&] {
    heading(ui, pictured.row->method->id);
    if (place > 1) return muted(ui, "loaded by then");
    if (const std::string moment = moment_text(curve, place); !moment.empty()) muted(ui, moment);
    for (const report::CurveBand& band : curve.bands) {
      if (band.slices.empty()) continue;
      const auto at = std::min(static_cast<std::size_t>(place * static_cast<double>(band.slices.size())),
                               band.slices.size() - 1);
      const bool pointed = curve.bands.size() == 1 || hangs(band) == below;
      if (!band.slices[at].empty()) slice_lines(ui, band.slices[at], pointed);
    }
  });
}

void draw_cell(Workspace& workspace, const Ui& ui, const report::PicturedRow& pictured,
               const report::ChartScale& scale, ImVec2 size) {
  Document& document = workspace.document();
  const LoadRow& row = *pictured.row;
  const report::RowCurve& curve = *pictured.curve;
  const BoundRequest& bound = *document.comparison.value()->answer.bound;
  const bool chosen = &shown_method(document.asked()) == row.method;
  const IdScope scope(row.method);
  const ImVec2 at = ImGui::GetCursorScreenPos();
  if (press_area(ui, "cell", size)) choose_row(workspace, row);
  const bool hot = ImGui::IsItemHovered();
  if (hot && ImGui::IsMouseDoubleClicked(ImGuiMouseButton_Left)) workspace.settings.panel = "load";
  const ImVec2 pad = {ui.px(8), ui.px(6)};
  const ImVec2 high = at + size;
  const FontScope font(ui.fonts.small);
  const float line = ImGui::GetFontSize();
  const Place place(scale, curve.end, at + pad + ImVec2{0, line * 2 + ui.px(8)}, high - pad);
  const float mouse = ImGui::GetIO().MousePos.x;
  const double pointed = std::max(place.place_of(mouse), 0.0);
  curve_card(ui, pictured, pointed, ImGui::GetIO().MousePos.y > place.water());

  ImDrawList* draw = ImGui::GetWindowDrawList();
  draw->AddRectFilled(at, high, hot ? ui.theme->hovered : ui.theme->raised, ui.px(6));
  if (chosen) draw->AddRect(at, high, ui.theme->accent, ui.px(6), 0, ui.px(1.5f));
  const float room = size.x - 2 * pad.x;
  put_text(at + pad, ui.theme->text, elided(row.method->id, room));
  const std::string figure = leading_figure(row);
  const float below = at.y + pad.y + line + ui.px(2);
  put_text({at.x + pad.x, below}, row.fits() ? ui.theme->text : ui.theme->bad, figure);
  const std::string end = scale.orders                             ? row.order
                          : curve.axis == view::CurveAxis::seconds ? format_seconds(row.seconds)
                                                                   : "";
  if (text_width(end) + text_width(figure) + ui.px(10) < room)
    put_text_before(high.x - pad.x, below, hot ? ui.theme->text : ui.theme->muted, end);
  for (const report::CurveBand& band : curve.bands) paint_band(ui, band, place);
  draw->AddLine({place.low().x, place.water()}, {place.high().x, place.water()}, ui.theme->muted,
                std::max(1.0f, ui.px(1)));
  paint_weights(ui, scale, place);
  paint_budget(ui, bound, place);
  const ImVec2 peak = {place.x(curve.peak_place), place.y(row.leading.bytes, false)};
  draw->AddCircleFilled(peak, ui.px(3.6f), ui.theme->raised);
  draw->AddCircle(peak, ui.px(3.2f), ui.theme->text, 0, ui.px(1.5f));
  if (hot && pointed <= 1)
    draw->AddLine({mouse, place.low().y}, {mouse, place.high().y}, ui.theme->text, ui.px(1));
}

// Draws the legend of the colours, and the scale that all cells share.
void draw_legend(const Workspace& workspace, const Ui& ui, const report::ChartScale& scale) {
  const Document& document = workspace.document();
  bool first = true;
  for (const Space space : kStackOrder) {
    if (!first && !continue_line(ui, 14, legend_width(ui, space_title(space), ""))) break;
    first = false;
    legend_entry(ui, ui.theme->spaces[index(space)], space_title(space), "");
  }
  const bool unified = document.comparison.value()->answer.bound->memory == MemoryKind::unified;
  const std::string words =
      unified ? fmt::format("one scale, up to {}; the ring marks what must be held at most",
                            format_bytes(scale.above))
              : fmt::format("one scale: {} on the device, above the line; {} of the host's, below",
                            format_bytes(scale.above), format_bytes(scale.below));
  const FontScope font(ui.fonts.small);
  if (continue_line(ui, 16, text_width(words))) muted(ui, words);
}

}  // namespace

std::vector<report::PicturedRow> compared_rows(const Document& document,
                                               const report::ChartSubject& subject) {
  std::vector<report::PicturedRow> rows = report::pictured_rows(subject);
  std::erase_if(rows,
                [&](const report::PicturedRow& row) { return !document.compares(row.row->method->id); });
  return rows;
}

void draw_methods_curves(Workspace& workspace, const Ui& ui, ImVec2 size) {
  Document& document = workspace.document();
  const report::ChartSubject subject = document.comparison.value()->subject(*document.model->graph);
  const std::vector<report::PicturedRow> rows = compared_rows(document, subject);
  const ChildScope child("curves", size);
  if (rows.empty()) return empty_state(ui, "No method can load this model", "The table says why.");
  const report::ChartScale scale = report::chart_scale(subject, rows);
  draw_legend(workspace, ui, scale);
  const ChildScope cells("cells");
  const float gap = ui.px(8);
  const ImVec2 room = ImGui::GetContentRegionAvail();
  const auto count = static_cast<float>(rows.size());
  const float most = std::max(1.0f, std::floor((room.x + gap) / (ui.px(152) + gap)));
  const float lines = std::ceil(count / most);
  const float columns = document.compared.empty() ? most : std::ceil(count / lines);  // few fill their lines
  // few become taller, many are scrolled through
  const float height = std::clamp((room.y - gap * (lines - 1)) / lines,
                                  ui.px(workspace.lesson.presents ? 84 : 118), ui.px(200));
  const ImVec2 cell = {std::floor((room.x - gap * (columns - 1)) / columns), std::floor(height)};
  const StyleScope style(ImGuiStyleVar_ItemSpacing, {gap, gap});
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (i % static_cast<std::size_t>(columns) != 0) ImGui::SameLine(0, gap);
    draw_cell(workspace, ui, rows[i], scale, cell);
  }
}

}  // namespace loadline::gui
