// The layout of the window, and its panels; shell_chrome.cpp draws the parts around the panels.
#include "app/gui/shell.h"

#include "app/gui/actions.h"
#include "app/gui/manual_window.h"
#include "app/gui/panels/panels.h"
#include "app/gui/widgets.h"
#include "app/gui/window/window.h"

#include <algorithm>

namespace loadline::gui {
namespace {

constexpr float kHeader = 54;
constexpr float kDetails = 64;
constexpr float kStatus = 28;
constexpr float kMargin = 12;

constexpr ImGuiWindowFlags kShellFlags =
    ImGuiWindowFlags_NoDecoration | ImGuiWindowFlags_NoMove | ImGuiWindowFlags_NoSavedSettings |
    ImGuiWindowFlags_NoBringToFrontOnFocus | ImGuiWindowFlags_NoScrollWithMouse;

// On both sides of a tab's title: less where there is less room.
float tab_padding(const Ui& ui) {
  const FontScope font(ui.fonts.strong);  // the wider one
  float titles = 0;
  for (const PanelRow& row : panels()) titles += text_width(row.title);
  const float slack = ImGui::GetContentRegionAvail().x - titles;
  return std::clamp(slack / static_cast<float>(2 * panels().size()), ui.px(3), ui.px(12));
}

}  // namespace

Shell::Shell(Workspace& workspace)
    : workspace_(workspace), tree_(make_tree_panel()), start_(make_start_panel()) {}

Panel& Shell::panel(std::string_view id) {
  const auto found = panels_.find(id);
  if (found != panels_.end()) return *found->second;
  return *panels_.emplace(std::string(id), find_panel(id).make()).first->second;
}

void Shell::handle_shortcuts() {
  if (!workspace_.manual.empty() && shortcut_pressed("Escape")) {
    workspace_.manual.clear();
    return;
  }
  const bool typing = browser_.is_open() || ImGui::GetIO().WantTextInput;
  for (const Action& action : actions()) {
    if (action.shortcut.empty() || !shortcut_pressed(action.shortcut) || !action.enabled(workspace_))
      continue;
    const bool types_nothing = action.shortcut.starts_with("Ctrl+") || action.shortcut.starts_with('F');
    if (!typing || types_nothing) run_action(workspace_, action.id);
  }
}

void Shell::draw(const Ui& ui) {
  handle_shortcuts();
  if (seen_model_ != workspace_.document().id) {
    seen_model_ = workspace_.document().id;
    for (const auto& [id, panel] : panels_) panel->forget();
  }
  ImGui::SetNextWindowPos({0, 0});
  ImGui::SetNextWindowSize(ImGui::GetIO().DisplaySize);
  ImGui::PushStyleVar(ImGuiStyleVar_WindowPadding, {0, 0});
  ImGui::Begin("shell", nullptr, kShellFlags);
  ImGui::PopStyleVar();
  const ImVec2 room = ImGui::GetContentRegionAvail();
  draw_header(ui, ui.px(kHeader));
  ImGui::SetCursorPos({ui.px(kMargin), ui.px(kHeader)});
  draw_body(ui, room.y - ui.px(kHeader + kStatus));
  ImGui::SetCursorPos({0, room.y - ui.px(kStatus)});
  draw_status(ui);
  if (workspace_.wants_browser) {
    workspace_.wants_browser = false;
    browser_.open(workspace_);
  }
  browser_.draw(workspace_, ui);
  draw_manual(workspace_, ui);
  ImGui::End();
}

void Shell::draw_body(const Ui& ui, float height) {
  const float width = ImGui::GetContentRegionAvail().x - ui.px(kMargin);
  if (!workspace_.document().model) {
    const ChildScope body("body", {width, height});
    draw_notices(ui);
    const bool arena = workspace_.settings.panel == "arena";  // it needs no model
    const CardScope card(ui, "start", {0, 0}, arena);
    return (arena ? panel("arena") : *start_).draw(workspace_, ui);
  }
  const float details = ui.px(kDetails);
  const float gap = ui.px(8);
  ImGui::PushStyleVar(ImGuiStyleVar_ItemSpacing, {0, 0});
  const ChildScope child("body", {width, height});
  const float most = std::max(ui.px(200), std::min(width * 0.4f, width - ui.px(680)));
  const float tree = std::min(
      tree_width_ > 0 ? ui.px(tree_width_) : std::clamp(width * 0.22f, ui.px(236), ui.px(430)), most);
  const float upper = height - details - gap;
  ImGui::BeginChild("upper", {0, upper});
  ImGui::PopStyleVar();
  {
    const CardScope card(ui, "tree", {tree, 0});
    tree_->draw(workspace_, ui);
  }
  ImGui::SameLine(0, 0);
  const float dragged = splitter(ui, "tree width", tree, ui.px(200), most, true);
  if (dragged != tree) tree_width_ = dragged / ui.scale;
  ImGui::SameLine(0, 0);
  {
    const ChildScope main("main");
    draw_tabs(ui);
    draw_notices(ui);
    draw_panel(ui);
  }
  ImGui::EndChild();
  ImGui::SetCursorPosY(upper + gap);
  draw_details(ui);
}

void Shell::draw_panel(const Ui& ui) {
  if (find_panel(workspace_.settings.panel).own_cards)
    return panel(workspace_.settings.panel).draw(workspace_, ui);
  const CardScope card(ui, "panel", {0, 0});
  panel(workspace_.settings.panel).draw(workspace_, ui);
}

void Shell::draw_tabs(const Ui& ui) {
  const Theme& theme = *ui.theme;
  const float height = ui.px(34);
  const StyleScope style(ImGuiStyleVar_ItemSpacing, {0, ui.px(6)});
  const float pad = tab_padding(ui);
  for (const PanelRow& row : panels()) {
    const bool current = workspace_.settings.panel == row.id;
    const FontScope font(current ? ui.fonts.strong : ui.fonts.body);
    const ImVec2 size = ImGui::CalcTextSize(row.title.data(), row.title.data() + row.title.size());
    const float width = size.x + 2 * pad;
    const ImVec2 at = ImGui::GetCursorScreenPos();
    if (ImGui::InvisibleButton(row.id.data(), {width, height})) workspace_.settings.panel = row.id;
    const bool hot = ImGui::IsItemHovered();
    const ImVec2 pen = {at.x + pad, at.y + (height - size.y) / 2 - ui.px(1)};
    put_text(pen, current || hot ? theme.text : theme.muted, row.title);
    if (current)
      ImGui::GetWindowDrawList()->AddRectFilled({pen.x, at.y + height - ui.px(4)},
                                                {pen.x + size.x, at.y + height - ui.px(1)}, theme.accent,
                                                ui.px(1.5f));
    ImGui::SameLine(0, 0);
  }
  ImGui::NewLine();
}

}  // namespace loadline::gui
