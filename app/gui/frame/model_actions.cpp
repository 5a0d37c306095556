// The rows of the table of actions for the content of files, forward passes, comparisons, orders, arenas,
// lessons and transfers.
#include "app/gui/frame/actions.h"
#include "app/gui/panels/forward/forward.h"
#include "app/gui/state/load/arena.h"
#include "app/lesson/lesson.h"
#include "core/base/text.h"
#include "core/view/operator_graph.h"

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include <fmt/core.h>

namespace loadline::gui {
namespace {

// --- Whether an action makes sense now.

bool has_array(const Workspace& workspace) { return workspace.document().metadata.array() != nullptr; }

bool has_operators(const Workspace& workspace) {
  const auto& scene = workspace.document().forward.scene.value();
  return scene && scene->forward() != nullptr;
}

bool has_order(const Workspace& workspace) {
  return !workspace.document().order.list.value()->items().empty();
}

bool has_steps(const Workspace& workspace) { return workspace.document().arena->steps() != nullptr; }

bool can_diagnose(const Workspace& workspace) {
  return has_model(workspace) && !workspace.document().checks.findings.busy();
}

bool can_convert(const Workspace& workspace) {
  return has_model(workspace) && !workspace.transfers.conversion.busy();
}

bool has_converted(const Workspace& workspace) {
  return workspace.transfers.converted(workspace.document()) != nullptr &&
         !workspace.transfers.conversion.busy();
}
bool can_compare_files(const Workspace& workspace) {
  return has_converted(workspace) && !workspace.transfers.checking.busy();
}

bool can_upload(const Workspace& workspace) {
  const Document& document = workspace.document();
  return document.load.projection.value() && !document.load.projection.busy() &&
         !workspace.transfers.uploading.busy();
}

bool is_uploading(const Workspace& workspace) { return workspace.transfers.uploading.busy(); }

// --- What arguments mean.

ArrayView& array_of(Workspace& workspace) {
  if (!has_array(workspace)) refuse("no array is shown");
  return *workspace.document().metadata.array();
}

template <bool Asked::*member>
void set_switch(Workspace& workspace, const std::string& word) {
  Asked asked = workspace.document().load.asked();
  asked.*member = on_or_off(word);
  workspace.document().load.ask(asked);
}

// --- The content of the files.

void look_at(Workspace& workspace, const std::string& key) {
  const auto& entries = model_of(workspace).graph->metadata;
  const auto found =
      std::ranges::find_if(entries, [&](const graph::MetaEntry& entry) { return entry.key == key; });
  if (found == entries.end()) refuse(fmt::format("no metadata '{}'", key));
  workspace.document().metadata.look_at(static_cast<std::size_t>(found - entries.begin()));
}

void show_element(Workspace& workspace, const std::string& text) {
  array_of(workspace);
  workspace.document().metadata.wants_element = parse_number<std::uint64_t>(text, 0, UINT64_MAX);
}

void search(Workspace& workspace, const std::string& text) { array_of(workspace).search(text); }
void diagnose(Workspace& workspace, const std::string&) { workspace.document().checks.diagnose(); }

// --- The values of the tensor that the panel Values shows.

bool has_values(const Workspace& workspace) {
  const ValuesView& values = workspace.document().values;
  return values.shown() && values.picture.value() && !values.picture.value()->cells.mean.empty();
}

// "ROW ROWS COLUMN COLUMNS"; all of them without an argument.
void zoom_values(Workspace& workspace, const std::string& text) {
  if (!has_values(workspace)) refuse("no values are shown");
  ValuesView& values = workspace.document().values;
  inspect::CellRange range = values.picture.value()->cells.range;
  if (!text.empty()) {
    const std::vector<std::string_view> words = split(text, ' ');
    if (words.size() != 4) refuse(fmt::format("'{}' is not ROW ROWS COLUMN COLUMNS", text));
    const auto side = [&](std::size_t at, std::uint64_t whole, std::uint64_t& first, std::uint64_t& count) {
      first = parse_number<std::uint64_t>(words[at], 0, whole - 1);
      count = parse_number<std::uint64_t>(words[at + 1], 1, whole - first);
    };
    side(0, range.rows, range.row, range.rows);
    side(2, range.columns, range.column, range.columns);
  }
  values.zoom(range);
}

// --- The forward pass.

void show_operator(Workspace& workspace, const std::string& text) {
  model_of(workspace);
  if (!has_operators(workspace)) refuse("the operators of this model are unknown");
  Document& document = workspace.document();
  document.forward.shown = parse_number<std::size_t>(text, 0, document.forward.graph()->ops.size() - 1);
}

void show_operators(Workspace& workspace, const std::string& view) {
  constexpr std::array<std::string_view, 2> kViews = {"modules", "list"};
  workspace.settings.operators_as_list = position(view, kViews, "view") == 1;
}

// Where " >" ends the name of the operator that is gone into; npos for a path that goes into none. Names may
// have that in them, too.
std::size_t end_of_holder(const graph::ForwardGraph& forward, const std::string& path) {
  constexpr std::string_view kInside = " >";
  if (view::operator_called(forward, path)) return std::string::npos;
  std::size_t last = std::string::npos;
  for (std::size_t at = path.rfind(kInside); at != std::string::npos;
       at = at == 0 ? std::string::npos : path.rfind(kInside, at - 1)) {
    if (at + kInside.size() < path.size() && path[at + kInside.size()] != ' ') continue;
    if (view::operator_called(forward, path.substr(0, at))) return at;
    if (last == std::string::npos) last = at;
  }
  return last;
}

// "" or "." for the model; else the name of a module with operators, as the head of the graph spells it, or
// of an operator, which is then selected. "NAME > MODULE" is a module inside of what an operator holds, and
// "NAME >" all of that.
void show_graph(Workspace& workspace, const std::string& path) {
  model_of(workspace);
  if (!has_operators(workspace)) refuse("the operators of this model are unknown");
  Document& document = workspace.document();
  const ForwardScene& scene = *document.forward.scene.value();
  const std::size_t inside = end_of_holder(*scene.drawn(), path);
  const bool goes_in = inside != std::string::npos;
  if (!goes_in) {
    if (const auto module = view::module_called(scene.drawn_tree(), path == "." ? "" : path)) {
      document.forward.inside.clear();
      document.forward.module = *module;
      workspace.settings.panel = "graph";
      return;
    }
  }
  const std::string name = goes_in ? path.substr(0, inside) : path;
  const auto place = view::operator_called(*scene.drawn(), name);
  if (!place) refuse(fmt::format("no module with operators and no operator '{}'", safe_display(name, 100)));
  if (!goes_in) {
    document.select(document.operator_at(*place));
    workspace.settings.panel = "graph";
    return;
  }
  if (graph::op_at(*scene.drawn(), *place).bodies.empty())
    refuse(fmt::format("operator '{}' holds no others", safe_display(name, 100)));
  std::vector<graph::OpPlace> level = operators_around(scene, *place);
  level.push_back(*place);
  const std::string wanted = path.substr(std::min(path.size(), inside + 3));
  const auto module =
      wanted.empty()
          ? std::optional(graph::kRootOpNode)
          : view::module_called(graph_level(document.forward.scene.value(), level)->tree(), wanted);
  if (!module)
    refuse(
        fmt::format("no module '{}' in operator '{}'", safe_display(wanted, 100), safe_display(name, 100)));
  document.forward.inside = std::move(level);
  document.forward.module = *module;
  workspace.settings.panel = "graph";
}

void fold_operators(Workspace& workspace, const std::string& word) {
  workspace.settings.fold_operators = on_or_off(word);
}

// --- The comparison, and the order of the load.

void show_comparison(Workspace& workspace, const std::string& view) {
  workspace.settings.compare_view = static_cast<CompareView>(position(view, kCompareViewNames, "view"));
}

void sort_comparison(Workspace& workspace, const std::string& argument) {
  std::string_view name = argument;
  const bool up = ascending(name);
  workspace.settings.compare_sort = {load::find_row_sort(name), up};
}

void overlay(Workspace& workspace, const std::string& id) {
  auto& picked = workspace.document().overlaid;
  const std::string known(load::find_method(id).id);
  if (picked.erase(known) == 0) picked.insert(known);
}

OrderList listed_order(const Workspace& workspace) {
  if (!has_order(workspace)) refuse("no order is listed: methods-view order lists it");
  return *workspace.document().order.list.value();
}

void move_item(Workspace& workspace, const std::string& argument) {
  const auto words = two_words(argument, "FROM TO");
  OrderList list = listed_order(workspace);
  const auto item = [&](std::string_view word) {
    return parse_number<std::size_t>(word, 1, list.items().size()) - 1;
  };
  list.move(item(words[0]), item(words[1]));
  workspace.document().order.arrange(std::move(list));
}

void unfold_item(Workspace& workspace, const std::string& text) {
  const Model& model = model_of(workspace);
  OrderList list = listed_order(workspace);
  list.unfold(*model.graph, parse_number<std::size_t>(text, 1, list.items().size()) - 1);
  workspace.document().order.arrange(std::move(list));
}

// A tensor, or the tensors of a module, before all others, which keep the order in which they are read now.
void load_first(Workspace& workspace, const std::string& name) {
  Document& document = workspace.document();
  const graph::MetaGraph& graph = *model_of(workspace).graph;
  if (!document.load.projection.value()) refuse("no load is projected");
  load::StorageOrder order;
  std::vector<bool> listed(graph.storages.size(), false);
  const auto list = [&](graph::StorageId storage) {
    if (!listed[graph::index(storage)]) order.push_back(storage);
    listed[graph::index(storage)] = true;
  };
  for (const graph::Tensor& tensor : graph.tensors)
    if (const std::string_view own = tensor.name; own == name || own.starts_with(name + "."))
      list(tensor.storage);
  if (order.empty()) refuse(fmt::format("no tensor or module '{}'", safe_display(name, 60)));
  for (const plan::Step& step : document.load.projection.value()->plan.steps)
    if (const auto* const storage = std::get_if<graph::StorageId>(&step.from);
        step.verb == plan::Verb::copy && storage != nullptr)
      list(*storage);
  for (std::uint32_t i = 0; i < graph.storages.size(); ++i) list(graph::StorageId{i});
  document.load.choose_order(std::make_shared<const load::StorageOrder>(std::move(order)));
}

// "METHOD" in the present order, or "METHOD ORDER".
void use_load(Workspace& workspace, const std::string& words) {
  Document& document = workspace.document();
  const std::size_t space = std::min(words.find(' '), words.size());
  Asked asked = document.load.asked();
  asked.request.methods = {std::string(load::find_method(words.substr(0, space)).id)};
  if (space < words.size()) asked.request.orders = {words.substr(space + 1)};
  document.load.ask(asked);
  document.select(LoadOf{asked.request.methods.front(), shown_order(asked)});
}

// Of the Nth finding.
void fix_finding(Workspace& workspace, const std::string& number) {
  const auto& findings = workspace.document().checks.findings.value();
  if (!findings || findings->empty()) refuse("there are no findings: doctor looks for them");
  const std::size_t at = parse_number<std::size_t>(number, 1, findings->size()) - 1;
  if ((*findings)[at].settings.empty()) refuse("this finding has no fix");
  const std::vector<Remedy> settings = (*findings)[at].settings;  // the findings may go
  workspace.mend(settings);
}

void load_order(Workspace& workspace, const std::string& path) { workspace.document().order.read(path); }
void save_order(Workspace& workspace, const std::string& path) { workspace.document().order.save(path); }
void save_chart(Workspace& workspace, const std::string& path) { workspace.document().load.save_chart(path); }

// --- The arena panel: its source, its options and its view.

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
  for (const packing::GreedyRule& rule : packing::greedy_rules()) ids.push_back(rule.id);
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

// --- Lessons.

bool plays_lesson(const Workspace& workspace) { return workspace.lesson.plays(); }
LessonPlay& lesson_of(Workspace& workspace) {
  if (!plays_lesson(workspace)) refuse("no lesson is played: lesson ID plays one");
  return workspace.lesson;
}

void play_lesson(Workspace& workspace, const std::string& id) { workspace.stage.play(id); }
void leave_lesson(Workspace& workspace, const std::string&) { workspace.stage.leave(); }

void go_to_step(Workspace& workspace, const std::string& word) {
  LessonPlay& play = lesson_of(workspace);
  const std::size_t now = play.at(), last = play.count() - 1;
  const bool on = word.empty() || word == "next";
  if (on && now == last) return play.finish();
  if (on) return workspace.stage.go_to(now + 1);
  if (word == "back") return workspace.stage.go_to(now - std::min<std::size_t>(now, 1));
  workspace.stage.go_to(parse_number<std::size_t>(word, 1, play.count()) - 1);
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
  workspace.stage.show_scene();
}

void present(Workspace& workspace, const std::string& word) {
  LessonPlay& play = lesson_of(workspace);
  play.presents = word.empty() ? !play.presents : on_or_off(word);
}

// --- What moves bytes: conversion and upload.

void choose_device(Workspace& workspace, const std::string& id) { workspace.choose_device(id); }
void upload(Workspace& workspace, const std::string&) { workspace.transfers.upload(workspace.document()); }
void stop_upload(Workspace& workspace, const std::string&) { workspace.transfers.uploading.cancel(); }
void verify_upload(Workspace& workspace, const std::string& word) {
  workspace.transfers.verify = on_or_off(word);
}

void convert(Workspace& workspace, const std::string& argument) {
  workspace.transfers.convert(workspace.document(), convert_words(argument));
}

void compare_converted(Workspace& workspace, const std::string&) {
  workspace.transfers.check_conversion(workspace.document());
}
void open_converted(Workspace& workspace, const std::string&) {
  workspace.open(workspace.transfers.converted(workspace.document())->out);
}

// --- The table.

constexpr Argument kNone = Argument::none;
constexpr Argument kOptional = Argument::optional;
constexpr Argument kRequired = Argument::required;

constexpr auto kModelActions = std::to_array<Action>({
    {"metadata", "Show an entry of the metadata", "", kRequired, has_model, look_at},
    {"element", "Show an element of the array", "", kRequired, has_array, show_element},
    {"search", "Search the array", "", kRequired, has_array, search},
    {"doctor", "Check files", "", kNone, can_diagnose, diagnose},
    {"values-zoom", "Zoom into the values", "", kOptional, has_values, zoom_values},
    {"fix", "Apply the fix of a finding", "", kRequired, has_model, fix_finding},

    {"operator", "Show an operator", "", kRequired, has_operators, show_operator},
    {"operators", "List operators, or modules", "", kRequired, always, show_operators},
    {"graph", "Show the operators of a module as a graph", "", kOptional, has_operators, show_graph},
    {"fold", "Merge identical modules", "", kRequired, always, fold_operators},
    {"first-token", "Include forward pass", "", kRequired, always, set_switch<&Asked::first_token>},

    {"every-order", "Compare the methods in every order", "", kRequired, always,
     set_switch<&Asked::every_order>},
    {"methods-view", "Change the view of the methods", "", kRequired, always, show_comparison},
    {"methods-sort", "Sort the methods", "", kRequired, always, sort_comparison},
    {"overlay", "Show or hide the curve of a method", "", kRequired, always, overlay},
    {"move-item", "Move a row of the order", "", kRequired, has_order, move_item},
    {"unfold-item", "Unfold a row of the order", "", kRequired, has_order, unfold_item},
    {"load-first", "Load a tensor or a module first", "", kRequired, has_model, load_first},
    {"use-load", "Use a method, and an order", "", kRequired, has_model, use_load},
    {"load-order", "Read the order from a file", "", kRequired, has_model, load_order},
    {"save-order", "Write the order to a file", "", kRequired, has_model, save_order},
    {"save-chart", "Write the comparison to a file", "", kRequired, has_model, save_chart},

    {"arena", "Choose arena source", "", kRequired, always, choose_arena},
    {"arena-time", "Limit the time that packing takes", "", kRequired, always, set_arena_time},
    {"arena-threads", "Pack with several threads", "", kRequired, always, set_arena_threads},
    {"arena-capacity", "Limit the size of the arena", "", kRequired, always, set_arena_capacity},
    {"arena-number", "Show one of several arenas", "", kRequired, always, set_arena_number},
    {"arena-zoom", "Zoom into the arena", "", kOptional, always, zoom_arena},
    {"arena-view", "Show the packing, or its steps", "", kRequired, always, show_arena_view},
    {"arena-rule", "Choose greedy rule", "", kRequired, always, set_arena_rule},
    {"arena-step", "Show a step of the packing", "", kRequired, has_steps, set_arena_step},
    {"arena-play", "Play the steps of the packing", "", kRequired, has_steps, play_arena},

    {"lesson", "Play a lesson", "", kRequired, always, play_lesson},
    {"lesson-step", "Go to a step of the lesson", "", kOptional, plays_lesson, go_to_step},
    {"lesson-answer", "Answer the question of the lesson, or show the answer", "", kOptional, can_answer,
     answer_lesson},
    {"lesson-run", "Run the step of the lesson on this machine", "", kNone, can_run_step, run_step},
    {"lesson-view", "Reset lesson view", "", kNone, plays_lesson, show_scene},
    {"lesson-leave", "Leave the lesson", "", kNone, plays_lesson, leave_lesson},
    {"present", "Present the lesson: one view, large", "F8", kOptional, plays_lesson, present},

    {"device", "Choose the device to upload to", "", kRequired, always, choose_device},
    {"verify", "Compare an upload with the files", "", kRequired, always, verify_upload},
    {"upload", "Upload to the device", "", kNone, can_upload, upload},
    {"stop-upload", "Stop the upload", "", kNone, is_uploading, stop_upload},
    {"convert", "Convert to another format", "", kRequired, can_convert, convert},
    {"compare-converted", "Compare converted file with its source", "", kNone, can_compare_files,
     compare_converted},
    {"open-converted", "Open converted file", "", kNone, has_converted, open_converted},
});

}  // namespace

std::span<const Action> model_actions() { return kModelActions; }

}  // namespace loadline::gui
