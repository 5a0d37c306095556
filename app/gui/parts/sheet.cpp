#include "app/gui/parts/sheet.h"

#include "app/gui/window/keyboard.h"

#include <algorithm>

namespace loadline::gui {

SheetScope::SheetScope(const Ui& ui, const char* id, ImVec2 size, float top) {
  const ImVec2 screen = ImGui::GetIO().DisplaySize;
  const float margin = ui.px(40), above = top < 0 ? margin : top;
  const ImVec2 at = {screen.x / 2, top < 0 ? screen.y / 2 : top};
  ImGui::SetNextWindowPos(at, ImGuiCond_Always, {0.5f, top < 0 ? 0.5f : 0.0f});
  ImGui::SetNextWindowSize(
      {std::min(size.x, screen.x - margin), std::min(size.y, screen.y - above - margin)});
  ImGui::SetNextWindowFocus();
  ImGui::PushStyleVar(ImGuiStyleVar_WindowPadding, {ui.px(16), ui.px(14)});
  ImGui::PushStyleVar(ImGuiStyleVar_WindowRounding, ui.px(10));
  ImGui::PushStyleVar(ImGuiStyleVar_WindowBorderSize, 1);
  ImGui::PushStyleColor(ImGuiCol_WindowBg, ui.theme->panel);
  ImGui::Begin(id, nullptr,
               ImGuiWindowFlags_NoTitleBar | ImGuiWindowFlags_NoResize | ImGuiWindowFlags_NoMove |
                   ImGuiWindowFlags_NoSavedSettings | ImGuiWindowFlags_NoNavInputs);
  ImGui::PopStyleColor();
  ImGui::PopStyleVar(3);
}

bool sheet_is_left() {
  // what the mouse has just gone down on in the sheet is active, which ImGui would not count as hovered
  constexpr ImGuiHoveredFlags kInside =
      ImGuiHoveredFlags_ChildWindows | ImGuiHoveredFlags_AllowWhenBlockedByActiveItem;
  return list_key_pressed(ListKey::escape) || (ImGui::IsMouseClicked(0) && !ImGui::IsWindowHovered(kInside));
}

}  // namespace loadline::gui
