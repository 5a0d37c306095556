// Breaks values into lines: sentences between words, names of files between their parts.
#include "app/gui/parts/fact_row.h"

#include "app/gui/parts/widgets.h"
#include "core/base/text.h"

#include <algorithm>
#include <optional>
#include <string>

namespace loadline::gui {
namespace {

// The length of the text up to where a line may end: behind one of `ends`.
std::size_t part_length(std::string_view text, std::string_view ends) {
  const std::size_t end = text.find_first_of(ends);
  return end == std::string_view::npos ? text.size() : end + 1;
}

// None if a part is wider than a line, or the text too long to be a fact: files can hold any name.
std::optional<std::string> in_lines(std::string_view text, float width, std::string_view ends) {
  constexpr std::size_t kLongest = 256;
  if (text.size() > kLongest) return std::nullopt;
  std::string lines;
  std::size_t line = 0;  // where the last one begins
  for (std::size_t at = 0; at < text.size();) {
    const std::string_view part = text.substr(at, part_length(text.substr(at), ends));
    const std::string_view visible = part.ends_with(' ') ? part.substr(0, part.size() - 1) : part;
    if (text_width(visible) > width) return std::nullopt;
    if (text_width(lines.substr(line) + std::string(visible)) > width) {
      lines += '\n';
      line = lines.size();
    }
    lines += part;
    at += part.size();
  }
  return lines;
}

// Each line as high as a line of facts.
void draw_lines(const Ui& ui, std::string_view lines, float left) {
  const StyleScope style(ImGuiStyleVar_ItemSpacing, {0, fact_height(ui) - ImGui::GetFontSize()});
  for (const std::string_view line : split(lines, '\n')) {
    ImGui::SetCursorPosX(left);
    text_colored(ui.theme->text, line);
  }
}

}  // namespace

float fact_height(const Ui& ui) { return ui.fonts.small->FontSize + ui.px(4); }

void fact_title(const Ui& ui, std::string_view name) {
  const FontScope font(ui.fonts.mono);
  const float room = ImGui::GetContentRegionAvail().x;
  const std::string whole = shown(name);
  auto lines = in_lines(whole, room, " ./");
  if (!lines) lines = in_lines(whole, room, " ._-/");
  draw_lines(ui, lines ? *lines : elided_name(whole, room), ImGui::GetCursorPosX());
}

void fact_row(const Ui& ui, std::string_view label, std::string_view value, std::string_view hint) {
  const float start = ImGui::GetCursorPosX(), column = ui.px(84), indent = ui.px(10);
  const float room = ImGui::GetContentRegionAvail().x;
  const std::string whole = shown(value);
  {
    const GroupScope group;
    const StyleScope style(ImGuiStyleVar_ItemSpacing, {0, fact_height(ui) - ImGui::GetFontSize()});
    const float top = ImGui::GetCursorPosY();
    muted(ui, label);
    if (const auto beside = in_lines(whole, room - column, " ")) {
      ImGui::SetCursorPosY(top);
      draw_lines(ui, *beside, start + column);
    } else {
      const auto below = in_lines(whole, room - indent, " -_.");
      draw_lines(ui, below ? *below : elided(whole, room - indent), start + indent);
    }
  }
  tooltip(ui, hint);
}

}  // namespace loadline::gui
