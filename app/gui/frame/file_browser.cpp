// Lists folders in the background, so that a slow disk never stops the window.
#include "app/gui/frame/overlays.h"
#include "app/gui/parts/widgets.h"
#include "app/gui/state/workspace.h"
#include "app/gui/window/input.h"
#include "core/base/text.h"

#include <algorithm>
#include <filesystem>

#include <fmt/core.h>
#include <imgui_stdlib.h>

namespace loadline::gui {

void FileBrowser::open(Workspace& workspace) {
  open_ = true;
  appearing_ = true;
  path_ = listed_;  // not what was typed the last time
  std::error_code failed;
  if (workspace.places.folder().path.empty() && !workspace.places.listing.busy())
    go(workspace, std::filesystem::current_path(failed).string());
}

void FileBrowser::go(Workspace& workspace, const std::string& folder) {
  current_ = 0;
  scroll_ = true;
  workspace.places.browse(folder.empty() ? "/" : folder);
}

std::string FileBrowser::path_of(const Workspace& workspace, std::size_t i) const {
  return (std::filesystem::path(workspace.places.folder().path) / workspace.places.folder().entries[i].name)
      .string();
}

void FileBrowser::open_model(Workspace& workspace, const std::string& path) {
  open_ = false;
  workspace.open(path);
}

void FileBrowser::enter(Workspace& workspace, std::size_t i) {
  if (i >= workspace.places.folder().entries.size()) return;
  const FolderEntry& entry = workspace.places.folder().entries[i];
  if (entry.folder && !entry.model)
    go(workspace, path_of(workspace, i));
  else
    open_model(workspace, path_of(workspace, i));
}

void FileBrowser::handle_keys(Workspace& workspace) {
  const auto& entries = workspace.places.folder().entries;
  if (list_key_pressed(ListKey::escape)) open_ = false;
  if (workspace.places.listing.busy()) return;  // the list is not yet the one of the folder asked for
  if (list_key_pressed(ListKey::down) && current_ + 1 < entries.size()) ++current_, scroll_ = true;
  if (list_key_pressed(ListKey::up) && current_ > 0) --current_, scroll_ = true;
  if (ImGui::IsAnyItemActive()) return;  // the other keys are the path's
  if (list_key_pressed(ListKey::left) || list_key_pressed(ListKey::backspace))
    go(workspace, parent_folder(workspace.places.folder().path));
  if (list_key_pressed(ListKey::right) && current_ < entries.size() && entries[current_].folder)
    go(workspace, path_of(workspace, current_));
  if (list_key_pressed(ListKey::enter)) enter(workspace, current_);
}

void FileBrowser::draw(Workspace& workspace, const Ui& ui) {
  if (!open_) return;
  if (workspace.places.folder().path != listed_) {
    listed_ = workspace.places.folder().path;
    path_ = listed_;
    current_ = 0;
  }
  const ImVec2 screen = ImGui::GetIO().DisplaySize;
  const ImVec2 size = {std::min(ui.px(760), screen.x - ui.px(80)),
                       std::min(ui.px(560), screen.y - ui.px(80))};
  ImGui::SetNextWindowSize(size);
  ImGui::SetNextWindowPos({screen.x / 2, screen.y / 2}, ImGuiCond_Always, {0.5f, 0.5f});
  if (appearing_) ImGui::OpenPopup("Open a model");
  focus_ = focus_ || appearing_;
  appearing_ = false;
  ImGui::PushStyleVar(ImGuiStyleVar_WindowPadding, {ui.px(18), ui.px(16)});
  ImGui::PushStyleVar(ImGuiStyleVar_WindowRounding, ui.px(10));
  constexpr ImGuiWindowFlags kFlags = ImGuiWindowFlags_NoTitleBar | ImGuiWindowFlags_NoResize |
                                      ImGuiWindowFlags_NoMove | ImGuiWindowFlags_NoScrollbar |
                                      ImGuiWindowFlags_NoNavInputs;
  const bool visible = ImGui::BeginPopupModal("Open a model", nullptr, kFlags);
  ImGui::PopStyleVar(2);
  if (!visible) return;
  {
    const FontScope font(ui.fonts.title);
    text("Open a model");
  }
  handle_keys(workspace);
  const bool typing = draw_path(workspace, ui);
  if (!workspace.places.listing.error_text().empty())
    paragraph(ui, shown(workspace.places.listing.error_text()), ui.theme->bad);
  draw_list(workspace, ui, ImGui::GetContentRegionAvail().y - ImGui::GetFrameHeightWithSpacing());
  const FolderEntry* entry = current_ < workspace.places.folder().entries.size()
                                 ? &workspace.places.folder().entries[current_]
                                 : nullptr;
  if (button(ui, "Open", ButtonKind::primary, entry != nullptr)) enter(workspace, current_);
  ImGui::SameLine();
  if (button(ui, "Open this folder")) open_model(workspace, workspace.places.folder().path);
  ImGui::SameLine();
  if (button(ui, "Cancel", ButtonKind::ghost)) open_ = false;
  ImGui::SameLine(0, ui.px(16));
  control_text(!typing            ? "Arrows move, Enter opens, Backspace goes up"
               : path_ == listed_ ? "Type a path, or move with the arrows; Enter opens"
                                  : "Enter opens what is typed",
               ui.theme->muted);
  if (!open_) ImGui::CloseCurrentPopup();
  ImGui::EndPopup();
}

// The folder, and a path that can be typed; true while it has the keyboard.
bool FileBrowser::draw_path(Workspace& workspace, const Ui& ui) {
  if (button(ui, "\xE2\x86\x91 Up")) go(workspace, parent_folder(workspace.places.folder().path));
  ImGui::SameLine();
  ImGui::SetNextItemWidth(-ui.px(1));
  if (focus_) ImGui::SetKeyboardFocusHere();
  focus_ = false;
  const bool typed =
      ImGui::InputTextWithHint("##path", "a file, a model folder or org/name", &path_,
                               ImGuiInputTextFlags_EnterReturnsTrue | ImGuiInputTextFlags_AutoSelectAll);
  const bool typing = ImGui::IsItemActive();
  if (typed && path_ == listed_) {
    enter(workspace, current_);  // nothing was typed: the list is meant
  } else if (typed && !path_.empty()) {
    std::error_code failed;
    if (std::filesystem::is_directory(path_, failed) && !is_model_folder(path_)) {
      go(workspace, path_);
      focus_ = true;
    } else {
      open_model(workspace, path_);
    }
  }
  return typing;
}

void FileBrowser::draw_list(Workspace& workspace, const Ui& ui, float height) {
  const CardScope card(ui, "list", {0, height});
  list_has_keyboard();  // handle_keys() has its arrows
  const auto& entries = workspace.places.folder().entries;
  if (entries.empty() && workspace.places.listing.error_text().empty())
    empty_state(ui, workspace.places.listing.busy() ? "Reading the folder" : "Nothing here", "");
  const StyleScope style(ImGuiStyleVar_ItemSpacing, {0, 0});
  const float line = ImGui::GetFontSize() + ui.px(10);
  for_rows_in_sight(
      entries.size(), [&](std::size_t i) { draw_entry(workspace, ui, i); }, line);
  if (scroll_) {
    const float top = line * static_cast<float>(current_);
    const float room = ImGui::GetWindowHeight() - 2 * line;
    if (top < ImGui::GetScrollY()) ImGui::SetScrollY(top);
    if (top > ImGui::GetScrollY() + room) ImGui::SetScrollY(top - room);
    scroll_ = false;
  }
  if (workspace.places.folder().truncated)
    muted(ui, fmt::format("Only the first {} entries are shown.", kMostEntries));
}

void FileBrowser::draw_entry(Workspace& workspace, const Ui& ui, std::size_t i) {
  const FolderEntry& entry = workspace.places.folder().entries[i];
  const float height = ImGui::GetFontSize() + ui.px(10);
  const ImVec2 at = ImGui::GetCursorScreenPos();
  const float width = ImGui::GetContentRegionAvail().x;
  const IdScope scope(i);
  if (ImGui::Selectable("##entry", i == current_, ImGuiSelectableFlags_AllowDoubleClick, {width, height})) {
    current_ = i;
    if (ImGui::IsMouseDoubleClicked(ImGuiMouseButton_Left)) enter(workspace, i);
  }
  ImDrawList* draw = ImGui::GetWindowDrawList();
  const float box = ImGui::GetFontSize() * 0.8f;
  const ImVec2 icon = at + ImVec2{ui.px(6), (height - box) / 2};
  const ImU32 tint = entry.model ? ui.theme->accent : ui.theme->muted;
  if (entry.folder) {
    draw->AddRectFilled(icon, icon + ImVec2{box * 0.55f, box * 0.4f}, tint, ui.px(2));
    draw->AddRectFilled(icon + ImVec2{0, box * 0.2f}, icon + ImVec2{box * 1.15f, box}, tint, ui.px(2));
  } else {
    draw->AddRect(icon + ImVec2{ui.px(1), 0}, icon + ImVec2{box * 0.85f, box}, tint, ui.px(2), 0,
                  ui.px(1.5f));
  }
  const std::string size = entry.folder ? (entry.model ? "model" : "") : format_bytes(entry.bytes);
  const float y = at.y + ui.px(5);
  put_text({at.x + ui.px(32), y}, entry.folder || entry.model ? ui.theme->text : ui.theme->muted,
           elided(shown(entry.name), width - text_width(size) - ui.px(56)));
  put_text_before(at.x + width - ui.px(8), y, entry.folder ? ui.theme->accent : ui.theme->muted, size);
}

}  // namespace loadline::gui
