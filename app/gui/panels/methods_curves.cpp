// Tab Methods: small multiples, and a few curves over each other.

#include "app/gui/panels/methods.h"
#include "app/gui/parts/plot.h"
#include "app/gui/parts/timeline_plot.h"
#include "app/gui/parts/widgets.h"
#include "app/report/row_text.h"
#include "core/base/text.h"
#include "core/plan/plan.h"
#include "core/view/curves.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include <fmt/core.h>

namespace loadline::gui {

// --- Small multiples to one scale: the device above the water line, the host's spaces hanging below it.

namespace {

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
  const std::vector<plan::Space> stack = plan::spaces_in(band.mask);
  const auto count = static_cast<double>(band.columns.size());
  for (auto space = stack.rbegin(); space != stack.rend(); mask &= ~plan::space_bit(*space), ++space) {
    const ImU32 color = mix(ui.theme->panel, ui.theme->spaces[plan::index(*space)], 0.85f);
    for (std::size_t i = 0; i < band.columns.size();) {
      const float edge = place.y(plan::sum_over(band.columns[i].bytes, mask), band.is_below_water());
      std::size_t end = i + 1;
      while (end < band.columns.size() &&
             place.y(plan::sum_over(band.columns[end].bytes, mask), band.is_below_water()) == edge)
        ++end;
      const float x0 = place.x(static_cast<double>(i) / count);
      const float x1 = std::max(place.x(static_cast<double>(end) / count), x0 + 1);
      if (edge != place.water() && band.columns[i].bytes[plan::index(*space)] > 0)
        ImGui::GetWindowDrawList()->AddRectFilled({x0, std::min(edge, place.water())},
                                                  {x1, std::max(edge, place.water())}, color);
      i = end;
    }
  }
}

void paint_budget(const Ui& ui, const load::BoundRequest& bound, const Place& place) {
  const auto limit = bound.memory.deciding_budget();
  if (!limit) return;
  const float y = place.y(*limit, false);
  if (y <= place.low().y + 1) return;
  paint_budget_line(ui, place.low().x, place.high().x, y);
}

// The weights and twice the weights, where the laws count from; named at the left, above the line or below
// it, where no line and no other name is.
void paint_weights(const Ui& ui, const report::ChartScale& scale, const load::BoundRequest& bound,
                   const Place& place) {
  const float line = ImGui::GetFontSize();
  std::vector<float> lines = {place.y(0, false)};
  if (const auto limit = bound.memory.deciding_budget()) lines.push_back(place.y(*limit, false));
  for (const std::uint64_t bytes : {scale.weights, 2 * scale.weights}) lines.push_back(place.y(bytes, false));
  std::optional<float> taken;  // the top of the name before
  const auto is_free = [&](float top) {
    return top >= place.low().y && !(taken && std::abs(top - *taken) < line) &&
           std::ranges::none_of(lines, [&](float y) { return y > top && y < top + line; });
  };
  for (const auto& [bytes, name] :
       {std::pair{scale.weights, "weights"}, std::pair{2 * scale.weights, "2 x weights"}}) {
    if (bytes == 0 || bytes > scale.above) continue;
    const float y = place.y(bytes, false);
    paint_dashed({place.low().x, y}, {place.high().x, y}, ui.theme->muted, ui.px(2), ui.px(3), ui.px(1));
    for (const float top : {y - line - 1, y + 1})
      if (is_free(top)) {
        taken = top;
        put_text({place.low().x + ui.px(2), top}, ui.theme->muted, name);
        break;
      }
  }
}

std::string moment_text(const report::RowCurve& curve, double place) {
  const double at = place * curve.end;
  return curve.axis == view::RunAxis::steps
             ? ""
             : fmt::format("at {} of {}", format_seconds(at), format_seconds(curve.end));
}

// The lines of a slice: its figures, then the tensors alive.
void slice_lines(const Ui& ui, std::string_view slice, bool names) {
  const std::size_t first = std::min(slice.find('\n'), slice.size());
  text(slice.substr(0, first));
  if (names && first < slice.size()) muted(ui, slice.substr(first + 1));
}

void curve_card(const Ui& ui, const report::DrawnRow& drawn, double place, bool below) {
  const report::RowCurve& curve = *drawn.curve;
  hover_card(ui, [&] {
    heading(ui, drawn.row->method->id);
    if (place > 1) return muted(ui, "already loaded");
    if (const std::string moment = moment_text(curve, place); !moment.empty()) muted(ui, moment);
    for (const report::CurveBand& band : curve.bands) {
      if (band.slices.empty()) continue;
      const auto at = std::min(static_cast<std::size_t>(place * static_cast<double>(band.slices.size())),
                               band.slices.size() - 1);
      const bool pointed = curve.bands.size() == 1 || band.is_below_water() == below;
      if (!band.slices[at].empty()) slice_lines(ui, band.slices[at], pointed);
    }
  });
}

void draw_cell(Workspace& workspace, const Ui& ui, const report::DrawnRow& drawn,
               const report::ChartScale& scale, ImVec2 size) {
  Document& document = workspace.document();
  const load::LoadRow& row = *drawn.row;
  const report::RowCurve& curve = *drawn.curve;
  const load::BoundRequest& bound = *document.load.comparison.value()->answer.bound;
  const bool chosen = &shown_method(document.load.asked()) == row.method;
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
  curve_card(ui, drawn, pointed, ImGui::GetIO().MousePos.y > place.water());

  ImDrawList* draw = ImGui::GetWindowDrawList();
  draw->AddRectFilled(at, high, hot ? ui.theme->hovered : ui.theme->raised, ui.px(6));
  if (chosen) draw->AddRect(at, high, ui.theme->accent, ui.px(6), 0, ui.px(1.5f));
  const float room = size.x - 2 * pad.x;
  put_text(at + pad, ui.theme->text, elided(row.method->id, room));
  const std::string figure = leading_figure(row);
  const float below = at.y + pad.y + line + ui.px(2);
  put_text({at.x + pad.x, below}, row.fits() ? ui.theme->text : ui.theme->bad, figure);
  const std::string end = scale.orders                           ? row.order
                          : curve.axis == view::RunAxis::seconds ? format_seconds(row.seconds)
                                                                 : "";
  if (text_width(end) + text_width(figure) + ui.px(10) < room)
    put_text_before(high.x - pad.x, below, hot ? ui.theme->text : ui.theme->muted, end);
  for (const report::CurveBand& band : curve.bands) paint_band(ui, band, place);
  draw->AddLine({place.low().x, place.water()}, {place.high().x, place.water()}, ui.theme->muted,
                std::max(1.0f, ui.px(1)));
  paint_weights(ui, scale, bound, place);
  paint_budget(ui, bound, place);
  const ImVec2 peak = {place.x(curve.peak_place), place.y(row.deciding_peak.bytes, false)};
  draw->AddCircleFilled(peak, ui.px(3.6f), ui.theme->raised);
  draw->AddCircle(peak, ui.px(3.2f), ui.theme->text, 0, ui.px(1.5f));
  if (hot && pointed <= 1)
    draw->AddLine({mouse, place.low().y}, {mouse, place.high().y}, ui.theme->text, ui.px(1));
}

// Draws the legend of the colors, and the scale that all cells share.
void draw_legend(const Workspace& workspace, const Ui& ui, const report::ChartScale& scale) {
  const Document& document = workspace.document();
  bool first = true;
  for (const plan::Space space : plan::kSpaceOrder) {
    if (!first && !continue_line(ui, 14, legend_width(ui, capitalized(plan::space_title(space)), ""))) break;
    first = false;
    legend_entry(ui, ui.theme->spaces[plan::index(space)], capitalized(plan::space_title(space)), "");
  }
  const bool unified =
      document.load.comparison.value()->answer.bound->memory.kind == plan::MemoryKind::unified;
  const std::string words =
      unified
          ? fmt::format("one scale, up to {}; the ring marks the unified peak", format_bytes(scale.above))
          : fmt::format("one scale: above the line, up to {} on the device; below it, up to {} on the host",
                        format_bytes(scale.above), format_bytes(scale.below));
  const FontScope font(ui.fonts.small);
  if (continue_line(ui, 16, text_width(words))) muted(ui, words);
}

}  // namespace

