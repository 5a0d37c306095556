// The sheet of the manual: the choice of a page, and the page.
#include "app/gui/frame/manual_window.h"

#include "app/gui/frame/manual_page.h"
#include "app/gui/parts/sheet.h"
#include "app/gui/parts/widgets.h"
#include "app/gui/window/keyboard.h"
#include "app/report/manual.h"

#include <vector>

namespace loadline::gui {
void draw_manual(Workspace& workspace, const Ui& ui) {
  if (workspace.manual.empty()) return;
  const ImVec2 screen = ImGui::GetIO().DisplaySize;
  const SheetScope sheet(ui, "manual", {ui.px(1000), screen.y - ui.px(80)});
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
  control_text("Esc closes, Left and Right turn pages", ui.theme->muted);
  {
    const IdScope scope(now);  // each page keeps its own place
    const ChildScope child("page", {0, 0}, false, ImGuiWindowFlags_HorizontalScrollbar);
    if (!ImGui::IsPopupOpen(nullptr, ImGuiPopupFlags_AnyPopupId)) scroll_by_keys();
    draw_manual_page(ui, pages[now].text);
  }
  if (!picked && list_key_pressed(ListKey::right)) workspace.manual = pages[(now + 1) % pages.size()].id;
  if (!picked && list_key_pressed(ListKey::left))
    workspace.manual = pages[(now + pages.size() - 1) % pages.size()].id;
  if (picked) workspace.manual = pages[*picked].id;
  if (closed) workspace.manual.clear();
}

}  // namespace loadline::gui
