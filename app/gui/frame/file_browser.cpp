// Lists folders in the background, so that a slow disk never stops the window.
#include "app/gui/frame/overlays.h"
#include "app/gui/parts/widgets.h"
#include "app/gui/state/workspace.h"
#include "app/gui/window/input.h"
#include "core/base/text.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <utility>

#include <fmt/core.h>
#include <imgui_stdlib.h>

namespace loadline::gui {
namespace {

// Where models lie, besides what Places knows: the stores of programs, and the folders of recent models.
std::vector<Place> places_of_models(const Workspace& workspace) {
  constexpr std::size_t kMostRecentFolders = 3;
  const importers::StorePlaces& stores = workspace.shelf.places();
  std::vector<Place> places = {{"Hugging Face cache", stores.hub_cache}};
  for (const std::string& folder : stores.lm_studio) places.push_back({"LM Studio", folder});
  for (const std::string& folder : workspace.settings.folders)
    places.push_back({std::filesystem::path(folder).filename().string(), folder});
  std::vector<Place> recent;
  for (const std::string& path : workspace.settings.recent) {
    const std::filesystem::path folder = std::filesystem::path(path).parent_path();
    const bool known = std::ranges::find(recent, folder.string(), &Place::path) != recent.end();
    if (!known && folder.is_absolute() && recent.size() < kMostRecentFolders)
      recent.push_back({folder.filename().string(), folder.string()});
  }
  places.insert(places.end(), recent.begin(), recent.end());
  std::erase_if(places, [](const Place& place) { return place.path.empty() || place.title.empty(); });
  return places;
}

// "~" is how people write their home folder.
std::string with_home(const std::string& path) {
  const char* const home = std::getenv("HOME");
  return home != nullptr && (path == "~" || path.starts_with("~/")) ? home + path.substr(1) : path;
}

std::string joined(const std::string& folder, const std::string& name) {
  return (std::filesystem::path(folder) / name).string();
}

}  // namespace

void FileBrowser::open(Workspace& workspace, OpenBrowser asked) {
  asked_ = std::move(asked);
  open_ = true;
  appearing_ = true;
  typed_ = false;
  workspace.places.find(places_of_models(workspace));
  std::error_code failed;
  if (writes()) {
    const std::filesystem::path path = std::filesystem::absolute(asked_.path, failed);
    name_ = path.filename().string();
    return go(workspace, path.parent_path().string());
  }
  path_ = seen_ = listed_;  // not what was typed the last time
  if (!workspace.places.folder().path.empty() || workspace.places.listing.busy()) return;
  const std::filesystem::path recent =
      workspace.settings.recent.empty() ? "" : std::filesystem::path(workspace.settings.recent.front());
  go(workspace,
     recent.is_absolute() ? recent.parent_path().string() : std::filesystem::current_path(failed).string());
}

void FileBrowser::go(Workspace& workspace, const std::string& folder) {
  current_ = 0;
  scroll_ = true;
  typed_ = false;
  path_ = seen_ = writes() ? joined(folder, name_) : folder;
  asked_folder_ = folder.empty() ? "/" : folder;
  workspace.places.browse(asked_folder_);
}

std::string FileBrowser::path_of(const Workspace& workspace, std::size_t row) const {
  return joined(workspace.places.folder().path, workspace.places.folder().entries[rows_[row]].name);
}

std::string FileBrowser::folder_part() const {
  const std::string path = with_home(path_);
  const std::size_t slash = path.rfind('/');
  if (!path.starts_with('/') || path == listed_) return listed_;
  // as a listing names it
  const std::string folder = std::filesystem::path(path.substr(0, slash)).lexically_normal().string();
  if (folder.empty()) return "/";
  return folder.size() > 1 && folder.ends_with('/') ? folder.substr(0, folder.size() - 1) : folder;
}

std::string FileBrowser::last_part() const {
  const std::string path = with_home(path_);
  if (path == listed_) return {};
  return path.starts_with('/') ? path.substr(path.rfind('/') + 1) : path;
}

void FileBrowser::pick(Workspace& workspace, const std::string& path) {
  open_ = false;
  if (writes())
    workspace.services.requests.add(PickedFile{asked_.asker, path});
  else
    workspace.open(path);
}

void FileBrowser::enter(Workspace& workspace, std::size_t row) {
  if (row >= rows_.size() || rows_[row] >= workspace.places.folder().entries.size()) return;
  const FolderEntry& entry = workspace.places.folder().entries[rows_[row]];
  if (entry.folder && (writes() || !entry.model)) return go(workspace, path_of(workspace, row));
  pick(workspace, path_of(workspace, row));
}

// What Enter in the path line means.
void FileBrowser::accept(Workspace& workspace) {
  const std::string typed = with_home(path_);
  if (typed.empty()) return;
  if (typed == listed_ && !writes()) return enter(workspace, current_);  // the list is meant
  const std::string path = typed.starts_with('/') ? typed : joined(listed_, typed);
  std::error_code failed;
  if (std::filesystem::is_directory(path, failed) && (writes() || !is_model_folder(path))) {
    focus_ = true;
    return go(workspace, path);
  }
  if (writes()) {
    if (!last_part().empty()) pick(workspace, path);
    return;
  }
  if (std::filesystem::exists(path, failed)) return pick(workspace, path);
  if (!rows_.empty() && folder_part() == listed_) return enter(workspace, current_);
  pick(workspace, typed);  // a name of the hub
}

void FileBrowser::handle_keys(Workspace& workspace, bool typing) {
  if (list_key_pressed(ListKey::escape)) open_ = false;
  if (workspace.places.listing.busy()) return;  // the list is not yet the one of the folder asked for
  if (list_key_pressed(ListKey::down) && current_ + 1 < rows_.size()) ++current_, scroll_ = true;
  if (list_key_pressed(ListKey::up) && current_ > 0) --current_, scroll_ = true;
  if (typing || ImGui::IsAnyItemActive()) return;  // the other keys are the path's
  if (list_key_pressed(ListKey::left) || list_key_pressed(ListKey::backspace))
    go(workspace, parent_folder(workspace.places.folder().path));
  if (current_ >= rows_.size()) return;
  if (list_key_pressed(ListKey::right) && workspace.places.folder().entries[rows_[current_]].folder)
    go(workspace, path_of(workspace, current_));
  if (list_key_pressed(ListKey::enter) && !writes()) enter(workspace, current_);
}

// A list that arrives sets the path line, unless a person is typing in it.
void FileBrowser::take_listing(const Workspace& workspace) {
  if (workspace.places.folder().path == listed_ && (!path_.empty() || typed_)) return;
  listed_ = workspace.places.folder().path;
  current_ = 0;
  if (!typed_) path_ = seen_ = writes() ? joined(listed_, name_) : listed_;
}

// A path into another folder lists that folder.
void FileBrowser::follow_typing(Workspace& workspace) {
  if (path_ == seen_) return;
  seen_ = path_;
  typed_ = true;
  current_ = 0;
  scroll_ = true;
  if (writes()) name_ = last_part();
  if (const std::string folder = folder_part(); folder != asked_folder_) {
    asked_folder_ = folder;
    workspace.places.browse(folder);
  }
}

// The entries whose names hold what is typed, first those that begin with it. To write, all stay: their names
// may be taken or avoided.
void FileBrowser::filter(const Workspace& workspace) {
  const auto& entries = workspace.places.folder().entries;
  const std::string wanted = writes() || !typed_ ? std::string() : lower_case(last_part());
  filtered_ = workspace.places.listing.value();
  rows_.clear();
  if (typed_ && folder_part() != listed_) return;
  for (std::size_t i = 0; i < entries.size(); ++i)
    if (wanted.empty() ? writes() || entries[i].folder || entries[i].model
                       : lower_case(entries[i].name).find(wanted) != std::string::npos)
      rows_.push_back(i);
  if (!wanted.empty())
    std::stable_partition(rows_.begin(), rows_.end(),
                          [&](std::size_t i) { return lower_case(entries[i].name).starts_with(wanted); });
  if (current_ >= rows_.size()) current_ = 0;
}

void FileBrowser::draw(Workspace& workspace, const Ui& ui) {
  if (auto asked = workspace.services.requests.take<OpenBrowser>()) open(workspace, std::move(*asked));
  if (!open_) return;
  focus_ = focus_ || appearing_;
  ModalScope modal(ui, "files", writes() ? asked_.title : "Open a model", {ui.px(860), ui.px(580)},
                   std::exchange(appearing_, false), true);
  if (!modal.visible()) return;
  take_listing(workspace);
  // what Enter in the line means is about the list that is there now
  if (filtered_ != workspace.places.listing.value()) filter(workspace);
  const bool typing = draw_path(workspace, ui);
  follow_typing(workspace);
  filter(workspace);
  handle_keys(workspace, typing);
  if (!workspace.places.listing.error_text().empty() && !typed_)
    paragraph(ui, shown(workspace.places.listing.error_text()), ui.theme->bad);
  const float height = ImGui::GetContentRegionAvail().y - ImGui::GetFrameHeightWithSpacing();
  draw_places(workspace, ui, {ui.px(170), height});
  ImGui::SameLine(0, ui.px(10));
  draw_list(workspace, ui, {0, height});
  draw_buttons(workspace, ui, typing);
  if (!open_) modal.close();
}

void FileBrowser::draw_places(Workspace& workspace, const Ui& ui, ImVec2 size) {
  const ChildScope child("places", size);
  small_text(ui, "Places", ui.theme->muted);
  const std::vector<Place> places = workspace.places.found.or_empty();  // a click asks anew
  for (std::size_t i = 0; i < places.size(); ++i) {
    const IdScope scope(i);
    const bool here = places[i].path == listed_;
    const ImVec2 at = ImGui::GetCursorScreenPos();
    const float height = ImGui::GetFontSize() + ui.px(8);
    if (ImGui::Selectable("##place", here, 0, {0, height})) go(workspace, places[i].path);
    tooltip(ui, shown(places[i].path));
    put_text({at.x + ui.px(6), at.y + ui.px(4)}, here ? ui.theme->text : ui.theme->muted,
             elided(shown(places[i].title), size.x - ui.px(16)));
  }
}

void FileBrowser::draw_buttons(Workspace& workspace, const Ui& ui, bool typing) {
  if (writes()) {
    if (button(ui, "Choose", ButtonKind::primary, !last_part().empty())) accept(workspace);
  } else {
    if (button(ui, "Open", ButtonKind::primary, current_ < rows_.size())) enter(workspace, current_);
    ImGui::SameLine();
    if (button(ui, "Open this folder")) pick(workspace, workspace.places.folder().path);
  }
  ImGui::SameLine();
  if (button(ui, "Cancel", ButtonKind::ghost)) open_ = false;
  ImGui::SameLine(0, ui.px(16));
  control_text(writes()  ? "Tab completes; Enter chooses"
               : !typing ? "Arrows move, Enter opens, Backspace goes up"
               : typed_  ? "Tab completes; Enter opens"
                         : "Type to filter, or a path; Enter opens",
               ui.theme->muted);
}

// The longest beginning that all entries share which begin as the last part does.
void FileBrowser::complete(ImGuiInputTextCallbackData& field) const {
  const std::string now(field.Buf, static_cast<std::size_t>(field.BufTextLen));
  const std::size_t slash = now.rfind('/');
  const std::string typed = now == listed_ ? "" : now.substr(slash == std::string::npos ? 0 : slash + 1);
  if (now == listed_ || folder_part() != listed_ || !filtered_) return;
  std::string common;
  std::size_t count = 0;
  bool folder = false;
  for (const FolderEntry& entry : filtered_->entries) {
    if (!lower_case(entry.name).starts_with(lower_case(typed))) continue;
    if (count++ == 0) {
      common = entry.name;
      folder = entry.folder;
    }
    std::size_t same = 0;
    while (same < std::min(common.size(), entry.name.size()) && common[same] == entry.name[same]) ++same;
    common.resize(same);
  }
  if (count == 0 || common.size() < typed.size()) return;
  const int from = field.BufTextLen - static_cast<int>(typed.size());
  field.DeleteChars(from, static_cast<int>(typed.size()));
  if (count == 1 && folder) common += '/';
  field.InsertChars(from, common.c_str());
}

// The folder, and a path that can be typed; true while it has the keyboard.
bool FileBrowser::draw_path(Workspace& workspace, const Ui& ui) {
  if (button(ui, "\xE2\x86\x91 Up")) go(workspace, parent_folder(workspace.places.folder().path));
  ImGui::SameLine();
  ImGui::SetNextItemWidth(-ui.px(1));
  if (focus_) ImGui::SetKeyboardFocusHere();
  focus_ = false;
  const bool entered = ImGui::InputTextWithHint(
      "##path", "a file, a model folder or org/name", &path_,
      ImGuiInputTextFlags_EnterReturnsTrue | ImGuiInputTextFlags_AutoSelectAll |
          ImGuiInputTextFlags_CallbackCompletion,
      [](ImGuiInputTextCallbackData* field) {
        static_cast<const FileBrowser*>(field->UserData)->complete(*field);
        return 0;
      },
      this);
  const bool typing = ImGui::IsItemActive();
  if (entered) accept(workspace);
  return typing || entered;  // the key that was pressed is the line's
}

void FileBrowser::draw_list(Workspace& workspace, const Ui& ui, ImVec2 size) {
  const CardScope card(ui, "list", size);
  list_has_keyboard();  // handle_keys() has its arrows
  if (rows_.empty() && (typed_ || workspace.places.listing.error_text().empty()))
    empty_state(ui,
                workspace.places.listing.busy()      ? "Reading the folder"
                : typed_ && folder_part() != listed_ ? "There is no such folder"
                : last_part().empty() || !typed_     ? "No models and no folders here"
                                                     : "Nothing here has such a name",
                "");
  const StyleScope style(ImGuiStyleVar_ItemSpacing, {0, 0});
  const float line = ImGui::GetFontSize() + ui.px(10);
  for_rows_in_sight(
      rows_.size(), [&](std::size_t i) { draw_entry(workspace, ui, i); }, line);
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

void FileBrowser::draw_entry(Workspace& workspace, const Ui& ui, std::size_t row) {
  const FolderEntry& entry = workspace.places.folder().entries[rows_[row]];
  const float height = ImGui::GetFontSize() + ui.px(10);
  const ImVec2 at = ImGui::GetCursorScreenPos();
  const float width = ImGui::GetContentRegionAvail().x;
  const IdScope scope(row);
  const bool marked = row == current_ && !writes();
  if (ImGui::Selectable("##entry", marked, ImGuiSelectableFlags_AllowDoubleClick, {width, height})) {
    current_ = row;
    const bool twice = ImGui::IsMouseDoubleClicked(ImGuiMouseButton_Left);
    if (writes() && !entry.folder) {
      name_ = entry.name;
      path_ = seen_ = joined(listed_, name_);
    }
    if (twice) return enter(workspace, row);
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
