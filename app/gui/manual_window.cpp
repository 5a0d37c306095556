// Draws manual pages line by line, as a terminal does, with emphasised headings.
#include "app/gui/manual_window.h"

#include "app/gui/widgets.h"
#include "app/report/manual.h"
#include "core/base/text.h"

#include <algorithm>
#include <string>
#include <vector>

namespace loadline::gui {
namespace {

void draw_line(const Ui& ui, std::string_view line) {
  const std::size_t level = line.find_first_not_of('#');
  if (level == 0 || level == std::string_view::npos || line[level] != ' ') {
    const FontScope font(ui.fonts.mono);
    return text(line.empty() ? " " : line);
  }
  const FontScope font(level == 1 ? ui.fonts.title : ui.fonts.strong);
  text(line.substr(level + 1));
}

void draw_page(const Ui& ui, std::string_view page) {
  const std::string plain = report::manual_plain_text(page);
  for (const std::string_view line : lines_of(plain)) draw_line(ui, line);
}

}  // namespace

void draw_manual(Workspace& workspace, const Ui& ui) {
  if (workspace.manual.empty()) return;
  const ImVec2 screen = ImGui::GetIO().DisplaySize;
  ImGui::SetNextWindowPos({screen.x / 2, screen.y / 2}, ImGuiCond_Always, {0.5f, 0.5f});
  ImGui::SetNextWindowSize({std::min(ui.px(920), screen.x - ui.px(40)), screen.y - ui.px(80)});
  ImGui::SetNextWindowFocus();
  constexpr ImGuiWindowFlags kFlags = ImGuiWindowFlags_NoTitleBar | ImGuiWindowFlags_NoResize |
                                      ImGuiWindowFlags_NoMove | ImGuiWindowFlags_NoSavedSettings;
  ImGui::PushStyleVar(ImGuiStyleVar_WindowPadding, {ui.px(18), ui.px(14)});
  ImGui::PushStyleVar(ImGuiStyleVar_WindowRounding, ui.px(10));
  ImGui::PushStyleVar(ImGuiStyleVar_WindowBorderSize, 1);
  ImGui::PushStyleColor(ImGuiCol_WindowBg, ui.theme->panel);
  ImGui::Begin("manual", nullptr, kFlags);
  ImGui::PopStyleColor();
  ImGui::PopStyleVar(3);
  const auto pages = report::manual_pages();
  std::vector<std::string_view> titles;
  std::size_t now = 0;
  for (const report::ManualPage& page : pages) {
    if (page.id == workspace.manual) now = titles.size();
    titles.push_back(page.title);
  }
  const auto picked = combo(ui, "##page", ui.px(260), titles[now], titles, now);
  ImGui::SameLine(0, ui.px(12));
  const bool closed = button(ui, "Close");
  ImGui::SameLine(0, ui.px(12));
  control_text("Esc closes", ui.theme->muted);
  {
    const IdScope scope(now);  // each page keeps its own place
    const ChildScope child("page", {0, 0}, false, ImGuiWindowFlags_HorizontalScrollbar);
    const StyleScope style(ImGuiStyleVar_ItemSpacing, {0, ui.px(3)});
    draw_page(ui, pages[now].text);
  }
  ImGui::End();
  if (picked) workspace.manual = pages[*picked].id;
  if (closed) workspace.manual.clear();
}

}  // namespace loadline::gui
