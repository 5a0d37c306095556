// The table of actions, one function each.
#include "app/gui/frame/actions.h"

#include "app/gui/panels/panels.h"
#include "app/gui/state/summary.h"
#include "app/report/manual.h"
#include "core/base/text.h"

#include <algorithm>
#include <array>
#include <cassert>
#include <utility>

#include <fmt/format.h>
#include <imgui.h>

namespace loadline::gui {
namespace {

// Whether an action makes sense now.

bool always(const Workspace&) { return true; }

bool has_model(const Workspace& workspace) { return workspace.document().model != nullptr; }

bool has_tensor(const Workspace& workspace) {
  return has_model(workspace) && workspace.document().selected_tensor().has_value();
}

bool has_several(const Workspace& workspace) { return workspace.documents().size() > 1; }

bool has_array(const Workspace& workspace) { return workspace.document().metadata.array() != nullptr; }

bool has_operators(const Workspace& workspace) {
  const auto& scene = workspace.document().forward.value();
  return scene && scene->forward() != nullptr;
}

bool has_order(const Workspace& workspace) { return !workspace.document().order.value()->items().empty(); }

bool has_comparison(const Workspace& workspace) {
  const Document& document = workspace.document();
  return !document.comparison.value()->answer.rows.empty() && !document.comparison.busy();
}

bool has_steps(const Workspace& workspace) { return workspace.document().arena->steps() != nullptr; }

bool can_diagnose(const Workspace& workspace) {
  return has_model(workspace) && !workspace.document().findings.busy();
}

bool can_convert(const Workspace& workspace) { return has_model(workspace) && !workspace.conversion.busy(); }

bool has_converted(const Workspace& workspace) {
  return workspace.converted() != nullptr && !workspace.conversion.busy();
}
bool can_compare_files(const Workspace& workspace) {
  return has_converted(workspace) && !workspace.checking.busy();
}

bool can_upload(const Workspace& workspace) {
  const Document& document = workspace.document();
  return document.projection.value() && !document.projection.busy() && !workspace.uploading.busy();
}

bool is_uploading(const Workspace& workspace) { return workspace.uploading.busy(); }

// What arguments mean.

const Model& model_of(const Workspace& workspace) {
  if (!workspace.document().model) refuse("no model is open");
  return *workspace.document().model;
}

ArrayView& array_of(Workspace& workspace) {
  if (!has_array(workspace)) refuse("no array is looked at");
  return *workspace.document().metadata.array();
}

// Whether a COLUMN is followed by "descending"; takes it off.
bool ascending(std::string_view& column) {
  const std::size_t space = column.find(' ');
  if (space == std::string_view::npos) return true;
  const std::string_view word = column.substr(space + 1);
  if (word != "descending") refuse(fmt::format("'{}' is not descending", word));
  column = column.substr(0, space);
  return false;
}

template <bool Asked::*member>
void set_switch(Workspace& workspace, const std::string& word) {
  Asked asked = workspace.document().asked();
  asked.*member = on_or_off(word);
  workspace.document().ask(asked);
}

// Models and the window.

void open(Workspace& workspace, const std::string& path) { workspace.open(path); }
void open_request(Workspace& workspace, const std::string& path) { workspace.open_request(path); }
void save_request(Workspace& workspace, const std::string& path) { workspace.save_request(path); }

bool has_remedy(const Workspace& workspace) {
  const auto& all = workspace.shared.notices.all();
  return std::ranges::any_of(all, [](const Notice& notice) { return notice.remedy.has_value(); });
}

// Applies the remedy of the newest notice that has one.
void mend(Workspace& workspace, const std::string&) {
  const auto& all = workspace.shared.notices.all();
  for (std::size_t i = all.size(); i-- > 0;) {
    if (!all[i].remedy) continue;
    const Notice notice = all[i];
    workspace.shared.notices.dismiss(i);
    return workspace.mend({*notice.remedy}, notice.path);
  }
  refuse("no message offers a remedy");
}

bool has_notice(const Workspace& workspace) {
  return workspace.shared.notices.front(workspace.document().id).has_value();
}
void dismiss(Workspace& workspace, const std::string&) {
  const auto front = workspace.shared.notices.front(workspace.document().id);
  if (!front) refuse("there is no message");
  workspace.shared.notices.dismiss(front->at);
}

void show_palette(Workspace& workspace, const std::string&) { workspace.wants_palette = true; }
void show_keys(Workspace& workspace, const std::string&) { workspace.shows_keys = true; }

void show_manual(Workspace& workspace, const std::string& topic) {
  const std::string_view wanted = topic.empty() ? find_panel(workspace.settings.panel).manual : topic;
  workspace.manual = report::find_manual_page(wanted).id;
}
void demo(Workspace& workspace, const std::string&) { workspace.open_demo(); }
void close(Workspace& workspace, const std::string&) { workspace.close_model(); }
void favourite(Workspace& workspace, const std::string&) { workspace.toggle_favourite(); }
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
  if (!text.empty()) {
    workspace.wants_export = view_request(text);
    return;
  }
  workspace.palette_text = fmt::format("export {}.png", workspace.settings.panel);
  workspace.wants_palette = true;
}
void export_play(Workspace& workspace, const std::string& text) {
  ExportRequest request = play_request(text);
  if (!workspace.document().projection.value()) refuse("no load is projected");
  workspace.wants_export = std::move(request);
}
void quit(Workspace& workspace, const std::string&) { workspace.ask_quit(); }

void browse(Workspace& workspace, const std::string& folder) {
  if (!folder.empty()) workspace.browse(folder);
  workspace.wants_browser = true;
}

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

// Tensors and modules.

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

NodeId module_called(const Workspace& workspace, const std::string& path) {
  const ModuleTree& tree = model_of(workspace).tree;
  for (std::uint32_t i = 0; i < tree.nodes.size(); ++i)
    if (module_path(tree, NodeId{i}) == path) return NodeId{i};
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
  workspace.settings.color_by = static_cast<ColorBy>(position(mode, kColorNames, "colouring"));
}

void edit_filter(Workspace& workspace, const std::string&) {
  workspace.settings.layout.show_tree = true;
  workspace.wants_filter = true;
}

void copy(Workspace& workspace, const std::string& form) {
  model_of(workspace);
  const std::size_t chosen = form.empty() ? 0 : position(form, kCopyFormNames, "form");
  ImGui::SetClipboardText(selection_text(workspace.document(), static_cast<CopyForm>(chosen)).c_str());
}

void go_back(Workspace& workspace, const std::string&) { workspace.document().go_back(); }
void go_forward(Workspace& workspace, const std::string&) { workspace.document().go_forward(); }

// A step of the load, its end, or its peak.
void set_time(Workspace& workspace, const std::string& text) {
  Document& document = workspace.document();
  if (!document.projection.value()) refuse("no load is projected");
  const std::size_t steps = document.projection.value()->plan.steps.size();
  if (text == "peak") return document.set_step(std::nullopt);
  document.set_step(text == "end" ? steps : parse_number<std::size_t>(text, 0, steps));
}

void play(Workspace& workspace, const std::string& word) {
  Document& document = workspace.document();
  if (!document.projection.value()) refuse("no load is projected");
  document.play(word.empty() ? !document.playing : on_or_off(word));
}

void set_speed(Workspace& workspace, const std::string& text) {
  workspace.document().play_speed = parse_number<double>(text, 0.01, 100);
}
void faster(Workspace& workspace, const std::string&) {
  double& speed = workspace.document().play_speed;
  speed = std::min(16.0, speed * 2);
}
void slower(Workspace& workspace, const std::string&) {
  double& speed = workspace.document().play_speed;
  speed = std::max(1.0 / 16, speed / 2);
}

template <bool on>
void move_time(Workspace& workspace, const std::string&) {
  Document& document = workspace.document();
  if (!document.projection.value()) return;
  const std::size_t now = document.step(), steps = document.projection.value()->plan.steps.size();
  document.set_step(on ? std::min(steps, now + 1) : now - std::min<std::size_t>(now, 1));
}

void play_beside(Workspace& workspace, const std::string& method) {
  workspace.document().set_beside(method == "none" ? "" : method);
}

void show_advice(Workspace& workspace, const std::string&) { workspace.wants_advice = true; }

// Takes over the Nth change that the advice lists.
void apply_advice(Workspace& workspace, const std::string& text) {
  Document& document = workspace.document();
  const auto& answer = document.advice.value();
  if (!document.advised() || !answer || !answer->advice) refuse("no advice is listed: advice shows it");
  const std::vector<AdvisedLoad>& loads = answer->advice->advice.loads;
  if (loads.empty()) refuse("no change makes it fit");
  document.apply(loads[parse_number<std::size_t>(text, 1, loads.size()) - 1]);
}

bool can_take_back(const Workspace& workspace) { return workspace.document().can_take_back(); }
void take_back(Workspace& workspace, const std::string&) { workspace.document().take_back(); }

template <bool Layout::*part>
void show_part(Workspace& workspace, const std::string& word) {
  bool& shown = workspace.settings.layout.*part;
  shown = word.empty() ? !shown : on_or_off(word);
}

void filter(Workspace& workspace, const std::string& terms) {
  workspace.document().set_filter(terms);
  if (!workspace.document().table().error.empty()) refuse(workspace.document().table().error);
}

void sort(Workspace& workspace, const std::string& argument) {
  std::string_view name = argument;
  const bool up = ascending(name);
  if (lower_case(name) == "size") name = "bytes";  // as the column is titled
  const std::size_t column = position(name, kSortColumnNames, "column");
  workspace.document().set_sort(static_cast<SortColumn>(column), up);
}

void find(Workspace& workspace, const std::string& text) {
  Document& document = workspace.document();
  const std::string& panel = workspace.settings.panel;
  if (panel == "tensors")
    document.set_filter(text);
  else if (panel == "metadata")
    document.metadata.search = text;
  else if (panel == "operators")
    document.operator_search = text;
  else
    refuse(fmt::format("the panel '{}' has no search box", panel));
}

// Actions on the content of the files.

void look_at(Workspace& workspace, const std::string& key) {
  const auto& entries = model_of(workspace).graph->metadata;
  const auto found = std::ranges::find_if(entries, [&](const MetaEntry& entry) { return entry.key == key; });
  if (found == entries.end()) refuse(fmt::format("no metadata '{}'", key));
  workspace.document().metadata.look_at(static_cast<std::size_t>(found - entries.begin()));
}

void show_element(Workspace& workspace, const std::string& text) {
  array_of(workspace);
  workspace.document().metadata.wants_element = parse_number<std::uint64_t>(text, 0, UINT64_MAX);
}

void search(Workspace& workspace, const std::string& text) { array_of(workspace).search(text); }
void diagnose(Workspace& workspace, const std::string&) { workspace.document().diagnose(); }

// The forward pass.

void show_operator(Workspace& workspace, const std::string& text) {
  model_of(workspace);
  if (!has_operators(workspace)) refuse("no operators are known of this model");
  Document& document = workspace.document();
  document.operator_shown =
      parse_number<std::size_t>(text, 0, document.forward.value()->forward()->ops.size() - 1);
}

void show_operators(Workspace& workspace, const std::string& view) {
  constexpr std::array<std::string_view, 2> kViews = {"modules", "list"};
  workspace.settings.operators_as_list = position(view, kViews, "view") == 1;
}

void fold_operators(Workspace& workspace, const std::string& word) {
  workspace.settings.fold_operators = on_or_off(word);
}

// Actions of the comparison, and of the order of the load.

void show_comparison(Workspace& workspace, const std::string& view) {
  workspace.settings.compare_view = static_cast<CompareView>(position(view, kCompareViewNames, "view"));
}

void sort_comparison(Workspace& workspace, const std::string& argument) {
  std::string_view name = argument;
  const bool up = ascending(name);
  workspace.settings.compare_sort = {find_row_sort(name), up};
}

void overlay(Workspace& workspace, const std::string& id) {
  auto& picked = workspace.document().overlaid;
  const std::string known(find_method(id).id);
  if (picked.erase(known) == 0) picked.insert(known);
}

OrderList listed_order(const Workspace& workspace) {
  if (!has_order(workspace)) refuse("no order is listed: methods-view order lists it");
  return *workspace.document().order.value();
}

void move_item(Workspace& workspace, const std::string& argument) {
  const auto words = two_words(argument, "FROM TO");
  OrderList list = listed_order(workspace);
  const auto item = [&](std::string_view word) {
    return parse_number<std::size_t>(word, 1, list.items().size()) - 1;
  };
  list.move(item(words[0]), item(words[1]));
  workspace.document().arrange_order(std::move(list));
}

void unfold_item(Workspace& workspace, const std::string& text) {
  const Model& model = model_of(workspace);
  OrderList list = listed_order(workspace);
  list.unfold(*model.graph, parse_number<std::size_t>(text, 1, list.items().size()) - 1);
  workspace.document().arrange_order(std::move(list));
}

void load_order(Workspace& workspace, const std::string& path) { workspace.document().load_order(path); }
void save_order(Workspace& workspace, const std::string& path) { workspace.document().save_order(path); }
void save_chart(Workspace& workspace, const std::string& path) { workspace.document().save_chart(path); }

// Actions of the arena panel: its source, its options and its view.

ArenaWork& arena_of(Workspace& workspace) { return *workspace.document().arena; }

void choose_arena(Workspace& workspace, const std::string& id) {
  const std::size_t source = position(id, kArenaSourceIds, "arena");
  arena_of(workspace).choose(static_cast<ArenaSource>(source), arena_model(workspace.document()));
}

void set_arena_time(Workspace& workspace, const std::string& text) {
  arena_of(workspace).options.seconds = parse_number<double>(text, 0, 600);
}

void set_arena_threads(Workspace& workspace, const std::string& text) {
  arena_of(workspace).options.threads = parse_number<unsigned>(text, 1, 64);
}

void set_arena_capacity(Workspace& workspace, const std::string& size) {
  arena_of(workspace).options.capacity =
      size == "none" ? std::nullopt : std::optional(parse_size(size, "capacity"));
}

void play_arena(Workspace& workspace, const std::string& word) {
  arena_of(workspace).view.playing = on_or_off(word);
}

void show_arena_view(Workspace& workspace, const std::string& view) {
  constexpr std::array<std::string_view, 2> kViews = {"packing", "steps"};
  arena_of(workspace).view.steps = position(view, kViews, "view") == 1;
}

// Steps are known once the panel was drawn.
void set_arena_step(Workspace& workspace, const std::string& text) {
  const auto steps = arena_of(workspace).steps();
  if (!steps) refuse("no steps are shown: arena-view steps shows them");
  arena_of(workspace).view.playing = false;
  arena_of(workspace).view.step =
      text == "end" ? steps->length() : parse_number<std::size_t>(text, 0, steps->length());
}

void set_arena_rule(Workspace& workspace, const std::string& id) {
  std::vector<std::string_view> ids;
  for (const GreedyRule& rule : greedy_rules()) ids.push_back(rule.id);
  arena_of(workspace).view.rule = position(id, ids, "greedy order");
}

void set_arena_number(Workspace& workspace, const std::string& text) {
  const std::uint32_t arenas = arena_of(workspace).scene() ? arena_of(workspace).scene()->of->arenas : 1;
  arena_of(workspace).view.arena = parse_number<std::uint32_t>(text, 0, arenas - 1);
}

void zoom_arena(Workspace& workspace, const std::string& text) {
  constexpr double kLeast = 0.99e-4;  // what the wheel goes down to, before rounding
  std::array<double, 4> shares = {0, 1, 0, 1};
  std::vector<std::string_view> words;
  if (!text.empty()) words = split(text, ' ');
  const auto fail = [&] { refuse(fmt::format("'{}' is not TIME0 TIME1 [LOW HIGH]", text)); };
  if (words.size() % 2 != 0 || words.size() > shares.size()) fail();
  for (std::size_t i = 0; i < words.size(); ++i) shares[i] = parse_number<double>(words[i], 0, 1);
  if (shares[1] - shares[0] < kLeast || shares[3] - shares[2] < kLeast) fail();
  arena_of(workspace).view.time = {shares[0], shares[1]};
  arena_of(workspace).view.height = {shares[2], shares[3]};
}

// Lessons.

bool plays_lesson(const Workspace& workspace) { return workspace.lesson.plays(); }
LessonPlay& lesson_of(Workspace& workspace) {
  if (!plays_lesson(workspace)) refuse("no lesson is played: lesson ID plays one");
  return workspace.lesson;
}

void play_lesson(Workspace& workspace, const std::string& id) { workspace.play_lesson(id); }
void leave_lesson(Workspace& workspace, const std::string&) { workspace.leave_lesson(); }

void go_to_step(Workspace& workspace, const std::string& word) {
  const LessonPlay& play = lesson_of(workspace);
  const std::size_t now = play.at(), last = play.count() - 1;
  if (word.empty() || word == "next") return workspace.go_to_step(std::min(now + 1, last));
  if (word == "back") return workspace.go_to_step(now - std::min<std::size_t>(now, 1));
  workspace.go_to_step(parse_number<std::size_t>(word, 1, play.count()) - 1);
}

void answer_lesson(Workspace& workspace, const std::string& given) {
  LessonPlay& play = lesson_of(workspace);
  if (given.empty()) return play.reveal();
  play.answer(given);
}

bool can_answer(const Workspace& workspace) {
  return plays_lesson(workspace) && workspace.lesson.step().ask.has_value();
}
bool can_run_step(const Workspace& workspace) {
  return plays_lesson(workspace) && workspace.lesson.step().run && !workspace.lesson.runs();
}
void run_step(Workspace& workspace, const std::string&) { lesson_of(workspace).run(); }
void show_scene(Workspace& workspace, const std::string&) {
  lesson_of(workspace).now().looked = true;
  workspace.show_lesson_scene();
}

void present(Workspace& workspace, const std::string& word) {
  LessonPlay& play = lesson_of(workspace);
  play.presents = word.empty() ? !play.presents : on_or_off(word);
}

// Actions that move bytes: conversion and upload.

void choose_device(Workspace& workspace, const std::string& id) { workspace.choose_device(id); }
void upload(Workspace& workspace, const std::string&) { workspace.upload(); }
void stop_upload(Workspace& workspace, const std::string&) { workspace.uploading.cancel(); }
void verify_upload(Workspace& workspace, const std::string& word) {
  workspace.settings.verify_upload = on_or_off(word);
}

void convert(Workspace& workspace, const std::string& argument) {
  workspace.convert(convert_words(argument));
}

void compare_converted(Workspace& workspace, const std::string&) { workspace.check_conversion(); }
void open_converted(Workspace& workspace, const std::string&) { workspace.open(workspace.converted()->out); }

constexpr Argument kNone = Argument::none;
constexpr Argument kOptional = Argument::optional;
constexpr Argument kRequired = Argument::required;

constexpr auto kActions = std::to_array<Action>({
    {"open", "Open a path", "", kRequired, always, open},
    {"browse", "Open a model", "Ctrl+O", kOptional, always, browse},
    {"demo", "Open the demo model", "", kNone, always, demo},
    {"close", "Close the model", "Ctrl+W", kNone, always, close},
    {"favourite", "Keep the model on the start page, or drop it", "", kNone, has_model, favourite},
    {"reload", "Read the model again from its files", "F5", kNone, has_model, reload},
    {"next-model", "Show the next model", "Ctrl+Tab", kNone, has_several, show_beside<true>},
    {"previous-model", "Show the previous model", "Ctrl+Shift+Tab", kNone, has_several, show_beside<false>},
    {"tab", "Show one of the open models", "", kRequired, has_several, show_tab},
    {"diff", "Compare with another open model", "Ctrl+D", kOptional, has_several, diff<false>},
    {"diff-values", "Compare values with another open model", "", kOptional, has_several, diff<true>},
    {"end-diff", "Compare with no model", "", kNone, has_diff, end_diff},
    {"export", "Write what is seen to a .png, .svg or .csv file", "Ctrl+E", kOptional, always, export_view},
    {"export-play", "Write the play of the load to a .gif file or a series of .png files", "", kRequired,
     has_model, export_play},
    {"quit", "Quit", "Ctrl+Q", kNone, always, quit},
    {"open-request", "Open a saved request", "", kRequired, always, open_request},
    {"save-request", "Save what is asked as a request", "", kRequired, always, save_request},
    {"mend", "Do what the newest message offers", "", kNone, has_remedy, mend},
    {"dismiss", "Take the newest message away", "", kNone, has_notice, dismiss},
    {"panel", "Show a panel", "", kRequired, always, show_panel},
    {"palette", "Run anything by its name", "Ctrl+P", kNone, always, show_palette},
    {"keys", "Show all keys", "?", kNone, always, show_keys},
    {"manual", "Show the manual", "F1", kOptional, always, show_manual},
    {"theme", "Switch between dark and light", "Ctrl+T", kOptional, always, set_theme},

    {"larger", "Make everything larger", "Ctrl+=", kNone, always, larger},
    {"smaller", "Make everything smaller", "Ctrl+-", kNone, always, smaller},
    {"usual-size", "Make everything as large as the monitor says", "Ctrl+0", kNone, always, usual_size},

    {"tree", "Show or hide the tree", "Ctrl+B", kOptional, always, show_part<&Layout::show_tree>},
    {"inspector", "Show or hide the inspector", "Ctrl+I", kOptional, always,
     show_part<&Layout::show_inspector>},
    {"timeline", "Show or hide the timeline", "Ctrl+J", kOptional, always, show_part<&Layout::show_timeline>},
    {"advice", "Say what would make it fit", "F2", kNone, has_model, show_advice},
    {"apply-advice", "Take over a change of the advice", "", kRequired, has_model, apply_advice},
    {"take-back", "Take the change back", "", kNone, can_take_back, take_back},
    {"time", "Move the time cursor", "", kRequired, has_model, set_time},
    {"play", "Play the load, or stop", "Space", kOptional, has_model, play},
    {"beside", "Play another method in step", "", kRequired, has_model, play_beside},
    {"speed", "Set the speed of the play", "", kRequired, has_model, set_speed},
    {"slower", "Play slower", "J", kNone, has_model, slower},
    {"faster", "Play faster", "L", kNone, has_model, faster},
    {"step-back", "Move the time cursor back", ",", kNone, has_model, move_time<false>},
    {"step-on", "Move the time cursor on", ".", kNone, has_model, move_time<true>},

    {"select", "Select a tensor", "", kRequired, has_model, select},
    {"select-module", "Select a module", "", kRequired, has_model, select_module},
    {"copy", "Copy what is selected", "Ctrl+Shift+C", kOptional, has_model, copy},
    {"back", "Select what was selected before", "Alt+Left", kNone, has_model, go_back},
    {"forward", "Select what was selected after it", "Alt+Right", kNone, has_model, go_forward},
    {"keep", "Keep the tensor to compare others with it, or let it go", "", kNone, has_tensor, keep},
    {"deselect", "Select nothing", "Escape", kNone, has_model, deselect},
    {"zoom", "Show a module in the map", "", kOptional, has_model, zoom},
    {"zoom-out", "Show the module around it in the map", "Backspace", kNone, has_model, zoom_out},
    {"color", "Colour the map", "", kRequired, always, set_color},
    {"find-tensor", "Filter the tensors", "Ctrl+F", kNone, has_model, edit_filter},
    {"filter", "Show the tensors that pass a filter", "", kOptional, always, filter},
    {"sort", "Sort the tensors", "", kRequired, always, sort},
    {"find", "Search in the panel shown", "", kOptional, always, find},

    {"metadata", "Show an entry of the metadata", "", kRequired, has_model, look_at},
    {"element", "Show an element of the array", "", kRequired, has_array, show_element},
    {"search", "Search the array", "", kRequired, has_array, search},
    {"doctor", "Look into the files", "", kNone, can_diagnose, diagnose},

    {"operator", "Show an operator", "", kRequired, has_operators, show_operator},
    {"operators", "List operators, or modules", "", kRequired, always, show_operators},
    {"fold", "Show modules that are alike as one", "", kRequired, always, fold_operators},
    {"first-token", "Go on to the first token", "", kRequired, always, set_switch<&Asked::first_token>},

    {"every-order", "Compare the methods in every order", "", kRequired, always,
     set_switch<&Asked::every_order>},
    {"methods-view", "Show the methods another way", "", kRequired, always, show_comparison},
    {"methods-sort", "Sort the methods", "", kRequired, always, sort_comparison},
    {"overlay", "Show or hide the curve of a method", "", kRequired, always, overlay},
    {"move-item", "Move a row of the order", "", kRequired, has_order, move_item},
    {"unfold-item", "Unfold a row of the order", "", kRequired, has_order, unfold_item},
    {"load-order", "Read the order from a file", "", kRequired, has_model, load_order},
    {"save-order", "Write the order to a file", "", kRequired, has_model, save_order},
    {"save-chart", "Write the comparison to a file", "", kRequired, has_comparison, save_chart},

    {"arena", "Choose what the arena packs", "", kRequired, always, choose_arena},
    {"arena-time", "Limit the time that packing takes", "", kRequired, always, set_arena_time},
    {"arena-threads", "Pack with several threads", "", kRequired, always, set_arena_threads},
    {"arena-capacity", "Limit the size of the arena", "", kRequired, always, set_arena_capacity},
    {"arena-number", "Show one of several arenas", "", kRequired, always, set_arena_number},
    {"arena-zoom", "Zoom into the arena", "", kOptional, always, zoom_arena},
    {"arena-view", "Show the packing, or its steps", "", kRequired, always, show_arena_view},
    {"arena-rule", "Choose the greedy order beside the search", "", kRequired, always, set_arena_rule},
    {"arena-step", "Show a step of the packing", "", kRequired, has_steps, set_arena_step},
    {"arena-play", "Play the steps of the packing", "", kRequired, has_steps, play_arena},

    {"lesson", "Play a lesson", "", kRequired, always, play_lesson},
    {"lesson-step", "Go to a step of the lesson", "", kOptional, plays_lesson, go_to_step},
    {"lesson-answer", "Answer the question of the lesson, or show the answer", "", kOptional, can_answer,
     answer_lesson},
    {"lesson-run", "Run the step of the lesson on this machine", "", kNone, can_run_step, run_step},
    {"lesson-view", "Go back to the view of the lesson", "", kNone, plays_lesson, show_scene},
    {"lesson-leave", "Leave the lesson", "", kNone, plays_lesson, leave_lesson},
    {"present", "Present the lesson: one view, large", "F8", kOptional, plays_lesson, present},

    {"device", "Choose the device to upload to", "", kRequired, always, choose_device},
    {"verify", "Compare an upload with the files", "", kRequired, always, verify_upload},
    {"upload", "Upload to the device", "", kNone, can_upload, upload},
    {"stop-upload", "Stop the upload", "", kNone, is_uploading, stop_upload},
    {"convert", "Convert to another format", "", kRequired, can_convert, convert},
    {"compare-converted", "Compare what was converted with its source", "", kNone, can_compare_files,
     compare_converted},
    {"open-converted", "Open what was converted", "", kNone, has_converted, open_converted},
});

}  // namespace

std::span<const Action> actions() { return kActions; }

const Action* find_action(std::string_view id) {
  const auto found = std::ranges::find_if(kActions, [&](const Action& action) { return action.id == id; });
  return found == kActions.end() ? nullptr : &*found;
}

void run_action(Workspace& workspace, std::string_view id) {
  const Action* action = find_action(id);
  assert(action != nullptr);
  workspace.attempt([&] { action->run(workspace, ""); });
}

}  // namespace loadline::gui
