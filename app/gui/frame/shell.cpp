// The layout, shortcuts, notices, the line of jobs.

#include "app/gui/frame/actions.h"
#include "app/gui/frame/gui_app.h"
#include "app/gui/frame/overlays.h"
#include "app/gui/panels/panels.h"
#include "app/gui/parts/widgets.h"
#include "app/gui/state/base/services.h"
#include "app/gui/window/input.h"
#include "core/base/text.h"

#include <algorithm>
#include <array>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include <fmt/core.h>

namespace loadline::gui {

// --- The layout of the window, and its panels.

namespace {

constexpr float kToolbar = 48;
constexpr float kJobs = 26;
constexpr float kMargin = 10;
constexpr float kGap = 6;
constexpr float kLesson = 412;  // the column of a lesson
// Logical sizes below which a part tells nothing.
constexpr float kLeastTree = 180, kLeastInspector = 200, kLeastMain = 430, kLeastTimeline = 110,
                kLeastUpper = 190;

// A lesson stands beside its own model, and alone while that is being made.
bool lesson_is_here(const Workspace& workspace) {
  const auto is_its = [&](const auto& document) { return document->id == workspace.lesson.document; };
  return workspace.lesson.plays() &&
         (is_its(&workspace.document()) || std::ranges::none_of(workspace.documents(), is_its));
}

constexpr ImGuiWindowFlags kShellFlags =
    ImGuiWindowFlags_NoDecoration | ImGuiWindowFlags_NoMove | ImGuiWindowFlags_NoSavedSettings |
    ImGuiWindowFlags_NoBringToFrontOnFocus | ImGuiWindowFlags_NoScrollWithMouse;

// A title, underlined while it is shown; true when it was clicked.
bool draw_tab(const Ui& ui, std::string_view title, bool current, float pad) {
  const float height = ui.px(32);
  const FontScope font(current ? ui.fonts.strong : ui.fonts.body);
  const ImVec2 size = ImGui::CalcTextSize(title.data(), title.data() + title.size());
  const ImVec2 at = ImGui::GetCursorScreenPos();
  const IdScope scope(title);
  const bool clicked = press_area(ui, "tab", {size.x + 2 * pad, height});
  const bool hot = ImGui::IsItemHovered();
  const ImVec2 pen = {at.x + pad, at.y + (height - size.y) / 2 - ui.px(1)};
  put_text(pen, current || hot ? ui.theme->text : ui.theme->muted, title);
  if (current)
    ImGui::GetWindowDrawList()->AddRectFilled({pen.x, at.y + height - ui.px(4)},
                                              {pen.x + size.x, at.y + height - ui.px(1)}, ui.theme->accent,
                                              ui.px(1.5f));
  return clicked;
}

constexpr float kWayBack = 12;  // the width of an edge that brings a hidden part back

// An edge in the place of a hidden part, with an arrow into the window; brings the part back.
void draw_way_back(Workspace& workspace, const Ui& ui, std::string_view action, ImVec2 size, ImVec2 into) {
  const IdScope scope(action);
  const ImVec2 at = ImGui::GetCursorScreenPos();
  if (press_area(ui, "back", size)) run_action(workspace, action);
  const ImU32 color = ImGui::IsItemHovered() ? ui.theme->text : ui.theme->muted;
  tooltip(ui, fmt::format("Show the {} ({})", action, find_action(action)->shortcut));
  const ImVec2 middle = at + size / 2;
  const float r = ui.px(4);
  const ImVec2 across = {into.y * r, into.x * r}, tip = {into.x * r / 2, into.y * r / 2};
  const std::array<ImVec2, 3> arrow = {{middle - tip - across, middle + tip, middle - tip + across}};
  ImGui::GetWindowDrawList()->AddPolyline(arrow.data(), static_cast<int>(arrow.size()), color, 0,
                                          ui.px(1.6f));
}

// The panel of the tab that was shown last, else its first. Who opens a graph wants to see it.
void show_tab(Workspace& workspace, std::string_view tab) {
  const auto last = workspace.settings.last_in_tab.find(tab);
  const ModelPtr& model = workspace.document().model;
  if (last != workspace.settings.last_in_tab.end())
    workspace.settings.panel = last->second;
  else if (tab == "Forward" && model && model->graph->format == "onnx")
    workspace.settings.panel = "graph";
  else
    workspace.settings.panel = panels_of(tab).front()->id;
}

}  // namespace

Shell::Shell(Workspace& workspace)
    : workspace_(workspace),
      tree_(make_tree_panel()),
      inspector_(make_inspector_panel()),
      timeline_(make_timeline_panel()),
      start_(make_start_panel()),
      lesson_(make_lesson_panel()) {}

Panel& Shell::panel(std::string_view id) {
  const auto found = panels_.find(id);
  if (found != panels_.end()) return *found->second;
  return *panels_.emplace(std::string(id), find_panel(id).make()).first->second;
}

void Shell::handle_shortcuts() {
  if (manual_.is_open() && shortcut_pressed("Escape")) return manual_.close();
  if (palette_.is_open() || keys_.is_open() || asks_quit_) return;
  if (lesson_takes_keys()) return;
  for (std::size_t i = 0; i < tabs().size(); ++i)
    if (shortcut_pressed(fmt::format("Ctrl+{}", i + 1))) show_tab(workspace_, tabs()[i]);
  // the key closes what is in front, and leaves what is behind it
  const bool in_front =
      ImGui::IsPopupOpen(nullptr, ImGuiPopupFlags_AnyPopupId | ImGuiPopupFlags_AnyPopupLevel);
  const bool typing = browser_.is_open() || ImGui::GetIO().WantTextInput;
  if (!in_front && !typing && shortcut_pressed("Escape")) {
    if (const Action* const dismiss = find_action("dismiss"); dismiss->enabled(workspace_))
      return run_action(workspace_, dismiss->id);
    if (leave_sheet() || leave_body()) return;
  }
  for (const Action& action : actions()) {
    if (in_front && action.shortcut == "Escape") continue;
    if (action.shortcut.empty() || !shortcut_pressed(action.shortcut) || !action.enabled(workspace_))
      continue;
    // a field takes back what was typed into it by the same keys
    const bool of_field = action.shortcut.ends_with("+Z");
    const bool types_nothing =
        !of_field && (action.shortcut.starts_with("Ctrl+") || action.shortcut.starts_with('F'));
    if (typing && !types_nothing) continue;
    return run_action(workspace_, action.id);
  }
}

// Of the graph, from what an operator holds to that operator.
bool Shell::leave_body() {
  Document& document = workspace_.document();
  if (workspace_.settings.panel != "graph" || document.forward.graph() == nullptr ||
      document.forward.inside.empty())
    return false;
  const Selected holder = document.operator_at(document.forward.inside.back());
  document.select(holder);
  return true;
}

void Shell::draw(const Ui& ui) {
  panel_rect_ = timeline_rect_ = {};
  move_focus();
  close_drop_down();
  keep_page_keys(workspace_.lesson.plays());
  handle_shortcuts();
  follow_lesson(workspace_);
  workspace_.document().hover.begin_frame();
  TimeAxis& axis = workspace_.document().axis;
  axis.room.reset();
  axis.panel.reset();
  if (axis.lent && workspace_.settings.panel != "lifetimes") {
    if (axis.range == *axis.lent) axis.range = {};
    axis.lent.reset();
  }
  // the frame after an idle time would play all of it at once
  constexpr double kLongestFrame = 0.1;
  workspace_.document().time.advance(std::min(static_cast<double>(ImGui::GetIO().DeltaTime), kLongestFrame));
  if (seen_model_ != workspace_.document().id) {
    seen_model_ = workspace_.document().id;
    for (const auto& [id, panel] : panels_) panel->forget();
    for (Panel* const panel : {tree_.get(), inspector_.get(), timeline_.get()}) panel->forget();
  }
  ImGui::SetNextWindowPos({0, 0});
  ImGui::SetNextWindowSize(ImGui::GetIO().DisplaySize);
  ImGui::PushStyleVar(ImGuiStyleVar_WindowPadding, {0, 0});
  ImGui::Begin("shell", nullptr, kShellFlags);
  ImGui::PopStyleVar();
  const ImVec2 room = ImGui::GetContentRegionAvail();
  if (workspace_.lesson.presents) {
    ImGui::SetCursorPos({ui.px(kMargin), ui.px(kMargin)});
    draw_presented(ui, room - ImVec2{2 * ui.px(kMargin), 2 * ui.px(kMargin)});
  } else {
    toolbar_.draw(workspace_, ui, ui.px(kToolbar));
    const float tabs = model_tabs_height(workspace_, ui);
    ImGui::SetCursorPos({ui.px(kMargin), ui.px(kToolbar)});
    if (tabs > 0) draw_model_tabs(workspace_, ui, room.x - 2 * ui.px(kMargin));
    ImGui::SetCursorPos({ui.px(kMargin), ui.px(kToolbar) + tabs});
    draw_body(ui, {room.x - 2 * ui.px(kMargin), room.y - ui.px(kToolbar + kJobs) - tabs});
    ImGui::SetCursorPos({0, room.y - ui.px(kJobs)});
    draw_jobs(ui, ui.px(kJobs));
  }
  browser_.draw(workspace_, ui);
  export_.draw(workspace_, ui, browser_.is_open());
  manual_.draw(workspace_, ui);
  menu_.draw(workspace_, ui, panel_rect_.low + ImVec2{ui.px(40), ui.px(40)});
  palette_.draw(workspace_, ui);
  keys_.draw(workspace_, ui);
  draw_quit(ui);
  ImGui::End();
}

void Shell::draw_start(const Ui& ui, ImVec2 size) {
  const ChildScope body("body", size);
  draw_notices(ui);
  if (lesson_is_here(workspace_)) {
    const CardScope card(ui, "start", {0, 0});
    return empty_state(ui, "The lesson is being prepared", "The model is derived from a configuration.");
  }
  const bool arena = workspace_.settings.panel == "arena";  // it needs no model
  const CardScope card(ui, "start", {0, 0}, arena);
  (arena ? panel("arena") : *start_).draw(workspace_, ui);
}

void Shell::draw_body(const Ui& ui, ImVec2 size) {
  if (!lesson_is_here(workspace_)) return draw_views(ui, size);
  const ImVec2 at = ImGui::GetCursorPos();
  const float gap = ui.px(kGap), most = std::max(size.x - ui.px(kLeastMain) - gap, ui.px(kLeastInspector));
  const float side = std::min(ui.px(kLesson), most);
  const ImVec2 views = {std::max(ui.px(40), size.x - side - gap), size.y};
  lesson_hides_views() ? draw_hidden_views(ui, views) : draw_views(ui, views);
  ImGui::SetCursorPos({at.x + size.x - side, at.y});
  const CardScope card(ui, "lesson", {side, size.y});
  lesson_->draw(workspace_, ui);
}

void Shell::draw_views(const Ui& ui, ImVec2 size) {
  if (!workspace_.document().model) return draw_start(ui, size);
  Layout& layout = workspace_.settings.layout;
  const float gap = ui.px(kGap);
  ImGui::PushStyleVar(ImGuiStyleVar_ItemSpacing, {0, 0});
  const ChildScope child("body", size);
  ImGui::PopStyleVar();
  // the lower part gives way first: below this the panels would show nothing
  const float most_low = std::max(ui.px(kLeastTimeline), size.y - ui.px(kLeastUpper) - gap);
  const float wanted =
      layout.timeline > 0 ? ui.px(layout.timeline) : std::clamp(size.y * 0.31f, ui.px(150), ui.px(340));
  const float low = layout.show_timeline && !sheet_is_open() ? std::min(wanted, most_low) : 0;
  const bool hidden = !layout.show_timeline && !sheet_is_open();
  const float upper = size.y - (low > 0 ? low + gap : hidden ? ui.px(kWayBack) : 0);
  if (low > 0) {
    const float left = ImGui::GetCursorScreenPos().x;
    workspace_.document().axis.room =
        PlotEdges{left + ui.px(kCardPadding), left + size.x - ui.px(kCardPadding)};
  }
  draw_upper(ui, {size.x, upper});
  if (hidden) {
    ImGui::SetCursorPos({0, upper});
    draw_way_back(workspace_, ui, "timeline", {size.x, ui.px(kWayBack)}, {0, -1});
  }
  if (low <= 0) return;
  ImGui::SetCursorPosY(upper);
  {
    const StyleScope tight(ImGuiStyleVar_ItemSpacing, {0, 0});
    const float dragged = splitter(ui, "timeline height", low, ui.px(kLeastTimeline), most_low, false, true);
    if (dragged != low) layout.timeline = dragged / ui.scale;
  }
  timeline_rect_.low = ImGui::GetCursorScreenPos();
  timeline_rect_.high = timeline_rect_.low + ImGui::GetContentRegionAvail();
  const CardScope card(ui, "timeline", {0, 0});
  timeline_->draw(workspace_, ui);
}

// A sheet fills the window but for the tree.
bool Shell::sheet_is_open() const { return find_panel(workspace_.settings.panel).tab.empty(); }

// Tree, tabs and inspector, side by side.
void Shell::draw_upper(const Ui& ui, ImVec2 size) {
  Layout& layout = workspace_.settings.layout;
  const float gap = ui.px(kGap), spare = size.x - ui.px(kLeastMain) - 2 * gap;
  const bool sheet = sheet_is_open();
  const bool two = spare >= ui.px(kLeastTree + kLeastInspector);
  const float tree_most =
      std::max(ui.px(kLeastTree), std::min(size.x * 0.4f, spare - ui.px(kLeastInspector)));
  const float tree = layout.show_tree ? std::clamp(layout.tree > 0 ? ui.px(layout.tree) : size.x * 0.19f,
                                                   ui.px(kLeastTree), tree_most)
                                      : 0;
  const float side_most = std::max(ui.px(kLeastInspector), std::min(size.x * 0.4f, spare - tree));
  // where both have no room, the inspector goes: the tree leads to everything
  const float side = layout.show_inspector && !lesson_is_here(workspace_) && !sheet && (two || tree == 0)
                         ? std::clamp(layout.inspector > 0 ? ui.px(layout.inspector) : size.x * 0.2f,
                                      ui.px(kLeastInspector), side_most)
                         : 0;
  inspector_is_seen_ = side > 0;
  ImGui::PushStyleVar(ImGuiStyleVar_ItemSpacing, {0, 0});
  const ChildScope child("upper", {0, size.y});
  ImGui::PopStyleVar();
  if (tree > 0) {
    {
      const CardScope card(ui, "tree", {tree, 0});
      tree_->draw(workspace_, ui);
    }
    ImGui::SameLine(0, 0);
    const float dragged = splitter(ui, "tree width", tree, ui.px(kLeastTree), tree_most, true);
    if (dragged != tree) layout.tree = dragged / ui.scale;
    ImGui::SameLine(0, 0);
  } else {
    draw_way_back(workspace_, ui, "tree", {ui.px(kWayBack), size.y}, {1, 0});
    ImGui::SameLine(0, 0);
  }
  const bool hidden = !layout.show_inspector && !lesson_is_here(workspace_) && !sheet;
  {
    const float width = ImGui::GetContentRegionAvail().x - (side > 0 ? side + gap
                                                            : hidden ? ui.px(kWayBack)
                                                                     : 0);
    const ChildScope main("main", {std::max(width, ui.px(40)), 0});
    draw_main(ui);
  }
  ImGui::SameLine(0, 0);
  if (hidden) draw_way_back(workspace_, ui, "inspector", {ui.px(kWayBack), size.y}, {-1, 0});
  if (side <= 0) return;
  const float dragged = splitter(ui, "inspector width", side, ui.px(kLeastInspector), side_most, true, true);
  if (dragged != side) layout.inspector = dragged / ui.scale;
  ImGui::SameLine(0, 0);
  const CardScope card(ui, "inspector", {0, 0});
  inspector_->draw(workspace_, ui);
}

void Shell::draw_main(const Ui& ui) {
  const PanelRow& row = find_panel(workspace_.settings.panel);
  if (!row.tab.empty()) {
    last_panel_ = row.id;
    workspace_.settings.last_in_tab.insert_or_assign(std::string(row.tab), std::string(row.id));
    draw_tabs(ui);
  } else {
    draw_sheet_title(ui);
  }
  draw_notices(ui);
  draw_panel(ui);
}

void Shell::draw_panel(const Ui& ui) {
  panel_rect_.low = ImGui::GetCursorScreenPos();
  panel_rect_.high = panel_rect_.low + ImGui::GetContentRegionAvail();
  if (find_panel(workspace_.settings.panel).own_cards)
    return panel(workspace_.settings.panel).draw(workspace_, ui);
  const CardScope card(ui, "panel", {0, 0});
  panel(workspace_.settings.panel).draw(workspace_, ui);
}

void Shell::draw_tabs(const Ui& ui) {
  const StyleScope style(ImGuiStyleVar_ItemSpacing, {0, ui.px(4)});
  const PanelRow& now = find_panel(workspace_.settings.panel);
  const float start = ImGui::GetCursorPosX(), room = ImGui::GetContentRegionAvail().x;
  for (std::size_t i = 0; i < tabs().size(); ++i) {
    const std::string_view tab = tabs()[i];
    if (draw_tab(ui, tab, tab == now.tab, ui.px(room > ui.px(560) ? 11 : 7))) show_tab(workspace_, tab);
    tooltip(ui, fmt::format("{} (Ctrl+{})", tab, i + 1));
    ImGui::SameLine(0, 0);
  }
  const std::vector<const PanelRow*> views = panels_of(now.tab);
  if (views.size() < 2) return ImGui::NewLine();
  std::vector<std::string_view> titles;
  std::size_t at = 0;
  for (std::size_t i = 0; i < views.size(); ++i) {
    titles.push_back(views[i]->title);
    if (views[i] == &now) at = i;
  }
  const FontScope font(ui.fonts.small);
  const StyleScope frame(ImGuiStyleVar_FramePadding, {ui.px(7), ui.px(3)});
  const float width = segmented_width(ui, titles);
  const float right = start + room - width;
  const bool beside = ImGui::GetCursorPosX() <= right;
  if (beside) {
    ImGui::SameLine(right);
    ImGui::SetCursorPosY(ImGui::GetCursorPosY() + ui.px(2));
  } else {
    ImGui::NewLine();
    ImGui::SetCursorPosX(std::max(start, right));
  }
  if (const std::size_t picked = segmented(ui, "views", titles, at); picked != at)
    workspace_.settings.panel = views[picked]->id;
  if (beside) ImGui::SetCursorPosY(ui.px(36));
}

// A sheet lies over the panel until it is closed.
void Shell::draw_sheet_title(const Ui& ui) {
  const PanelRow& row = find_panel(workspace_.settings.panel);
  const StyleScope style(ImGuiStyleVar_ItemSpacing, {ui.px(10), ui.px(4)});
  {
    const FontScope font(ui.fonts.strong);
    control_text(row.title, ui.theme->text);
  }
  const std::string_view back = find_panel(last_panel_).title;
  ImGui::SameLine(0, ui.px(12));
  if (button(ui, fmt::format("Back to {}", back), ButtonKind::ghost)) leave_sheet();
}

bool Shell::leave_sheet() {
  if (!workspace_.document().model || !find_panel(workspace_.settings.panel).tab.empty()) return false;
  workspace_.settings.panel = last_panel_;
  return true;
}

// --- Notices and the jobs line.

namespace {

enum class Answer { none, dismiss, mend };

// Words over the whole width; `notice` is what they are, if it can be answered.
Answer notice_strip(const Ui& ui, graph::Severity severity, std::string_view words, int id,
                    const Notice* notice) {
  const ImU32 color = severity_color(*ui.theme, severity);
  const IdScope scope(id);
  ImGui::PushStyleColor(ImGuiCol_ChildBg, mix(ui.theme->panel, color, 0.14f));
  ImGui::PushStyleVar(ImGuiStyleVar_WindowPadding, {ui.px(14), ui.px(7)});
  const std::string safe = shown(words);
  const std::string remedy =
      notice != nullptr && notice->remedy ? remedy_title(std::span(&*notice->remedy, 1)) : "";
  const float remedy_room = remedy.empty() ? 0 : text_width(remedy) + ui.px(40);
  const float room = ImGui::GetContentRegionAvail().x - ui.px(64) - remedy_room;
  const float lines = ImGui::CalcTextSize(safe.c_str(), nullptr, false, room).y;
  // whole, unless it would take the window
  const float most = std::max(4 * ImGui::GetFontSize(), ImGui::GetContentRegionAvail().y * 0.4f);
  const float height = std::min(lines, most) + ui.px(18);
  const ChildScope child("notice", {0, height}, true, lines > most ? 0 : ImGuiWindowFlags_NoScrollbar);
  ImGui::PopStyleVar();
  ImGui::PopStyleColor();
  const ImVec2 at = ImGui::GetWindowPos();
  ImGui::PushClipRect(at, {at.x + ImGui::GetWindowWidth(), at.y + height}, false);
  ImGui::GetWindowDrawList()->AddRectFilled(at, {at.x + ui.px(5), at.y + height}, color, ui.px(8),
                                            ImDrawFlags_RoundCornersLeft);
  ImGui::PopClipRect();
  ImGui::SetCursorPos({ui.px(16), ui.px(9)});
  ImGui::PushTextWrapPos(ImGui::GetCursorPosX() + room);
  text_colored(ui.theme->text, safe);
  ImGui::PopTextWrapPos();
  if (lines > height) tooltip(ui, safe);
  const float middle = std::min(ui.px(3), (height - ImGui::GetFrameHeight()) / 2);
  ImGui::SetCursorPos({ImGui::GetWindowWidth() - ImGui::GetFrameHeight() - ui.px(6), middle});
  Answer answer = Answer::none;
  if (id >= 0 &&
      icon_button(ui, "dismiss", "Dismiss", [&](ImVec2 center, ImU32 ink) { paint_cross(ui, center, ink); }))
    answer = Answer::dismiss;
  if (!remedy.empty()) {
    ImGui::SetCursorPos({ImGui::GetWindowWidth() - ImGui::GetFrameHeight() - remedy_room, middle});
    if (button(ui, remedy, ButtonKind::primary)) answer = Answer::mend;
  }
  return answer;
}

}  // namespace

void Shell::draw_quit(const Ui& ui) {
  if (workspace_.services.requests.take<AskQuit>()) {
    if (asks_quit_) workspace_.services.requests.add(Quit{});  // who asks twice means it
    asks_quit_ = true;
  }
  if (!asks_quit_) return;
  const bool converts = workspace_.transfers.conversion.busy();
  if (!converts && !workspace_.transfers.uploading.busy()) {  // it came to its end meanwhile
    asks_quit_ = false;
    return;
  }
  const SheetScope sheet(ui, "quit", {ui.px(460), ui.px(150)});
  heading(ui, converts ? "A conversion is running" : "An upload is running");
  paragraph(ui,
            converts
                ? "Quitting stops it. The file that it writes will not be there; its source stays as it is."
                : "Quitting stops it and frees the memory of the device.",
            ui.theme->text);
  ImGui::Dummy({0, ui.px(8)});
  if (button(ui, "Stop it and quit (Enter)", ButtonKind::primary) || list_key_pressed(ListKey::enter))
    workspace_.services.requests.add(Quit{});
  ImGui::SameLine(0, ui.px(8));
  if (button(ui, "Keep running (Esc)") || list_key_pressed(ListKey::escape)) asks_quit_ = false;
}

void Shell::draw_notices(const Ui& ui) {
  const Document& document = workspace_.document();
  const std::vector<Caveat>& caveats = document.caveats();
  // a warning stands in the inspector, if that is there
  const bool first =
      !caveats.empty() && (caveats.front().severity == graph::Severity::error || !inspector_is_seen_);
  if (first && workspace_.settings.panel != "model" && workspace_.settings.panel != "findings") {
    const std::size_t more = std::max(document.model->errors, caveats.size()) - 1;
    notice_strip(ui, caveats.front().severity,
                 fmt::format("{}{}  (see Findings)", caveats.front().text,
                             more > 0 ? fmt::format("  and {} more", more) : ""),
                 -1, nullptr);
  }
  // the newest stands for all: others come to sight as it is dismissed
  Notices& notices = workspace_.services.notices;
  const auto front = notices.front(workspace_.document().id);
  if (!front) return;
  const Notice notice = notices.all()[front->at];
  const std::string words =
      front->older == 0 ? notice.text
                        : fmt::format("{}  ({} older)", notice.text, counted(front->older, "older message"));
  const Answer answer = notice_strip(ui, notice.severity, words, static_cast<int>(front->at), &notice);
  if (answer == Answer::none) return;
  notices.dismiss(front->at);
  if (answer == Answer::mend) workspace_.attempt([&] { workspace_.mend({*notice.remedy}, notice.path); });
}

// Jobs with a bar each; else what the window waits for.
void Shell::draw_jobs(const Ui& ui, float height) {
  const float width = ImGui::GetContentRegionAvail().x;
  const FontScope font(ui.fonts.small);
  const float y = ImGui::GetCursorPosY() + (height - ImGui::GetFontSize()) / 2;
  ImGui::SetCursorPos({ui.px(18), y});
  const std::vector<JobView> jobs = workspace_.services.jobs.view();
  struct Hint {
    std::string_view words, action;
    bool needs_model;
  };
  constexpr auto kHints = std::to_array<Hint>({{"Ctrl+P commands", "palette", false},
                                               {"F2 does it fit?", "advice", true},
                                               {"Ctrl+E export", "export", true},
                                               {"F1 manual", "manual", false},
                                               {"? keys", "keys", false}});
  const float between = ui.px(14);
  float right_width = -between;
  for (const Hint& hint : kHints)
    if (!hint.needs_model || workspace_.document().model) right_width += text_width(hint.words) + between;
  if (jobs.empty())
    muted(ui, elided(workspace_.services.done.empty() ? "Ready" : workspace_.services.done,
                     width - right_width - ui.px(54)));
  for (const JobView& job : jobs) {
    if (ImGui::GetCursorPosX() + ui.px(280) > width - right_width - ui.px(36)) break;
    const IdScope scope(static_cast<int>(job.id));
    ImGui::SetCursorPosY(y);
    text(elided(job.name, ui.px(220)));
    ImGui::SameLine(0, ui.px(8));
    ImGui::SetCursorPosY(y + ImGui::GetFontSize() / 2 - ui.px(3));
    bar(ui, job.fraction, ui.theme->accent, {ui.px(90), ui.px(6)});
    if (job.total > 0) {
      ImGui::SameLine(0, ui.px(8));
      ImGui::SetCursorPosY(y);
      muted(ui, job.canceling ? "stopping" : fmt::format("{:.0f}%", job.fraction * 100));
    }
    ImGui::SameLine(0, ui.px(2));
    ImGui::SetCursorPosY(y - (ImGui::GetFrameHeight() - ImGui::GetFontSize()) / 2);
    if (icon_button(ui, "cancel", "Cancel", [&](ImVec2 center, ImU32 ink) { paint_cross(ui, center, ink); }))
      workspace_.services.jobs.cancel(job.id);
    ImGui::SameLine(0, ui.px(14));
  }
  ImGui::SetCursorPos({width - right_width - ui.px(18), y});
  for (const Hint& hint : kHints) {
    if (hint.needs_model && !workspace_.document().model) continue;
    const IdScope scope(hint.action);
    const ImVec2 at = ImGui::GetCursorScreenPos();
    const float room = text_width(hint.words);
    if (press_area(ui, "hint", {room, ImGui::GetFontSize()})) run_action(workspace_, hint.action);
    put_text(at, ImGui::IsItemHovered() ? ui.theme->text : ui.theme->muted, hint.words);
    ImGui::SameLine(0, between);
  }
}

}  // namespace loadline::gui
