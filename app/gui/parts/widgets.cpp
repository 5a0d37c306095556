// Text, marks and surfaces, drawn so that they look the same in both themes and at any scale.
#include "app/gui/parts/widgets.h"

#include "app/gui/window/input.h"
#include "core/base/text.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include <fmt/core.h>
#include <imgui_internal.h>

namespace loadline::gui {
namespace {

// ImGui would break after the point of "1.5 GiB".
std::string broken_at_spaces(std::string_view text, float width) {
  std::string lines(text);
  std::size_t line = 0;
  std::size_t last = std::string::npos;  // space of the line
  for (std::size_t i = 0; i <= lines.size(); ++i) {
    const bool end = i == lines.size();
    if (!end && lines[i] != ' ' && lines[i] != '\n') continue;
    if (last != std::string::npos && text_width(std::string_view(lines).substr(line, i - line)) > width) {
      lines[last] = '\n';
      line = last + 1;
    }
    if (end) break;
    last = i;
    if (lines[i] == '\n') {
      line = i + 1;
      last = std::string::npos;
    }
  }
  return lines;
}

}  // namespace

void text(std::string_view text) { ImGui::TextUnformatted(text.data(), text.data() + text.size()); }

void text_colored(ImU32 color, std::string_view words) {
  const ColorScope scope(ImGuiCol_Text, color);
  text(words);
}

void muted(const Ui& ui, std::string_view words) { text_colored(ui.theme->muted, words); }

void small_text(const Ui& ui, std::string_view words, ImU32 color) {
  const FontScope font(ui.fonts.small);
  text_colored(color, words);
}

void control_text(std::string_view words, ImU32 color) {
  ImGui::AlignTextToFramePadding();
  text_colored(color, words);
}

void put_text(ImVec2 at, ImU32 color, std::string_view words) {
  if (words.empty()) return;  // ImGui would look for the end of no text
  ImGui::GetWindowDrawList()->AddText(at, color, words.data(), words.data() + words.size());
}

void put_text_before(float right, float y, ImU32 color, std::string_view words) {
  put_text({right - text_width(words), y}, color, words);
}

void name_text(const Ui& ui, std::string_view name, float width, ImU32 color, bool cut_front) {
  const std::string whole = shown(name);
  const float room = width > 0 ? width : ImGui::GetContentRegionAvail().x;
  const std::string cut = cut_front ? elided_path(whole, room) : elided_name(whole, room);
  text_colored(color, cut);
  if (cut.size() != whole.size()) tooltip(ui, whole);
}

void paragraph(const Ui&, std::string_view words, ImU32 color) {
  ImGui::PushTextWrapPos(0);  // for what has no spaces
  text_colored(color, broken_at_spaces(words, ImGui::GetContentRegionAvail().x));
  ImGui::PopTextWrapPos();
}

void badge_line(const Ui& ui, std::string_view label, ImU32 label_color, std::string_view words, ImU32 color,
                float gap) {
  badge(ui, label, label_color);
  ImGui::SameLine(0, ui.px(gap));
  paragraph(ui, words, color);
}

void fact(const Ui& ui, std::string_view label, std::string_view value, ImU32 color, ImFont* font,
          float spacing) {
  const GroupScope group;
  const StyleScope style(ImGuiStyleVar_ItemSpacing, {0, ui.px(spacing)});
  small_text(ui, label, ui.theme->muted);
  const FontScope scope(font);
  text_colored(color, value);
}

void heading(const Ui& ui, std::string_view words) {
  const FontScope font(ui.fonts.strong);
  text(words);
}

void bytes_text(const Ui& ui, std::uint64_t bytes, ImU32 color) {
  text_colored(color, format_bytes(bytes));
  bytes_tooltip(ui, bytes);
}

void bytes_tooltip(const Ui& ui, std::uint64_t bytes) { tooltip(ui, format_grouped(bytes) + " bytes"); }

bool table_is_measured(std::size_t rows, float height) {
  return ImGui::GetScrollMaxY() > 0 || ImGui::GetTextLineHeight() * static_cast<float>(rows) < height;
}

std::optional<std::size_t> row_by_keys(const Ui& ui, std::optional<std::size_t> at, std::size_t count) {
  if (!list_has_keyboard()) return std::nullopt;
  if (focus_is_seen()) {
    const ImVec2 low = ImGui::GetWindowPos(), size = ImGui::GetWindowSize();
    const ImVec2 inset = {ui.px(1), ui.px(1)};
    ImGui::GetForegroundDrawList()->AddRect(low + inset, low + size - inset, ui.theme->accent, ui.px(4), 0,
                                            std::max(1.0f, ui.px(1.5f)));
  }
  if (count == 0 || ImGui::GetIO().KeyAlt || ImGui::GetIO().KeyCtrl) return std::nullopt;
  const float line = ImGui::GetTextLineHeightWithSpacing();
  const auto page = static_cast<std::size_t>(std::max(1.0f, ImGui::GetWindowHeight() / line - 2));
  const std::size_t last = count - 1;
  if (list_key_pressed(ListKey::home)) return 0;
  if (list_key_pressed(ListKey::end)) return last;
  const bool down = list_key_pressed(ListKey::down), page_down = list_key_pressed(ListKey::page_down);
  const bool up = list_key_pressed(ListKey::up), page_up = list_key_pressed(ListKey::page_up);
  if (!down && !up && !page_down && !page_up) return std::nullopt;
  if (!at) return down || page_down ? 0 : last;
  const std::size_t step = page_down || page_up ? page : 1;
  const std::size_t to = down || page_down ? std::min(last, *at + step) : *at - std::min(*at, step);
  return to == *at ? std::nullopt : std::optional(to);
}

void scroll_by_keys() {
  const float line = 3 * ImGui::GetTextLineHeightWithSpacing(), page = ImGui::GetWindowHeight() * 0.9f;
  const float at = ImGui::GetScrollY();
  if (list_key_pressed(ListKey::down)) ImGui::SetScrollY(at + line);
  if (list_key_pressed(ListKey::up)) ImGui::SetScrollY(at - line);
  if (list_key_pressed(ListKey::page_down)) ImGui::SetScrollY(at + page);
  if (list_key_pressed(ListKey::page_up)) ImGui::SetScrollY(at - page);
  if (list_key_pressed(ListKey::home)) ImGui::SetScrollY(0);
  if (list_key_pressed(ListKey::end)) ImGui::SetScrollY(ImGui::GetScrollMaxY());
}

bool row_is_entered() { return list_has_keyboard() && list_key_pressed(ListKey::enter); }

void scroll_to_row(std::size_t row, float text_height) {
  const float height =
      std::max(text_height, ImGui::GetTextLineHeight()) + 2 * ImGui::GetStyle().CellPadding.y;
  const float top = height * static_cast<float>(row);
  const float view = ImGui::GetWindowHeight() - 2 * height;
  if (top >= ImGui::GetScrollY() && top <= ImGui::GetScrollY() + view) return;
  ImGui::SetScrollY(height * std::max(0.0f, std::round((top - view / 2) / height)));
}

void right_aligned(std::string_view words, ImU32 color) {
  const float slack = ImGui::GetContentRegionAvail().x - text_width(words);
  if (slack > 0) ImGui::SetCursorPosX(ImGui::GetCursorPosX() + slack);
  text_colored(color, words);
}

void fixed_column(const Ui& ui, const char* title, float width, ImGuiTableColumnFlags flags) {
  ImGui::TableSetupColumn(title, ImGuiTableColumnFlags_WidthFixed | flags, ui.px(width));
}

void stretched_column(const char* title, float weight, ImGuiTableColumnFlags flags) {
  ImGui::TableSetupColumn(title, ImGuiTableColumnFlags_WidthStretch | flags, weight);
}

void table_headers(const Ui& ui, std::initializer_list<int> figures) {
  ImGui::TableSetupScrollFreeze(0, 1);
  ImGui::TableNextRow(ImGuiTableRowFlags_Headers);
  for (int i = 0; i < ImGui::TableGetColumnCount(); ++i) {
    if (!ImGui::TableSetColumnIndex(i)) continue;
    const IdScope scope(i);
    column_title(ui, ImGui::TableGetColumnName(i), std::ranges::find(figures, i) != figures.end());
  }
}

// ImGui's own would stand at the left, with room for an arrow behind it, sorted or not.
void column_title(const Ui& ui, std::string_view title, bool of_figures) {
  const bool sorted = (ImGui::TableGetColumnFlags() & ImGuiTableColumnFlags_IsSorted) != 0;
  const ImVec2 at = ImGui::GetCursorScreenPos();
  const float room = ImGui::GetContentRegionAvail().x - (sorted ? ui.px(14) : 0);
  const std::string words = elided(title, room);
  ImGui::TableHeader("##title");
  put_text({of_figures ? at.x + room - text_width(words) : at.x, at.y},
           sorted ? ui.theme->text : ui.theme->muted, words);
}

bool table_row(bool selected, float height, ImGuiSelectableFlags flags) {
  ImGui::TableNextRow();
  ImGui::TableNextColumn();
  const ImVec2 start = ImGui::GetCursorPos();
  const bool clicked =
      ImGui::Selectable("##row", selected, ImGuiSelectableFlags_SpanAllColumns | flags, {0, height});
  ImGui::SetCursorPos(start);
  return clicked;
}

std::optional<TableSort> SortArrows::agree(TableSort wanted, std::optional<std::size_t> at) {
  ImGuiTableSortSpecs* specs = ImGui::TableGetSortSpecs();
  if (specs == nullptr) return std::nullopt;
  TableSort arrow;
  if (specs->SpecsCount == 1)
    arrow = {specs->Specs[0].ColumnUserID, specs->Specs[0].SortDirection != ImGuiSortDirection_Descending};
  specs->SpecsDirty = false;
  const TableSort before = std::exchange(agreed_, arrow);
  if (arrow == wanted) return std::nullopt;
  if (wanted == before || wanted.column == 0) return arrow;
  agreed_ = wanted;
  if (at)
    ImGui::TableSetColumnSortDirection(
        static_cast<int>(*at),
        wanted.ascending ? ImGuiSortDirection_Ascending : ImGuiSortDirection_Descending, false);
  return std::nullopt;
}

bool link(const Ui& ui, const char* id, std::string_view words, float width, bool cut_front) {
  const std::string whole = shown(words);
  const float room = width > 0 ? width : ImGui::GetContentRegionAvail().x;
  const std::string cut = cut_front ? elided_path(whole, room) : elided_name(whole, room);
  const ImVec2 at = ImGui::GetCursorScreenPos();
  const ImVec2 size = {std::max(text_width(cut), 1.0f), ImGui::GetFontSize()};
  const bool pressed = press_area(ui, id, size);
  ImDrawList* draw = ImGui::GetWindowDrawList();
  draw->AddText(at, ui.theme->accent, cut.c_str());
  if (ImGui::IsItemHovered()) {
    ImGui::SetMouseCursor(ImGuiMouseCursor_Hand);
    draw->AddLine({at.x, at.y + size.y}, {at.x + size.x, at.y + size.y}, ui.theme->accent, ui.px(1));
    if (cut.size() != whole.size()) tooltip(ui, whole);
  }
  return pressed;
}

void badge(const Ui& ui, std::string_view words, ImU32 color) {
  const FontScope font(ui.fonts.small);
  const ImVec2 pad = {ui.px(7), ui.px(2)};
  const ImVec2 at = ImGui::GetCursorScreenPos();
  const ImVec2 size = {text_width(words) + 2 * pad.x, ImGui::GetFontSize() + 2 * pad.y};
  ImDrawList* draw = ImGui::GetWindowDrawList();
  draw->AddRectFilled(at, at + size, mix(ui.theme->panel, color, 0.18f), ui.px(5));
  draw->AddRect(at, at + size, mix(ui.theme->panel, color, 0.55f), ui.px(5));
  put_text(at + pad, ui.theme->text, words);
  ImGui::Dummy(size);
}

bool continue_line(const Ui& ui, float spacing, float needed) {
  const float right = ImGui::GetWindowPos().x + ImGui::GetWindowContentRegionMax().x;
  if (ImGui::GetItemRectMax().x + ui.px(spacing) + needed > right) return false;
  ImGui::SameLine(0, ui.px(spacing));
  return true;
}

float legend_width(const Ui& ui, std::string_view words, std::string_view figure) {
  const FontScope font(ui.fonts.small);
  return ui.px(22) + text_width(words) + (figure.empty() ? 0 : text_width(figure));
}

bool legend_entry(const Ui& ui, ImU32 color, std::string_view words, std::string_view figure) {
  const FontScope font(ui.fonts.small);
  const ImVec2 at = ImGui::GetCursorScreenPos();
  const float height = ImGui::GetFontSize();
  const float square = ui.px(10);
  const float gap = ui.px(6);
  const float words_width = text_width(words);
  const float figure_width = figure.empty() ? 0 : text_width(figure) + gap;
  const ImVec2 corner = {at.x, std::round(at.y + (height - square) / 2)};
  ImGui::GetWindowDrawList()->AddRectFilled(corner, corner + ImVec2{square, square}, color, ui.px(3));
  put_text({at.x + square + gap, at.y}, ui.theme->text, words);
  put_text({at.x + square + 2 * gap + words_width, at.y}, ui.theme->muted, figure);
  ImGui::Dummy({square + gap + words_width + figure_width, height});
  return ImGui::IsItemHovered();
}

void bar(const Ui& ui, double fraction, ImU32 color, ImVec2 size) {
  const ImVec2 at = ImGui::GetCursorScreenPos();
  ImDrawList* draw = ImGui::GetWindowDrawList();
  const float rounding = std::min(size.y / 2, ui.px(3));
  draw->AddRectFilled(at, {at.x + size.x, at.y + size.y}, ui.theme->raised, rounding);
  // what is there but thinner than a pixel still shows
  const float filled =
      fraction > 0 ? std::max(ui.px(2), size.x * static_cast<float>(std::min(fraction, 1.0))) : 0;
  if (filled > 0) draw->AddRectFilled(at, {at.x + filled, at.y + size.y}, color, rounding);
  ImGui::Dummy(size);
}

void bar_with_figure(const Ui& ui, double fraction, ImU32 color, float room, std::string_view figure,
                     ImU32 figure_color) {
  const float y = ImGui::GetCursorPosY();
  const float width = ImGui::GetContentRegionAvail().x - ui.px(room);
  ImGui::SetCursorPosY(y + (ImGui::GetTextLineHeight() - ui.px(6)) / 2);
  bar(ui, fraction, color, {std::max(ui.px(8), width), ui.px(6)});
  ImGui::SameLine(0, 0);
  ImGui::SetCursorPosY(y);
  right_aligned(figure, figure_color);
}

bool progress_with_stop(const Ui& ui, double fraction) {
  const float stop = text_width("Stop") + 2 * ImGui::GetStyle().FramePadding.x;
  const float width = ImGui::GetContentRegionAvail().x - stop - ui.px(12);
  const float y = ImGui::GetCursorPosY();
  ImGui::SetCursorPosY(y + (ImGui::GetFrameHeight() - ui.px(8)) / 2);
  bar(ui, fraction, ui.theme->accent, {std::max(ui.px(40), width), ui.px(8)});
  ImGui::SameLine(0, ui.px(12));
  ImGui::SetCursorPosY(y);
  return button(ui, "Stop");
}

void parts_bar(const Ui& ui, std::span<const Part> parts, float height) {
  std::uint64_t total = 0;
  for (const Part& part : parts) total += part.bytes;
  const ImVec2 at = ImGui::GetCursorScreenPos();
  const float width = ImGui::GetContentRegionAvail().x;
  ImDrawList* draw = ImGui::GetWindowDrawList();
  draw->AddRectFilled(at, {at.x + width, at.y + height}, ui.theme->raised, ui.px(4));
  float x = at.x;
  for (const Part& part : parts) {
    if (part.bytes == 0) continue;
    const auto share = static_cast<float>(share_of(part.bytes, total));
    const float next = std::min(x + std::max(1.0f, width * share), at.x + width);
    draw->AddRectFilled({x, at.y}, {std::max(x + 1, next - ui.px(1)), at.y + height}, part.color, ui.px(2));
    x = next;
  }
  ImGui::Dummy({width, height});
  bool first = true;
  for (const Part& part : parts) {
    if (part.bytes == 0) continue;
    const std::string figure = format_bytes(part.bytes) + "  " + percent_text(share_of(part.bytes, total));
    if (!first) continue_line(ui, 18, legend_width(ui, part.label, figure));
    legend_entry(ui, part.color, part.label, figure);
    first = false;
  }
}

CardScope::CardScope(const Ui& ui, const char* id, ImVec2 size, bool padded) {
  const ColorScope color(ImGuiCol_ChildBg, ui.theme->panel);
  const float pad = padded ? ui.px(kCardPadding) : 0;
  const StyleScope style(ImGuiStyleVar_WindowPadding, {pad, padded ? ui.px(12) : 0});
  ImGui::BeginChild(id, size, true,
                    padded ? 0 : ImGuiWindowFlags_NoScrollbar | ImGuiWindowFlags_NoScrollWithMouse);
}

void empty_state(const Ui& ui, std::string_view title, std::string_view hint) {
  const ImVec2 room = ImGui::GetContentRegionAvail();
  const ImVec2 start = ImGui::GetCursorPos();
  const auto centered = [&](ImFont* font, ImU32 color, std::string_view words, float y) {
    const FontScope scope(font);
    const float width = std::min({text_width(words) + 1, room.x, ui.px(520)});  // + 1: never breaks itself
    ImGui::SetCursorPos({start.x + (room.x - width) / 2, y});
    ImGui::PushTextWrapPos(ImGui::GetCursorPosX() + width);
    text_colored(color, broken_at_spaces(words, width));
    ImGui::PopTextWrapPos();
  };
  const float middle = start.y + std::max(room.y * 0.42f - ui.px(20), 0.0f);
  centered(ui.fonts.strong, ui.theme->text, title, middle);
  centered(ui.fonts.body, ui.theme->muted, hint, middle + ui.px(26));
}

bool icon_button(const Ui& ui, const char* id, std::string_view hint,
                 const std::function<void(ImVec2 center, ImU32 color)>& paint) {
  const float side = ImGui::GetFrameHeight();
  const ImVec2 at = ImGui::GetCursorScreenPos();
  const bool pressed = press_area(ui, id, {side, side});
  const bool hot = ImGui::IsItemHovered();
  if (hot)
    ImGui::GetWindowDrawList()->AddRectFilled(at, {at.x + side, at.y + side}, ui.theme->hovered, ui.px(6));
  paint(ImVec2{at.x + side / 2, at.y + side / 2}, hot ? ui.theme->text : ui.theme->muted);
  tooltip(ui, hint);
  return pressed;
}

void paint_cross(const Ui& ui, ImVec2 center, ImU32 color) {
  const float r = ui.px(4.5f);
  ImDrawList* draw = ImGui::GetWindowDrawList();
  draw->AddLine({center.x - r, center.y - r}, {center.x + r, center.y + r}, color, ui.px(1.6f));
  draw->AddLine({center.x - r, center.y + r}, {center.x + r, center.y - r}, color, ui.px(1.6f));
}

float splitter(const Ui& ui, const char* id, float width, float least, float most, bool vertical,
               bool behind) {
  const ImVec2 room = ImGui::GetContentRegionAvail();
  const float thickness = ui.px(8);
  const ImVec2 at = ImGui::GetCursorScreenPos();
  const ImVec2 size = vertical ? ImVec2{thickness, room.y} : ImVec2{room.x, thickness};
  plot_area(id, size);
  const bool hot = ImGui::IsItemHovered() || ImGui::IsItemActive();
  if (hot) {
    ImGui::SetMouseCursor(vertical ? ImGuiMouseCursor_ResizeEW : ImGuiMouseCursor_ResizeNS);
    const ImVec2 middle = at + size / 2;
    const ImVec2 reach = vertical ? ImVec2{0, ui.px(18)} : ImVec2{ui.px(18), 0};
    ImGui::GetWindowDrawList()->AddLine(middle - reach, middle + reach, ui.theme->accent, ui.px(3));
  }
  const float moved = vertical ? ImGui::GetIO().MouseDelta.x : ImGui::GetIO().MouseDelta.y;
  if (ImGui::IsItemActive()) width += behind ? -moved : moved;
  return std::clamp(width, least, std::max(least, most));
}

void tooltip(const Ui& ui, std::string_view words) {
  if (!words.empty()) hover_card(ui, [&] { text(words); });
}

void hover_card(const Ui& ui, const std::function<void()>& build) {
  if (!ImGui::IsItemHovered()) return;
  const StyleScope style(ImGuiStyleVar_WindowPadding, {ui.px(12), ui.px(10)});
  ImGui::BeginTooltip();
  ImGui::PushTextWrapPos(ui.px(560));
  build();
  ImGui::PopTextWrapPos();
  ImGui::EndTooltip();
}

float marked_row_height(const Ui& ui) { return ImGui::GetFontSize() + ui.px(6); }

bool marked_row(const Ui& ui, bool selected, ImU32 color, std::string_view name, std::string_view figure,
                ImU32 figure_color, std::string_view letter) {
  const float height = marked_row_height(ui);
  const float width = ImGui::GetContentRegionAvail().x;
  const ImVec2 at = ImGui::GetCursorScreenPos();
  const bool clicked = ImGui::Selectable("##row", selected, 0, {width, height});
  const float mark = ui.px(letter.empty() ? 4 : 15), y = at.y + ui.px(3);
  const float inset = ui.px(letter.empty() ? 5 : 3);
  ImGui::GetWindowDrawList()->AddRectFilled({at.x + ui.px(2), at.y + inset},
                                            {at.x + ui.px(2) + mark, at.y + height - inset + ui.px(1)}, color,
                                            ui.px(letter.empty() ? 2 : 3));
  put_text({at.x + ui.px(2) + (mark - text_width(letter)) / 2, y}, text_on(color), letter);
  const float before = mark + ui.px(8);
  put_text({at.x + before, y}, ui.theme->text,
           elided_name(shown(name), width - text_width(figure) - before - ui.px(14)));
  put_text_before(at.x + width - ui.px(4), y, figure_color, figure);
  return clicked;
}

void load_line_mark(const Ui& ui, ImVec2 center, float radius) {
  ImDrawList* draw = ImGui::GetWindowDrawList();
  const float thick = std::max(1.5f, radius * 0.17f);
  draw->AddCircle(center, radius * 0.72f, ui.theme->text, 48, thick);
  draw->AddLine({center.x - radius * 1.15f, center.y}, {center.x + radius * 1.15f, center.y},
                ui.theme->accent, thick * 1.15f);
}

std::string shape_text(const graph::Tensor& tensor) {
  if (tensor.shape.empty()) return "scalar";
  std::string result;
  for (const std::uint64_t side : tensor.shape) {
    if (!result.empty()) result += " \xC3\x97 ";
    result += fmt::format("{}", side);
  }
  return result;
}

std::string strides_text(const graph::Tensor& tensor) {
  if (tensor.strides.empty()) return "";
  std::string result;
  for (const auto stride : tensor.strides)
    result += fmt::format("{}{}", result.empty() ? "strides " : " \xC3\x97 ", stride);
  return result + ", in elements";
}

std::string percent_text(double fraction) {
  if (fraction > 0 && fraction < 0.0005) return "<0.1%";
  return fmt::format("{:.1f}%", fraction * 100);
}

double share_of(std::uint64_t part, std::uint64_t whole) {
  return static_cast<double>(part) / static_cast<double>(std::max<std::uint64_t>(whole, 1));
}

ImU32 severity_color(const Theme& theme, graph::Severity severity) {
  return severity == graph::Severity::error     ? theme.bad
         : severity == graph::Severity::warning ? theme.warning
                                                : theme.accent;
}

}  // namespace loadline::gui
