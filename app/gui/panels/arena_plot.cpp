// Geometry comes from core/view/arena_chart.h; here it gets pixels and colours.
#include "app/gui/panels/arena_plot.h"

#include "app/gui/parts/widgets.h"
#include "app/gui/state/model/meta_text.h"
#include "core/base/text.h"
#include "core/view/curves.h"

#include <algorithm>
#include <array>
#include <cmath>

#include <fmt/format.h>

namespace loadline::gui {
namespace {

constexpr float kBordered = 5;  // pixels from which on neighbours are set apart by a line
constexpr std::size_t kMostName = 80;

// Neighbours of one kind differ a little.
float shade(std::uint32_t buffer) {
  constexpr std::array<float, 5> kShades = {0.90f, 0.74f, 0.82f, 0.66f, 0.78f};
  return kShades[buffer % kShades.size()];
}

// "1.50 MiB", or every byte where that would be the same at two ticks.
std::string byte_label(double byte, double apart) {
  const std::uint64_t bytes = whole(byte);
  if (format_bytes(bytes) == format_bytes(whole(byte + apart))) return format_grouped(bytes);
  return tick_label(bytes);
}

void paint_name(const Ui& ui, const view::Rect& rect, ImVec2 low, ImU32 ground, const std::string& name) {
  const float line = ImGui::GetFontSize(), pad = ui.px(5);
  const auto width = static_cast<float>(rect.w), height = static_cast<float>(rect.h);
  if (height < line + ui.px(2) || width < ui.px(16)) return;
  const std::string cut = elided(name, width - 2 * pad);
  const float wide = text_width(cut);
  if (wide > width - 2 * pad || (cut != name && width < ui.px(60))) return;
  put_text({std::round(low.x + (width - wide) / 2), std::round(low.y + (height - line) / 2)}, text_on(ground),
           cut);
}

}  // namespace

ImU32 arena_kind_color(const Theme& theme, ArenaPalette palette, std::uint8_t kind) {
  if (palette == ArenaPalette::each) return theme.category(kind);
  if (palette == ArenaPalette::sizes) return theme.ramp(0.12 + 0.88 * std::min<int>(kind, 7) / 7.0);
  constexpr std::array<std::size_t, kArenaKinds> kCategories = {0, 1, 3, 2};  // as the lanes of a pass
  return theme.category(kCategories[std::min<std::size_t>(kind, 3)]);
}

std::string_view arena_kind_name(ArenaKind kind) {
  constexpr std::array<std::string_view, kArenaKinds> kNames = {"Weights", "Activations", "Temporaries",
                                                                "Ring slots"};
  return kNames[static_cast<std::size_t>(kind)];
}

std::uint64_t whole(double place) {
  constexpr double kMost = 0x1p64 - 2048;  // the last double below
  if (std::isnan(place)) return 0;
  return static_cast<std::uint64_t>(std::clamp(std::floor(place), 0.0, kMost));
}

float ArenaFrame::x_of(double tick) const {
  if (!(sight.x0 < sight.x1)) return area.low.x;
  const double share = std::clamp((tick - sight.x0) / (sight.x1 - sight.x0), 0.0, 1.0);
  return area.low.x + static_cast<float>(share) * area.width();
}

float ArenaFrame::y_of(double byte) const {
  if (!(sight.y0 < sight.y1)) return area.high.y;
  const double share = std::clamp((byte - sight.y0) / (sight.y1 - sight.y0), 0.0, 1.0);
  return area.high.y - static_cast<float>(share) * area.height();
}

double ArenaFrame::tick_at(float x) const {
  const auto share = static_cast<double>((x - area.low.x) / area.width());
  return sight.x0 + share * (sight.x1 - sight.x0);
}

double ArenaFrame::byte_at(float y) const {
  const auto share = static_cast<double>((area.high.y - y) / area.height());
  return sight.y0 + share * (sight.y1 - sight.y0);
}

void paint_arena_bytes(const Ui& ui, const ArenaFrame& frame) {
  const FontScope font(ui.fonts.small);
  const PlotArea& area = frame.area;
  const double shown = frame.sight.y1 - frame.sight.y0;
  const double wanted = static_cast<double>(std::clamp(area.height() / ui.px(40), 2.0f, 10.0f));
  const double apart = std::max(1.0, std::exp2(std::ceil(std::log2(shown / wanted))));
  for (double at = std::ceil(frame.sight.y0 / apart) * apart; at <= frame.sight.y1 && at + apart > at;
       at += apart) {
    const float y = std::round(frame.y_of(at));
    ImGui::GetWindowDrawList()->AddLine({area.low.x, y}, {area.high.x, y}, ui.theme->grid,
                                        std::max(1.0f, ui.px(1)));
    put_text_before(area.low.x - ui.px(8), y - ImGui::GetFontSize() / 2, ui.theme->muted,
                    byte_label(at, apart));
  }
}

void paint_arena_ticks(const Ui& ui, const ArenaFrame& frame, const PlotArea& area, std::string_view tick) {
  for (const double at : view::decimal_ticks(frame.sight.x0, frame.sight.x1, tick_room(ui, area)))
    if (at == std::floor(at))
      paint_tick(ui, area, frame.x_of(at), fmt::format("{} {}", tick, format_grouped(whole(at))));
}

void paint_arena(const Ui& ui, const ArenaFrame& frame, const view::ArenaPicture& picture,
                 const ArenaProblem& problem) {
  ImDrawList* draw = ImGui::GetWindowDrawList();
  const FontScope font(ui.fonts.small);
  const ImVec2 origin = frame.area.low;
  const auto corner = [&](double x, double y) {
    return origin + ImVec2{static_cast<float>(x), static_cast<float>(y)};
  };
  const auto opposite = [&](const view::Rect& rect) { return corner(rect.x + rect.w, rect.y + rect.h); };
  std::array<ImU32, view::kMostArenaKinds> colors = {};
  for (std::uint8_t kind = 0; kind < colors.size(); ++kind)
    colors[kind] = arena_kind_color(*ui.theme, problem.palette, kind);
  for (const view::ArenaCells& cells : picture.cells) {
    const float strength = 0.15f + 0.65f * static_cast<float>(cells.eighths) / 8;
    draw->AddRectFilled(corner(cells.rect.x, cells.rect.y), opposite(cells.rect),
                        mix(ui.theme->panel, colors[cells.kind], strength));
  }
  const auto bordered = static_cast<double>(ui.px(kBordered));
  for (const view::ArenaRect& rect : picture.rects) {
    const ImU32 fill = mix(ui.theme->panel, colors[problem.kinds[rect.buffer]], shade(rect.buffer));
    const ImVec2 low = corner(rect.rect.x, rect.rect.y), high = opposite(rect.rect);
    draw->AddRectFilled(low, high, fill);
    if (rect.rect.w < bordered || rect.rect.h < bordered) continue;
    draw->AddRect(low, high, ui.theme->panel, 0, 0, std::max(1.0f, ui.px(1)));
    if (rect.rect.w >= static_cast<double>(ui.px(16)) && rect.rect.h >= static_cast<double>(ui.px(12)))
      paint_name(ui, rect.rect, low, fill, shown(beginning(problem.name(rect.buffer), kMostName)));
  }
}

void paint_box(const Ui& ui, const ArenaFrame& frame, const view::ArenaBox& box, const BoxPaint& paint,
               std::string_view name) {
  const ImVec2 low = {frame.x_of(static_cast<double>(box.lower)), frame.y_of(static_cast<double>(box.to))};
  ImVec2 high = {frame.x_of(static_cast<double>(box.upper)), frame.y_of(static_cast<double>(box.from))};
  const auto& sight = frame.sight;
  if (static_cast<double>(box.upper) <= sight.x0 || static_cast<double>(box.lower) >= sight.x1 ||
      static_cast<double>(box.to) <= sight.y0 || static_cast<double>(box.from) >= sight.y1)
    return;
  high = {std::max(high.x, low.x + 2), std::max(high.y, low.y + 2)};
  ImDrawList* draw = ImGui::GetWindowDrawList();
  if (paint.fill != 0) draw->AddRectFilled(low, high, paint.fill);
  if (paint.line != 0) draw->AddRect(low, high, paint.line, 0, 0, std::max(1.0f, ui.px(paint.thickness)));
  if (name.empty()) return;
  const FontScope font(ui.fonts.small);
  const view::Rect rect = {0, 0, static_cast<double>(high.x - low.x), static_cast<double>(high.y - low.y)};
  paint_name(ui, rect, low, paint.fill != 0 ? paint.fill : ui.theme->panel,
             shown(beginning(name, kMostName)));
}

void paint_level_line(const Ui& ui, const ArenaFrame& frame, double byte, ImU32 color, bool dashed,
                      std::string_view label, std::vector<PlotArea>& taken) {
  if (byte < frame.sight.y0 || byte > frame.sight.y1) return;
  const float y = std::round(frame.y_of(byte));
  const float dash = dashed ? ui.px(6) : frame.area.width();
  paint_dashed({frame.area.low.x, y}, {frame.area.high.x, y}, color, dash, dash, std::max(1.0f, ui.px(1.5f)));
  const FontScope font(ui.fonts.small);
  const float width = text_width(label) + ui.px(12), height = ImGui::GetFontSize() + ui.px(4);
  const float right = frame.area.high.x - width, left = frame.area.low.x;
  const float above = y - height, below = y + ui.px(1);
  for (const ImVec2 low : {ImVec2{right, above}, {left, above}, {right, below}, {left, below}}) {
    const PlotArea box = {low, {low.x + width, low.y + height}};
    if (box.low.y < frame.area.low.y || box.high.y > frame.area.high.y) continue;
    if (std::ranges::any_of(taken, [&](const PlotArea& other) { return box.overlaps(other); })) continue;
    taken.push_back(box);
    ImGui::GetWindowDrawList()->AddRectFilled(box.low, box.high, color, ui.px(3));
    return put_text(box.low + ImVec2{ui.px(6), ui.px(2)}, text_on(color), label);
  }
}

}  // namespace loadline::gui
