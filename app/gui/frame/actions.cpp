// The table of actions, and its rows for models, the window, tensors, modules and time.
#include "app/gui/frame/actions.h"

#include "app/gui/frame/facts.h"
#include "app/gui/panels/panels.h"
#include "app/gui/parts/timeline_plot.h"
#include "app/gui/state/summary.h"
#include "app/report/manual.h"
#include "core/base/text.h"
#include "core/io/file_system.h"

#include <algorithm>
#include <array>
#include <cassert>
#include <utility>
#include <vector>

#include <fmt/core.h>
#include <imgui.h>

namespace loadline::gui {
namespace {

// --- Whether an action makes sense now.

bool has_tensor(const Workspace& workspace) {
  return has_model(workspace) && workspace.document().selected_tensor().has_value();
}

bool has_several(const Workspace& workspace) { return workspace.documents().size() > 1; }

// --- Models and the window.

void open(Workspace& workspace, const std::string& path) { workspace.open(path); }
void open_request(Workspace& workspace, const std::string& path) { workspace.open_request(path); }
void save_request(Workspace& workspace, const std::string& path) { workspace.save_request(path); }

bool has_remedy(const Workspace& workspace) {
  const auto& all = workspace.services.notices.all();
  return std::ranges::any_of(all, [](const Notice& notice) { return notice.remedy.has_value(); });
}

// Applies the remedy of the newest notice that has one.
void mend(Workspace& workspace, const std::string&) {
  const auto& all = workspace.services.notices.all();
  for (std::size_t i = all.size(); i-- > 0;) {
    if (!all[i].remedy) continue;
    const Notice notice = all[i];
    workspace.services.notices.dismiss(i);
    return workspace.mend({*notice.remedy}, notice.path);
  }
  refuse("no message suggests a fix");
}

bool has_notice(const Workspace& workspace) {
  return workspace.services.notices.front(workspace.document().id).has_value();
}
void dismiss(Workspace& workspace, const std::string&) {
  const auto front = workspace.services.notices.front(workspace.document().id);
  if (!front) refuse("there is no message");
  workspace.services.notices.dismiss(front->at);
}

void show_palette(Workspace& workspace, const std::string&) {
  workspace.services.requests.add(OpenPalette{});
}
void show_keys(Workspace& workspace, const std::string&) { workspace.services.requests.add(OpenKeys{}); }

void show_manual(Workspace& workspace, const std::string& topic) {
  workspace.services.requests.add(
      OpenManual{topic.empty() ? "" : std::string(report::find_manual_page(topic).id)});
}
void demo(Workspace& workspace, const std::string&) { workspace.open_demo(); }
void close(Workspace& workspace, const std::string&) { workspace.close_model(); }
void favorite(Workspace& workspace, const std::string&) { workspace.toggle_favorite(); }
void reload(Workspace& workspace, const std::string&) { workspace.reload(); }

template <bool on>
void show_beside(Workspace& workspace, const std::string&) {
  const std::size_t all = workspace.documents().size(), now = workspace.shown_document();
  workspace.show_document((now + (on ? 1 : all - 1)) % all);
}
void show_tab(Workspace& workspace, const std::string& text) {
  workspace.show_document(parse_number<std::size_t>(text, 1, workspace.documents().size()) - 1);
}
// Against the Nth open model, else against the one that is most like this.
template <bool values>
void diff(Workspace& workspace, const std::string& text) {
  const auto& documents = workspace.documents();
  if (text.empty() && !workspace.nearest_document()) {
    workspace.settings.panel = "diff";  // which asks for the second model
    return;
  }
  const std::size_t at = text.empty() ? workspace.nearest_document().value_or(workspace.shown_document())
                                      : parse_number<std::size_t>(text, 1, documents.size()) - 1;
  if (at == workspace.shown_document()) refuse("that is the model shown");
  workspace.document().diff.begin(documents[at]->model, values);
  workspace.settings.panel = "diff";
}
void end_diff(Workspace& workspace, const std::string&) {
  workspace.document().diff.end();
  if (workspace.settings.panel == "diff") workspace.settings.panel = "map";  // it would begin again
}
bool has_diff(const Workspace& workspace) { return workspace.document().diff.there() != nullptr; }
void export_view(Workspace& workspace, const std::string& text) {
  if (text.empty())
    workspace.services.requests.add(OpenExport{});
  else
    workspace.services.requests.add(view_request(text));
}
void export_play(Workspace& workspace, const std::string& text) {
  ExportRequest request = play_request(text);
  if (!workspace.document().load.projection.value()) refuse("no load is projected");
  workspace.services.requests.add(std::move(request));
}
void quit(Workspace& workspace, const std::string&) { workspace.ask_quit(); }

void browse(Workspace& workspace, const std::string& folder) {
  if (!folder.empty()) workspace.places.browse(folder);
  workspace.services.requests.add(OpenBrowser{});
}

void show_start(Workspace& workspace, const std::string&) { workspace.show_start(); }

void show_panel(Workspace& workspace, const std::string& id) { workspace.settings.panel = find_panel(id).id; }

void set_theme(Workspace& workspace, const std::string& name) {
  constexpr std::array<std::string_view, 3> kThemes = {"dark", "light", "system"};
  Settings& settings = workspace.settings;
  const std::size_t theme = name.empty() ? (settings.dark ? 1 : 0) : position(name, kThemes, "theme");
  settings.follows_desktop = theme == 2;
  if (!settings.follows_desktop) settings.dark = theme == 0;
}

constexpr float kLeastScale = 0.75f, kMostScale = 4;

void larger(Workspace& workspace, const std::string&) {
  workspace.settings.scale = std::min(kMostScale, workspace.settings.shown_scale * 1.125f);
}
void smaller(Workspace& workspace, const std::string&) {
  workspace.settings.scale = std::max(kLeastScale, workspace.settings.shown_scale / 1.125f);
}
void usual_size(Workspace& workspace, const std::string&) { workspace.settings.scale = 0; }

// --- Tensors and modules.

void select(Workspace& workspace, const std::string& name) {
  const auto tensor = find_tensor(model_of(workspace), name);
  if (!tensor) refuse(fmt::format("no tensor '{}'", name));
  workspace.document().select(*tensor);
}

void deselect(Workspace& workspace, const std::string&) { workspace.document().select({}); }

// Whatever is selected next is held against the tensor; a second time lets it go.
void keep(Workspace& workspace, const std::string&) {
  Document& document = workspace.document();
  if (!document.selected_tensor()) refuse("no tensor is selected");
  const bool kept = document.values.kept() == document.selected_tensor();
  document.values.keep(kept ? std::nullopt : document.selected_tensor());
  workspace.settings.panel = "values";
}

graph::NodeId module_called(const Workspace& workspace, const std::string& path) {
  const graph::ModuleTree& tree = model_of(workspace).tree;
  for (std::uint32_t i = 0; i < tree.nodes.size(); ++i)
    if (graph::module_path(tree, graph::NodeId{i}) == path) return graph::NodeId{i};
  refuse(fmt::format("no module '{}'", path));
}

void zoom(Workspace& workspace, const std::string& path) {
  workspace.document().zoom(module_called(workspace, path));
}
void select_module(Workspace& workspace, const std::string& path) {
  workspace.document().select(module_called(workspace, path));
}

void zoom_out(Workspace& workspace, const std::string&) {
  Document& document = workspace.document();
  document.zoom(model_of(workspace).tree.node(document.zoomed()).parent);
}

void set_color(Workspace& workspace, const std::string& mode) {
  workspace.settings.color_by = static_cast<ColorBy>(position(mode, kColorNames, "coloring"));
}

// Of the start page, of the operators in the graph, or of the tree.
void edit_filter(Workspace& workspace, const std::string&) {
  const Document& document = workspace.document();
  if (document.model && workspace.settings.panel == "graph" && document.forward.graph() != nullptr)
    return workspace.services.requests.add(FocusFind{});
  if (!document.model && (workspace.shelf.models().empty() || workspace.settings.panel == "arena")) return;
  if (document.model) workspace.settings.layout.show_tree = true;
  workspace.services.requests.add(FocusFilter{});
}

void copy(Workspace& workspace, const std::string& form) {
  model_of(workspace);
  const std::size_t chosen = form.empty() ? 0 : position(form, kCopyFormNames, "form");
  const SelectionFacts facts = facts_of(workspace.document(), workspace.document().selected());
  ImGui::SetClipboardText(facts_text(facts, static_cast<CopyForm>(chosen)).c_str());
}

void copy_words(Workspace&, const std::string& words) { ImGui::SetClipboardText(words.c_str()); }

void show_menu(Workspace& workspace, const std::string&) { workspace.document().asked_menu = AskedMenu(); }

void go_back(Workspace& workspace, const std::string&) { workspace.document().history.go_back(); }
void go_forward(Workspace& workspace, const std::string&) { workspace.document().history.go_forward(); }

// --- Time, and the parts of the window.

// A step of the load, its end, or its peak.
void set_time(Workspace& workspace, const std::string& text) {
  Document& document = workspace.document();
  if (!document.load.projection.value()) refuse("no load is projected");
  const std::size_t steps = document.load.projection.value()->plan.steps.size();
  if (text == "peak") return document.time.set_step(std::nullopt);
  document.time.set_step(text == "end" ? steps : parse_number<std::size_t>(text, 0, steps));
}

void play(Workspace& workspace, const std::string& word) {
  Document& document = workspace.document();
  if (!document.load.projection.value()) refuse("no load is projected");
  document.time.play(word.empty() ? !document.time.playing() : on_or_off(word));
}

void set_speed(Workspace& workspace, const std::string& text) {
  workspace.document().time.speed = parse_number<double>(text, 0.01, 100);
}
void faster(Workspace& workspace, const std::string&) {
  double& speed = workspace.document().time.speed;
  speed = std::min(16.0, speed * 2);
}
void slower(Workspace& workspace, const std::string&) {
  double& speed = workspace.document().time.speed;
  speed = std::max(1.0 / 16, speed / 2);
}

template <bool on>
void move_time(Workspace& workspace, const std::string&) {
  Document& document = workspace.document();
  if (!document.load.projection.value()) return;
  const std::size_t now = document.time.step(), steps = document.load.projection.value()->plan.steps.size();
  document.time.set_step(on ? std::min(steps, now + 1) : now - std::min<std::size_t>(now, 1));
}

void set_unit(Workspace& workspace, const std::string& word) {
  constexpr std::array<std::string_view, 2> kUnits = {"steps", "seconds"};
  Document& document = workspace.document();
  const std::size_t now = static_cast<std::size_t>(document.axis.chosen);
  document.show_unit(static_cast<view::RunAxis>(word.empty() ? 1 - now : position(word, kUnits, "unit")));
}

// Notches of a wheel around the cursor, or around the middle where that is out of sight.
template <int notches>
void zoom_time(Workspace& workspace, const std::string&) {
  Document& document = workspace.document();
  const auto& run = document.load.projection.value();
  if (!run) return;
  PlotRange& range = document.axis.range;
  const std::size_t steps = run->plan.steps.size();
  const view::RunAxis unit = document.axis_unit();
  const double x = view::x_of_step(run->timeline, steps, unit, document.time.step());
  const double share = x / axis_length(workspace);
  const bool seen = share >= range.from && share <= range.to;
  range = zoomed(range, seen ? share : (range.from + range.to) / 2, notches);
}
void whole_time(Workspace& workspace, const std::string&) { workspace.document().axis.range = {}; }

void play_beside(Workspace& workspace, const std::string& method) {
  workspace.document().load.set_beside(method == "none" ? "" : method);
}

// Adds a folder to those in which the start page looks, or takes it out.
void models_folder(Workspace& workspace, const std::string& path) {
  const std::string folder = absolute_path(path);
  std::vector<std::string>& folders = workspace.settings.folders;
  if (std::erase(folders, folder) > 0) return;
  if (!io::is_folder(folder)) refuse(fmt::format("'{}' is no folder", safe_display(path, 120)));
  folders.insert(folders.begin(), folder);
  if (folders.size() > kMostFavorites) folders.resize(kMostFavorites);
}

std::uint64_t tokens(std::string_view word, std::uint64_t least) {
  const auto count = report::tokens_of(std::string(word));
  if (!count || *count < least || *count > load::kMostTokens)
    refuse(fmt::format("'{}' is no number of tokens: write 512 or 32k", safe_display(word, 40)));
  return *count;
}

// "512", "512 32k": the prompt, and the tokens in all.
void models_tokens(Workspace& workspace, const std::string& text) {
  if (text.find(' ') == std::string::npos) return workspace.ask_models(tokens(text, 1), 0);
  const auto [prompt, context] = two_words(text, "a prompt and a context");
  workspace.ask_models(tokens(prompt, 1), tokens(context, 0));
}

void models_filter(Workspace& workspace, const std::string& words) { workspace.shelf.view.filter = words; }

void models_sort(Workspace& workspace, const std::string& argument) {
  std::string_view name = argument;
  const bool up = ascending(name);
  workspace.shelf.view.by = static_cast<ShelfColumn>(position(name, kShelfColumnNames, "column"));
  workspace.shelf.view.ascending = up;
}

void full_screen(Workspace& workspace, const std::string& word) {
  bool& full = workspace.settings.full_screen;
  full = word.empty() ? !full : on_or_off(word);
}

void show_advice(Workspace& workspace, const std::string&) { workspace.services.requests.add(OpenAdvice{}); }

// Takes over the Nth change that the advice lists.
void apply_advice(Workspace& workspace, const std::string& text) {
  Document& document = workspace.document();
  const auto& answer = document.advice.answer.value();
  if (!document.advice.is_current() || !answer || !answer->advice)
    refuse("no suggestions are listed: run 'advice' first");
  const std::vector<load::AdvisedLoad>& loads = answer->advice->advice.loads;
  if (loads.empty()) refuse("no change makes it fit");
  document.advice.apply(loads[parse_number<std::size_t>(text, 1, loads.size()) - 1]);
}

bool can_take_back(const Workspace& workspace) { return workspace.document().advice.can_take_back(); }
void take_back(Workspace& workspace, const std::string&) { workspace.document().advice.take_back(); }

template <bool Layout::*part>
void show_part(Workspace& workspace, const std::string& word) {
  bool& shown = workspace.settings.layout.*part;
  shown = word.empty() ? !shown : on_or_off(word);
}

bool can_undo(const Workspace& workspace) { return workspace.document().load.can_undo(); }
void undo(Workspace& workspace, const std::string&) {
  const std::string change = workspace.document().load.undone_by_undo();
  workspace.document().load.undo();
  workspace.follow_picture_sides();
  workspace.services.done = "Undid: " + safe_display(change, 160);
}
bool can_redo(const Workspace& workspace) { return workspace.document().load.can_redo(); }
void redo(Workspace& workspace, const std::string&) {
  const std::string change = workspace.document().load.done_by_redo();
  workspace.document().load.redo();
  workspace.follow_picture_sides();
  workspace.services.done = "Redid: " + safe_display(change, 160);
}

// One option, or all that have no place of their own in the toolbar.
void reset_options(Workspace& workspace, const std::string& id) {
  std::vector<std::string_view> ids;
  if (id.empty())
    for (const load::LoadOption* const option : changed_options(workspace.document()))
      ids.push_back(option->id);
  else if (const load::LoadOption* const option = load::find_load_option(id))
    ids = {option->id};
  else
    refuse(fmt::format("no option is called '{}'", safe_display(id, 60)));
  workspace.document().load.reset_options(ids);
}

void filter(Workspace& workspace, const std::string& terms) {
  workspace.document().table.set_filter(terms);
  if (!workspace.document().table.view().error.empty()) refuse(workspace.document().table.view().error);
}

void sort(Workspace& workspace, const std::string& argument) {
  std::string_view name = argument;
  const bool up = ascending(name);
  if (lower_case(name) == "size") name = "bytes";  // as the column is titled
  const std::size_t column = position(name, kSortColumnNames, "column");
  workspace.document().table.set_sort(static_cast<SortColumn>(column), up);
}

void find(Workspace& workspace, const std::string& text) {
  Document& document = workspace.document();
  const std::string& panel = workspace.settings.panel;
  if (panel == "tensors")
    document.table.set_filter(text);
  else if (panel == "metadata")
    document.metadata.search = text;
  else if (panel == "operators" || panel == "graph")
    document.forward.search = text;
  else
    refuse(fmt::format("the panel '{}' has no search box", panel));
}

// --- The table.

constexpr Argument kNone = Argument::none;
constexpr Argument kOptional = Argument::optional;
constexpr Argument kRequired = Argument::required;

constexpr auto kWindowActions = std::to_array<Action>({
    {"open", "Open a path", "", kRequired, always, open},
    {"browse", "Open a model", "Ctrl+O", kOptional, always, browse},
    {"start", "Show the start page", "Alt+Home", kNone, has_model, show_start},
    {"demo", "Open the demo model", "", kNone, always, demo},
    {"close", "Close the model", "Ctrl+W", kNone, always, close},
    {"favorite", "Toggle favorite", "", kNone, has_model, favorite},
    {"models-folder", "Add or remove a folder of models", "", kRequired, always, models_folder},
    {"models-tokens", "Set prompt and context of the start page", "", kRequired, always, models_tokens},
    {"models-filter", "Filter the models of the start page", "", kOptional, always, models_filter},
    {"models-sort", "Sort the models of the start page", "", kRequired, always, models_sort},
    {"reload", "Reload model", "F5", kNone, has_model, reload},
    {"next-model", "Show the next model", "Ctrl+Tab", kNone, has_several, show_beside<true>},
    {"previous-model", "Show the previous model", "Ctrl+Shift+Tab", kNone, has_several, show_beside<false>},
    {"tab", "Switch to model", "", kRequired, has_several, show_tab},
    {"diff", "Compare with another model", "Ctrl+D", kOptional, has_model, diff<false>},
    {"diff-values", "Compare values with another open model", "", kOptional, has_several, diff<true>},
    {"end-diff", "Stop comparing", "", kNone, has_diff, end_diff},
    {"export", "Export the view to a .png, .svg or .csv file", "Ctrl+E", kOptional, always, export_view},
    {"export-play", "Export an animation of the load (.gif or a series of .png files)", "", kRequired,
     has_model, export_play},
    {"quit", "Quit", "Ctrl+Q", kNone, always, quit},
    {"open-request", "Open a saved request", "", kRequired, always, open_request},
    {"save-request", "Save load request", "", kRequired, always, save_request},
    {"mend", "Apply suggested fix", "", kNone, has_remedy, mend},
    {"dismiss", "Dismiss newest message", "", kNone, has_notice, dismiss},
    {"panel", "Show a panel", "", kRequired, always, show_panel},
    {"palette", "Command palette", "Ctrl+P", kNone, always, show_palette},
    {"keys", "Keyboard shortcuts", "?", kNone, always, show_keys},
    {"manual", "Show the manual", "F1", kOptional, always, show_manual},
    {"theme", "Switch between dark and light theme", "Ctrl+T", kOptional, always, set_theme},

    {"full-screen", "Full screen", "F11", kOptional, always, full_screen},
    {"larger", "Zoom in", "Ctrl+=", kNone, always, larger},
    {"smaller", "Zoom out", "Ctrl+-", kNone, always, smaller},
    {"usual-size", "Reset zoom", "Ctrl+0", kNone, always, usual_size},

    {"tree", "Show or hide the tree", "Ctrl+B", kOptional, always, show_part<&Layout::show_tree>},
    {"inspector", "Show or hide the inspector", "Ctrl+I", kOptional, always,
     show_part<&Layout::show_inspector>},
    {"timeline", "Show or hide the timeline", "Ctrl+J", kOptional, always, show_part<&Layout::show_timeline>},
    {"advice", "Suggest changes that fit", "F2", kNone, has_model, show_advice},
    {"apply-advice", "Apply suggestion", "", kRequired, has_model, apply_advice},
    {"take-back", "Undo suggestion", "", kNone, can_take_back, take_back},
    {"undo", "Undo the last change of the request", "Ctrl+Z", kNone, can_undo, undo},
    {"redo", "Redo the change of the request", "Ctrl+Shift+Z", kNone, can_redo, redo},
    {"reset-option", "Reset an option, or all", "", kOptional, always, reset_options},
    {"time", "Move the time cursor", "", kRequired, has_model, set_time},
    {"play", "Play the load, or stop", "Space", kOptional, has_model, play},
    {"beside", "Play another method beside this one", "", kRequired, has_model, play_beside},
    {"speed", "Set the speed of the play", "", kRequired, has_model, set_speed},
    {"slower", "Play slower", "J", kNone, has_model, slower},
    {"faster", "Play faster", "L", kNone, has_model, faster},
    {"step-back", "Previous step", ",", kNone, has_model, move_time<false>},
    {"step-on", "Next step", ".", kNone, has_model, move_time<true>},

    {"unit", "Switch the time axis between steps and seconds", "T", kOptional, has_model, set_unit},
    {"time-in", "Zoom in on the time axis", "=", kNone, has_model, zoom_time<2>},
    {"time-out", "Zoom out on the time axis", "-", kNone, has_model, zoom_time<-2>},
    {"time-whole", "Show the whole time axis", "0", kNone, has_model, whole_time},

    {"select", "Select a tensor", "", kRequired, has_model, select},
    {"select-module", "Select a module", "", kRequired, has_model, select_module},
    {"menu", "What can be done with the selection", "Shift+F10", kNone, has_model, show_menu},
    {"copy", "Copy selection", "Ctrl+Shift+C", kOptional, has_model, copy},
    {"copy-words", "Copy these words", "", kRequired, always, copy_words},
    {"back", "Previous selection", "Alt+Left", kNone, has_model, go_back},
    {"forward", "Next selection", "Alt+Right", kNone, has_model, go_forward},
    {"keep", "Pin or unpin tensor for comparison", "", kNone, has_tensor, keep},
    {"deselect", "Clear selection", "Escape", kNone, has_model, deselect},
    {"zoom", "Show a module in the map", "", kOptional, has_model, zoom},
    {"zoom-out", "Show parent module in the map", "Backspace", kNone, has_model, zoom_out},
    {"color", "Color the map", "", kRequired, always, set_color},
    {"find-tensor", "Filter the tensors or the models, or find operators in the graph", "Ctrl+F", kNone,
     always, edit_filter},
    {"filter", "Apply a filter to the tensors", "", kOptional, always, filter},
    {"sort", "Sort the tensors", "", kRequired, always, sort},
    {"find", "Search in the panel shown", "", kOptional, always, find},
});

}  // namespace

std::span<const Action> actions() {
  static const std::vector<Action> all = [] {
    std::vector<Action> rows(kWindowActions.begin(), kWindowActions.end());
    const std::span<const Action> more = model_actions();
    rows.insert(rows.end(), more.begin(), more.end());
    return rows;
  }();
  return all;
}

const Action* find_action(std::string_view id) {
  const std::span<const Action> all = actions();
  const auto found = std::ranges::find_if(all, [&](const Action& action) { return action.id == id; });
  return found == all.end() ? nullptr : &*found;
}

void run_action(Workspace& workspace, std::string_view id) {
  const Action* action = find_action(id);
  assert(action != nullptr);
  workspace.attempt([&] { action->run(workspace, ""); });
}

}  // namespace loadline::gui