std::vector<report::DrawnRow> compared_rows(const Document& document, const report::ChartSubject& subject) {
  std::vector<report::DrawnRow> rows = report::drawn_rows(subject);
  std::erase_if(rows, [&](const report::DrawnRow& row) { return !document.compares(row.row->method->id); });
  return rows;
}

void draw_methods_curves(Workspace& workspace, const Ui& ui, ImVec2 size) {
  Document& document = workspace.document();
  const report::ChartSubject subject = document.load.comparison.value()->subject(*document.model->graph);
  const std::vector<report::DrawnRow> rows = compared_rows(document, subject);
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

// --- The figure that decides, of a few methods over each other, on one axis.

namespace {

// Of a curve, on its swatch, and beside its end where a plot is too small for names.
std::string letter_of(std::size_t at) { return {static_cast<char>('A' + at)}; }

constexpr std::size_t kMostOverlaid = std::tuple_size_v<decltype(Theme::categories)>;

// A curve: the bytes of one space, or in unified memory of all that must be held, without page cache.
struct OverlayRow {
  report::DrawnRow drawn;
  const report::CurveBand* band = nullptr;
  std::vector<double> bytes = {};  // for each column of the band
  double peak = 0;
  double peak_place = 0;  // from 0 to 1, on the row's own axis
};

// The memory that decides: in unified memory all that must be held; the one with a budget, of two the host
// where only that is exceeded. Without a budget the one in which the rows differ most.
const report::RowSpace& overlay_space(std::span<const report::DrawnRow> rows,
                                      const load::LoadMemory& memory) {
  if (memory.kind == plan::MemoryKind::unified) return report::find_row_space("held");
  const load::Budget& budget = memory.budget;
  const auto exceeded = [&](std::string_view id, const std::optional<std::uint64_t>& limit) {
    const report::RowSpace& space = report::find_row_space(id);
    return limit && std::ranges::any_of(rows, [&](const report::DrawnRow& row) {
             return space.peak(*row.row).bytes > *limit;
           });
  };
  if (budget.device || budget.host) {
    const bool by_host =
        !budget.device || (exceeded("host", budget.host) && !exceeded("device", budget.device));
    return report::find_row_space(by_host ? "host" : "device");
  }
  const report::RowSpace& widest = report::widest_space(report::rows_of(rows));
  return report::find_row_space(widest.id == "host" ? "host" : "device");
}

OverlayRow overlay_row(const report::DrawnRow& drawn, const report::RowSpace& space) {
  const report::RowCurve& curve = *drawn.curve;
  const bool host = space.id == "host";
  OverlayRow row{drawn, &(host ? curve.bands.back() : curve.bands.front())};
  const unsigned mask = host                 ? plan::space_bit(plan::Space::host)
                        : space.id == "held" ? plan::kHeldSpaces
                                             : plan::space_bit(plan::Space::device);
  for (const view::UsageColumn& column : row.band->columns)
    row.bytes.push_back(static_cast<double>(plan::sum_over(column.bytes, mask)));
  row.peak = static_cast<double>(space.peak(*drawn.row).bytes);
  const auto count = static_cast<double>(std::max<std::size_t>(row.bytes.size(), 1));
  if (host) {
    const auto most = std::ranges::max_element(row.bytes);
    row.peak_place = static_cast<double>(most - row.bytes.begin()) / count;
  } else {
    row.peak_place = curve.peak_place;
    // the column's moment is the fullest with pages, which may not be the one with the most to hold
    const auto at = static_cast<std::size_t>(row.peak_place * count);
    if (!row.bytes.empty()) row.bytes[std::min(at, row.bytes.size() - 1)] = row.peak;
  }
  return row;
}

struct Overlay {
  std::vector<OverlayRow> rows;
  const report::RowSpace* space = nullptr;
  std::optional<std::uint64_t> limit = {};
  double end = 1;   // of the axis
  double most = 1;  // of the bytes
  view::RunAxis axis = view::RunAxis::seconds;
};

Overlay overlay_of(const std::vector<report::DrawnRow>& rows, const report::RowSpace& space,
                   const load::BoundRequest& bound) {
  Overlay overlay;
  overlay.space = &space;
  overlay.limit = overlay.space->id == "host" ? bound.memory.budget.host : bound.memory.deciding_budget();
  overlay.end = 0;
  for (const report::DrawnRow& row : rows) {
    overlay.rows.push_back(overlay_row(row, *overlay.space));
    overlay.axis = row.curve->axis;
    overlay.end = std::max(overlay.end, overlay.axis == view::RunAxis::steps ? 1 : row.curve->end);
    overlay.most = std::max(overlay.most, overlay.rows.back().peak * kPlotHeadroom);
  }
  if (overlay.limit && static_cast<double>(*overlay.limit) < 2 * overlay.most)
    overlay.most = std::max(overlay.most, static_cast<double>(*overlay.limit) * kPlotHeadroom);
  if (overlay.end <= 0) overlay.end = 1;
  return overlay;
}

// Where a row's own axis, from 0 to 1, is on the common one. Steps are each plan's own: shares of it.
double share_of(const Overlay& overlay, const OverlayRow& row) {
  const double end = row.drawn.curve->end;
  return overlay.axis == view::RunAxis::steps || end <= 0 ? 1 : end / overlay.end;
}

ImVec2 peak_of(const PlotArea& area, const Overlay& overlay, const OverlayRow& row) {
  const float width = area.width() * static_cast<float>(share_of(overlay, row));
  return {area.low.x + width * static_cast<float>(row.peak_place), plot_y(area, overlay.most, row.peak)};
}

// The corners of the line.
std::vector<ImVec2> paint_line(const Ui& ui, const PlotArea& area, const Overlay& overlay,
                               const OverlayRow& row, ImU32 color, bool strong) {
  const auto count = row.bytes.size();
  const float width = area.width() * static_cast<float>(share_of(overlay, row));
  std::vector<ImVec2> points = {{area.low.x, area.high.y}};
  for (std::size_t i = 0; i < count; ++i) {
    const float y = plot_y(area, overlay.most, row.bytes[i]);
    const float x = area.low.x + width * static_cast<float>(i) / static_cast<float>(count);
    points.push_back({x, points.back().y});
    points.push_back({x, y});
  }
  points.push_back({area.low.x + width, points.back().y});
  ImDrawList* draw = ImGui::GetWindowDrawList();
  draw->AddPolyline(points.data(), static_cast<int>(points.size()), color, 0, ui.px(strong ? 2.6f : 1.7f));
  draw->AddCircleFilled(points.back(), ui.px(3), color);
  const ImVec2 peak = peak_of(area, overlay, row);
  draw->AddCircleFilled(peak, ui.px(4), ui.theme->panel);
  draw->AddCircle(peak, ui.px(3.6f), color, 0, ui.px(1.8f));
  return points;
}

// At the ends of the lines: their colors alone tell too little.
void paint_names(const Ui& ui, const PlotArea& area, const Overlay& overlay, std::span<const ImU32> colors,
                 std::span<const std::vector<ImVec2>> curves, std::vector<PlotArea> dots) {
  std::vector<PlotArea> lines;
  const ImVec2 dot = {ui.px(4), ui.px(4)};
  for (std::size_t i = 0; i < curves.size(); ++i) {
    for (const ImVec2 place : {curves[i].back(), peak_of(area, overlay, overlay.rows[i])})
      dots.push_back({place - dot, place + dot});
    for (std::size_t k = 1; k < curves[i].size(); ++k) {
      const ImVec2 from = curves[i][k - 1], to = curves[i][k];  // level, or upright
      const ImVec2 edge = {ui.px(1), ui.px(1)};
      lines.push_back(
          {ImVec2{from.x, std::min(from.y, to.y)} - edge, ImVec2{to.x, std::max(from.y, to.y)} + edge});
    }
  }
  const bool named = area.width() > ui.px(400) && area.height() > ui.px(190);
  for (std::size_t i = 0; i < curves.size(); ++i)
    paint_curve_name(ui, area, curves[i].back(), colors[i],
                     named ? std::string(overlay.rows[i].drawn.row->method->id) : letter_of(i), lines, dots);
}

void paint_axis(const Ui& ui, const PlotArea& area, const Overlay& overlay) {
  if (overlay.axis == view::RunAxis::steps) {
    paint_tick(ui, area, area.low.x, "start");
    paint_tick(ui, area, area.high.x, "each plan's last step");
    return;
  }
  for (const double tick : view::decimal_ticks(0, overlay.end, tick_room(ui, area)))
    paint_tick(ui, area, pixel_of_share(area, {}, tick / overlay.end),
               tick == 0 ? "0" : format_seconds(tick));
}

// The card under the pointer: each curve's bytes at that moment, largest first, and the blocks alive in the
// nearest curve.
void overlay_card(const Ui& ui, const PlotArea& area, const Overlay& overlay, std::span<const ImU32> colors) {
  const ImVec2 mouse = ImGui::GetIO().MousePos;
  const double place = std::clamp(share_at_pixel(area, {}, mouse.x), 0.0, 1.0);
  struct Line {
    double bytes = 0;
    std::size_t row = 0;
    double own = 0;  // place on its own axis
  };
  std::vector<Line> lines;
  for (std::size_t i = 0; i < overlay.rows.size(); ++i) {
    const OverlayRow& row = overlay.rows[i];
    const double own = std::min(place / share_of(overlay, row), 1.0);
    const std::size_t count = row.bytes.size();
    const auto column = std::min(static_cast<std::size_t>(own * static_cast<double>(count)), count - 1);
    lines.push_back({row.bytes[column], i, own});
  }
  std::ranges::stable_sort(lines, [](const Line& a, const Line& b) { return a.bytes > b.bytes; });
  const auto distance = [&](const Line& line) {
    return std::abs(plot_y(area, overlay.most, line.bytes) - mouse.y);
  };
  const auto nearest = std::ranges::min_element(lines, {}, distance);
  hover_card(ui, [&] {
    if (overlay.axis == view::RunAxis::seconds) muted(ui, "at " + format_seconds(place * overlay.end));
    for (const Line& line : lines)
      legend_entry(ui, colors[line.row], overlay.rows[line.row].drawn.row->method->id,
                   format_bytes(static_cast<std::uint64_t>(line.bytes)));
    if (nearest == lines.end()) return;
    const auto& slices = overlay.rows[nearest->row].band->slices;
    if (slices.empty()) return;
    const auto at = std::min(static_cast<std::size_t>(nearest->own * static_cast<double>(slices.size())),
                             slices.size() - 1);
    if (slices[at].empty()) return;
    heading(ui, overlay.rows[nearest->row].drawn.row->method->id);
    muted(ui, slices[at]);
  });
  ImGui::GetWindowDrawList()->AddLine({mouse.x, area.low.y}, {mouse.x, area.high.y}, ui.theme->muted,
                                      ui.px(1));
}

// The line of the budget, and its name in the margin; where it lies far above the curves, the name alone.
void paint_limit(const Ui& ui, const PlotArea& area, const Overlay& overlay) {
  if (!overlay.limit) return;
  const FontScope font(ui.fonts.small);
  const auto limit = static_cast<double>(*overlay.limit);
  const bool inside = limit <= overlay.most;
  const float y = plot_y(area, overlay.most, limit), line = ImGui::GetFontSize();
  if (inside) paint_budget_line(ui, area.low.x, area.high.x, y);
  const float top =
      std::clamp(inside ? y - line : area.low.y, area.low.y, std::max(area.low.y, area.high.y - 2 * line));
  const ImVec2 at = {area.high.x + ui.px(6), top};
  put_text(at, ui.theme->text, (inside ? "" : "\xE2\x86\x91 ") + tick_label(*overlay.limit));
  put_text(at + ImVec2{0, line}, ui.theme->text, "budget");
}

void draw_plot(const Document& document, const Ui& ui, const Overlay& overlay, std::span<const ImU32> colors,
               ImVec2 size) {
  if (size.x < ui.px(140) || size.y < ui.px(70)) return ImGui::Dummy(size);
  const ImVec2 at = ImGui::GetCursorScreenPos();
  plot_area("overlay", size);
  const bool hot = ImGui::IsItemHovered();
  const PlotArea area = {
      {at.x + ui.px(kPlotAxisWidth), at.y + ui.px(8)},
      {at.x + size.x - ui.px(overlay.limit ? 84 : 8), at.y + size.y - ui.px(kPlotAxisHeight)}};
  if (hot && !overlay.rows.empty()) overlay_card(ui, area, overlay, colors);
  paint_byte_axis(ui, area, overlay.most);
  paint_axis(ui, area, overlay);
  // the chosen one last: it lies over the others
  std::vector<std::vector<ImVec2>> curves(overlay.rows.size());
  for (const bool chosen : {false, true})
    for (std::size_t i = 0; i < overlay.rows.size(); ++i)
      if ((overlay.rows[i].drawn.row->method->id == shown_method(document.load.asked()).id) == chosen)
        curves[i] = paint_line(ui, area, overlay, overlay.rows[i], colors[i], chosen);
  paint_limit(ui, area, overlay);
  paint_names(ui, area, overlay, colors, curves, {});
}

// Which methods: a swatch where they are shown, their peak at the right. A click shows or hides one.
void draw_choices(Document& document, const Ui& ui, const std::vector<report::DrawnRow>& rows,
                  const Overlay& overlay, std::span<const ImU32> colors) {
  std::vector<report::DrawnRow> listed;  // those whose curves are shown first, by their letters
  for (const OverlayRow& row : overlay.rows) listed.push_back(row.drawn);
  for (const report::DrawnRow& row : rows)
    if (std::ranges::find(overlay.rows, row, &OverlayRow::drawn) == overlay.rows.end()) listed.push_back(row);
  for (const report::DrawnRow& row : listed) {
    const auto at = std::ranges::find(overlay.rows, row, &OverlayRow::drawn);
    const bool there = at != overlay.rows.end();
    const FontScope font(ui.fonts.small);
    const float height = ImGui::GetFontSize() + ui.px(6);
    const ImVec2 pen = ImGui::GetCursorScreenPos();
    const float width = ImGui::GetContentRegionAvail().x;
    const IdScope scope(row.row->method);
    if (ImGui::Selectable("##choice", false, 0, {width, height})) {
      std::set<std::string, std::less<>> picked;
      for (const OverlayRow& other : overlay.rows) picked.emplace(other.drawn.row->method->id);
      if (there && picked.size() > 1)  // without any it would be the first choice again
        picked.erase(std::string(row.row->method->id));
      else if (picked.size() < kMostOverlaid)
        picked.emplace(row.row->method->id);
      document.overlaid = std::move(picked);
    }
    row_card(document, ui, *row.row);
    ImDrawList* draw = ImGui::GetWindowDrawList();
    const float square = ui.px(15);
    const ImVec2 low = pen + ImVec2{ui.px(2), std::round((height - square) / 2)};
    const ImVec2 high = low + ImVec2{square, square};
    if (there) {
      const auto curve = static_cast<std::size_t>(at - overlay.rows.begin());
      const std::string letter = letter_of(curve);
      draw->AddRectFilled(low, high, colors[curve], ui.px(3));
      put_text({low.x + (square - text_width(letter)) / 2, pen.y + ui.px(3)}, text_on(colors[curve]), letter);
    } else {
      const bool full = overlay.rows.size() >= kMostOverlaid;
      draw->AddRect(low, high, with_alpha(ui.theme->muted, full ? 0.35f : 1.0f), ui.px(3));
    }
    const std::string figure = format_bytes(overlay.space->peak(*row.row).bytes);
    const float y = pen.y + ui.px(3);
    put_text({pen.x + square + ui.px(10), y}, there ? ui.theme->text : ui.theme->muted,
             elided(row.row->method->id, width - text_width(figure) - square - ui.px(22)));
    put_text_before(pen.x + width - ui.px(4), y, row.row->fits() ? ui.theme->muted : ui.theme->bad, figure);
  }
}

}  // namespace

std::vector<report::DrawnRow> overlaid_rows(const Document& document,
                                            const std::vector<report::DrawnRow>& rows) {
  std::vector<report::DrawnRow> result;
  if (!document.overlaid.empty()) {
    for (const report::DrawnRow& row : rows)
      if (document.overlaid.contains(row.row->method->id) && result.size() < kMostOverlaid)
        result.push_back(row);
    return result;
  }
  // the chosen one, then some from the least peak to the most
  constexpr std::size_t kFew = 5;
  const report::RowSpace& space = overlay_space(rows, document.load.comparison.value()->answer.bound->memory);
  const auto peak = [&](const report::DrawnRow& row) { return space.peak(*row.row).bytes; };
  std::vector<report::DrawnRow> sorted = rows;
  std::ranges::stable_sort(sorted, {}, peak);
  std::vector<report::DrawnRow> distinct;
  for (const report::DrawnRow& row : sorted) {
    if (row.row->method->id == shown_method(document.load.asked()).id) result.push_back(row);
    if (distinct.empty() || peak(distinct.back()) != peak(row)) distinct.push_back(row);
  }
  const auto add = [&](const report::DrawnRow& row) {
    if (result.size() < kFew && std::ranges::find(result, row) == result.end()) result.push_back(row);
  };
  for (std::size_t i = 0; i + 1 < kFew; ++i) add(distinct[i * (distinct.size() - 1) / (kFew - 2)]);
  for (const report::DrawnRow& row : sorted) add(row);  // where few peaks differ
  return result;
}

void draw_methods_overlay(Document& document, const Ui& ui, ImVec2 size) {
  const report::ChartSubject subject = document.load.comparison.value()->subject(*document.model->graph);
  const std::vector<report::DrawnRow> rows = report::drawn_rows(subject);
  const ChildScope child("overlaid", size);
  if (rows.empty()) return empty_state(ui, "No method can load this model", "The table says why.");
  const load::BoundRequest& bound = *document.load.comparison.value()->answer.bound;
  const std::vector<report::DrawnRow> shown = overlaid_rows(document, rows);
  // of chosen rows the space in which they differ, else that of all
  const report::RowSpace& space = overlay_space(document.overlaid.empty() ? rows : shown, bound.memory);
  const Overlay overlay = overlay_of(shown, space, bound);
  std::vector<ImU32> colors;
  for (std::size_t i = 0; i < overlay.rows.size(); ++i) colors.push_back(ui.theme->category(i));
  const ImVec2 room = ImGui::GetContentRegionAvail();
  const float list = std::min(ui.px(250), room.x * 0.4f);
  draw_plot(document, ui, overlay, colors, {room.x - list - ui.px(12), room.y});
  ImGui::SameLine(0, ui.px(12));
  const ChildScope choices("choices", {list, room.y});
  std::string where(overlay.space->id == "held" ? "unified peak" : overlay.space->words);
  where = capitalized(where);
  const bool full = overlay.rows.size() >= kMostOverlaid;
  const FontScope font(ui.fonts.small);  // what the figures are, and what a click does
  paragraph(ui,
            full ? fmt::format("{}; {} curves are shown, the most", where, kMostOverlaid)
                 : where + "; click to show or hide",
            full ? ui.theme->warning : ui.theme->muted);
  draw_choices(document, ui, rows, overlay, colors);
}

}  // namespace loadline::gui
