// Breaks values into lines: sentences between words, names of files between their parts.
#include "app/gui/panels/fact_row.h"

#include "app/gui/widgets.h"

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

// None if a part is wider than a line.
std::optional<std::string> in_lines(std::string_view text, float width, std::string_view ends) {
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

}  // namespace

void fact_row(const Ui& ui, std::string_view label, std::string_view value, std::string_view hint) {
  const float start = ImGui::GetCursorPosX(), column = ui.px(84), indent = ui.px(10);
  const float room = ImGui::GetContentRegionAvail().x;
  const std::string whole = shown(value);
  {
    const GroupScope group;
    muted(ui, label);
    if (const auto beside = in_lines(whole, room - column, " ")) {
      ImGui::SameLine(start + column);
      text_colored(ui.theme->text, *beside);
    } else {
      ImGui::SetCursorPosX(start + indent);
      const auto below = in_lines(whole, room - indent, " -_.");
      text_colored(ui.theme->text, below ? *below : elided(whole, room - indent));
    }
  }
  tooltip(ui, hint);
}

}  // namespace loadline::gui
