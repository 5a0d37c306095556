// Painter's order: who draws levels from the top of a stack down covers what lies below each sum.
#include "app/gui/panels/plot_paint.h"

#include "app/gui/widgets.h"
#include "core/base/text.h"

#include <algorithm>
#include <cmath>

namespace loadline::gui {
namespace {

// Ticks are powers of two: "128 GiB", not "128.00 GiB".
std::string byte_label(double bytes) {
  if (bytes <= 0) return "0";
  std::string label = format_bytes(static_cast<std::uint64_t>(bytes));
  if (const std::size_t zeros = label.find(".00"); zeros != std::string::npos) label.erase(zeros, 3);
  return label;
}

}  // namespace

float plot_y(const PlotArea& area, double most, double bytes) {
  const double share = most > 0 ? std::min(bytes / most, 1.0) : 0;
  return std::round(area.high.y - static_cast<float>(share) * (area.high.y - area.low.y));
}

void paint_byte_axis(const Ui& ui, const PlotArea& area, double most) {
  ImDrawList* draw = ImGui::GetWindowDrawList();
  const FontScope font(ui.fonts.small);
  const float room = area.high.y - area.low.y;
  const auto wanted = static_cast<std::size_t>(std::clamp(room / ui.px(26), 2.0f, 10.0f));
  for (const double tick : view::byte_ticks(most, wanted)) {
    if (tick > most) continue;
    const float y = plot_y(area, most, tick);
    draw->AddLine({area.low.x, y}, {area.high.x, y}, ui.theme->grid, std::max(1.0f, ui.px(1)));
    const std::string label = byte_label(tick);
    const float width = ImGui::CalcTextSize(label.c_str()).x;
    draw->AddText({area.low.x - width - ui.px(8), y - ImGui::GetFontSize() / 2}, ui.theme->muted,
                  label.c_str());
  }
}

void paint_level(const Ui& ui, const PlotArea& area, double most, std::span<const view::CurveColumn> columns,
                 ImU32 color) {
  ImDrawList* draw = ImGui::GetWindowDrawList();
  const float base = area.high.y;
  const float width = (area.high.x - area.low.x) / static_cast<float>(columns.size());
  const ImU32 body = mix(ui.theme->panel, color, 0.80f);
  const ImU32 teeth = with_alpha(color, 0.5f);
  for (std::size_t i = 0; i < columns.size();) {
    std::size_t end = i + 1;
    while (end < columns.size() && columns[end] == columns[i]) ++end;
    const float x0 = area.low.x + static_cast<float>(i) * width;
    const float x1 = area.low.x + static_cast<float>(end) * width;
    const float low = plot_y(area, most, columns[i].low);
    const float high = plot_y(area, most, columns[i].high);
    if (low < base) draw->AddRectFilled({x0, low}, {x1, base}, body);
    if (high < low) draw->AddRectFilled({x0, high}, {x1, low}, teeth);
    if (high < base) draw->AddRectFilled({x0, high}, {x1, high + std::max(1.0f, ui.px(1.5f))}, color);
    i = end;
  }
}

void paint_dashed(ImDrawList& draw, ImVec2 from, ImVec2 to, ImU32 color, float dash, float thickness) {
  for (float y = from.y; y < to.y; y += 2 * dash)
    draw.AddLine({from.x, y}, {to.x, std::min(y + dash, to.y)}, color, thickness);
}

void paint_flag(const Ui& ui, const PlotArea& area, float x, ImU32 color, std::string_view label,
                std::vector<PlotArea>& taken) {
  ImDrawList* draw = ImGui::GetWindowDrawList();
  const FontScope font(ui.fonts.small);
  const ImVec2 size = ImGui::CalcTextSize(label.data(), label.data() + label.size());
  const ImVec2 pad = {ui.px(7), ui.px(3)};
  const float width = size.x + 2 * pad.x, height = size.y + 2 * pad.y;
  const float left =
      x + ui.px(8) + width < area.high.x ? x + ui.px(8) : std::max(area.low.x, x - ui.px(8) - width);
  PlotArea flag = {{left, area.low.y + ui.px(2)}, {left + width, area.low.y + ui.px(2) + height}};
  const auto covers = [&](const PlotArea& other) {
    return flag.low.x < other.high.x && other.low.x < flag.high.x && flag.low.y < other.high.y &&
           other.low.y < flag.high.y;
  };
  while (std::any_of(taken.begin(), taken.end(), covers)) {
    flag.low.y += height + ui.px(2);
    flag.high.y += height + ui.px(2);
    if (flag.high.y > area.high.y) return;
  }
  taken.push_back(flag);
  draw->AddRectFilled(flag.low, flag.high, color, ui.px(5));
  draw->AddText({flag.low.x + pad.x, flag.low.y + pad.y}, text_on(color), label.data(),
                label.data() + label.size());
}

void paint_tick(const Ui& ui, const PlotArea& area, float x, std::string_view label) {
  ImDrawList* draw = ImGui::GetWindowDrawList();
  const FontScope font(ui.fonts.small);
  const float width = text_width(label);
  draw->AddLine({x, area.high.y}, {x, area.high.y + ui.px(4)}, ui.theme->muted, std::max(1.0f, ui.px(1)));
  const float left = std::clamp(x - width / 2, area.low.x, std::max(area.low.x, area.high.x - width));
  draw->AddText({left, area.high.y + ui.px(6)}, ui.theme->muted, label.data(), label.data() + label.size());
}

}  // namespace loadline::gui
