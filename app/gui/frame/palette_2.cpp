// A field over a list; the arrows move in the list while the field has the keyboard.
#include "app/gui/frame/actions_2.h"
#include "app/gui/frame/palette.h"
#include "app/gui/panels/panel.h"
#include "app/gui/parts/sheet.h"
#include "app/gui/parts/widgets.h"
#include "app/gui/window/keyboard.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>
#include <imgui_stdlib.h>

namespace loadline::gui {
namespace {

constexpr std::size_t kMostItems = 60;
constexpr float kTop = 64;  // logical

// ImGui leaves the caret where it was when the text of a field is replaced.
int caret_to_end(ImGuiInputTextCallbackData* data) {
  if (std::exchange(*static_cast<bool*>(data->UserData), false))
    data->CursorPos = data->SelectionStart = data->SelectionEnd = data->BufTextLen;
  return 0;
}

}  // namespace

void Palette::refresh(const Workspace& workspace) {
  if (listed_ == typed_ && !items_.empty() && document_ == workspace.document().id) return;
  listed_ = typed_;
  document_ = workspace.document().id;
  items_ = palette_items(workspace, typed_, kMostItems);
  current_ = 0;
}

void Palette::run(Workspace& workspace, std::size_t at) {
  if (at >= items_.size()) return;
  const PaletteItem item = items_[at];
  if (item.needs_more) {
    typed_ = item.word + " ";
    to_end_ = true;
    return;
  }
  open_ = false;
  workspace.attempt([&] { run_item(workspace, item); });
}

void Palette::draw(Workspace& workspace, const Ui& ui) {
  bool appearing = false;
  if (std::exchange(workspace.wants_palette, false)) {
    appearing = true;
    open_ = true;
    typed_ = std::exchange(workspace.palette_text, {});
    to_end_ = true;
    items_.clear();
  }
  if (!open_) return;
  refresh(workspace);
  const SheetScope sheet(ui, "palette", {ui.px(620), ui.px(430)}, ui.px(kTop));
  if (appearing || !ImGui::IsAnyItemActive()) ImGui::SetKeyboardFocusHere();
  ImGui::SetNextItemWidth(-1);
  const bool entered = ImGui::InputTextWithHint(
      "##typed", "An action, an option, a panel, a tensor, a module", &typed_,
      ImGuiInputTextFlags_EnterReturnsTrue | ImGuiInputTextFlags_CallbackAlways, caret_to_end, &to_end_);
  if (list_key_pressed(ListKey::down) && current_ + 1 < items_.size()) ++current_;
  if (list_key_pressed(ListKey::up) && current_ > 0) --current_;
  refresh(workspace);
  {
    const ChildScope child("items");
    const StyleScope style(ImGuiStyleVar_ItemSpacing, {0, 0});
    const float height = ImGui::GetFontSize() + ui.px(10);
    if (items_.empty()) muted(ui, "Nothing is called that");
    for (std::size_t i = 0; i < items_.size(); ++i) {
      const IdScope scope(i);
      const ImVec2 at = ImGui::GetCursorScreenPos();
      const float width = ImGui::GetContentRegionAvail().x;
      if (ImGui::Selectable("##item", i == current_, 0, {width, height})) run(workspace, i);
      if (!open_ || i >= items_.size()) break;
      const float y = at.y + ui.px(5);
      const std::string hint = items_[i].needs_more ? items_[i].takes : shown(items_[i].hint);
      put_text({at.x + ui.px(8), y}, ui.theme->text,
               elided(shown(items_[i].title), width - text_width(hint) - ui.px(30)));
      put_text_before(at.x + width - ui.px(8), y, ui.theme->muted, hint);
      if (i == current_ && (list_key_pressed(ListKey::down) || list_key_pressed(ListKey::up)))
        ImGui::SetScrollHereY(0.5f);
    }
  }
  if (sheet_is_left()) open_ = false;
  if (open_ && entered) run(workspace, current_);
}

void draw_keys(Workspace& workspace, const Ui& ui) {
  if (!workspace.shows_keys) return;
  const SheetScope sheet(ui, "keys", {ui.px(620), ui.px(560)}, ui.px(kTop));
  {
    const FontScope font(ui.fonts.strong);
    text("Keys");
  }
  const auto line = [&](std::string_view key, std::string_view words) {
    const float start = ImGui::GetCursorPosX();
    text_colored(ui.theme->accent, key);
    ImGui::SameLine(start + ui.px(130));
    ImGui::PushTextWrapPos(0);
    text(words);
    ImGui::PopTextWrapPos();
  };
  {
    const ChildScope child("list");
    scroll_by_keys();
    for (std::size_t i = 0; i < tabs().size(); ++i)
      line(fmt::format("Ctrl+{}", i + 1), fmt::format("Show {}", tabs()[i]));
    for (const Action& action : actions())
      if (!action.shortcut.empty() && action.shortcut != "Escape") line(action.shortcut, action.title);
    line("Page Down, Up", "Go to the next step of the lesson, or to the one before");
    line("Tab, F6", "Go to the next part of the window; with Shift to the previous one");
    line("Escape", "Close what is in front: a sheet, a message; then select nothing");
    line("Arrows", "Move in lists and among buttons; fold and unfold the tree");
    line("Enter", "Press the button, or open the row: values, the map, the load");
    line("Enter, Down", "In the filter: select the next hit; go to the tree");
    line("Mouse wheel", "Zoom the timeline, Load, Lifetimes and Arena; the right button moves them");
    line("Double click", "Show a module in the map; unzoom a plot");
  }
  if (sheet_is_left()) workspace.shows_keys = false;
}

}  // namespace loadline::gui
