// The table of actions, one function each; actions_arena.cpp has those of the arena panel.
#include "app/gui/actions.h"

#include "app/gui/actions_arena.h"
#include "app/gui/panel.h"
#include "app/gui/script_words.h"
#include "app/report/manual.h"

#include <algorithm>
#include <array>
#include <cassert>
#include <utility>

#include <fmt/format.h>

namespace loadline::gui {
namespace {

// Whether an action makes sense now.

bool always(const Workspace&) { return true; }

bool has_model(const Workspace& workspace) { return workspace.document().model != nullptr; }

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

bool can_upload(const Workspace& workspace) {
  const Document& document = workspace.document();
  return document.projection.value() && !document.projection.busy() && !workspace.uploading.busy();
}

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

void set_switch(Workspace& workspace, bool Asked::*member, const std::string& word) {
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
  return std::any_of(all.begin(), all.end(), [](const Notice& notice) { return notice.remedy.has_value(); });
}

// What the newest message with a remedy offers.
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

void show_manual(Workspace& workspace, const std::string& topic) {
  const std::string_view wanted = topic.empty() ? find_panel(workspace.settings.panel).manual : topic;
  workspace.manual = report::find_manual_page(wanted).id;
}
void demo(Workspace& workspace, const std::string&) { workspace.open_demo(); }
void close(Workspace& workspace, const std::string&) { workspace.close_model(); }
void quit(Workspace& workspace, const std::string&) { workspace.wants_quit = true; }

void browse(Workspace& workspace, const std::string& folder) {
  if (!folder.empty()) workspace.browse(folder);
  workspace.wants_browser = true;
}

void show_panel(Workspace& workspace, const std::string& id) { workspace.settings.panel = find_panel(id).id; }

void set_theme(Workspace& workspace, const std::string& name) {
  if (!name.empty() && name != "dark" && name != "light")
    refuse(fmt::format("no theme '{}'; there are: dark, light", name));
  bool& dark = workspace.settings.dark;
  dark = name.empty() ? !dark : name == "dark";
}

// Tensors and modules.

void select(Workspace& workspace, const std::string& name) {
  const auto& tensors = model_of(workspace).graph->tensors;
  const auto found =
      std::find_if(tensors.begin(), tensors.end(), [&](const Tensor& t) { return t.name == name; });
  if (found == tensors.end()) refuse(fmt::format("no tensor '{}'", name));
  workspace.document().select(TensorId{static_cast<std::uint32_t>(found - tensors.begin())});
}

void deselect(Workspace& workspace, const std::string&) { workspace.document().select(std::nullopt); }

void zoom(Workspace& workspace, const std::string& path) {
  const ModuleTree& tree = model_of(workspace).tree;
  for (std::uint32_t i = 0; i < tree.nodes.size(); ++i)
    if (module_path(tree, NodeId{i}) == path) return workspace.document().zoom(NodeId{i});
  refuse(fmt::format("no module '{}'", path));
}

void zoom_out(Workspace& workspace, const std::string&) {
  Document& document = workspace.document();
  document.zoom(model_of(workspace).tree.node(document.zoomed()).parent);
}

void set_color(Workspace& workspace, const std::string& mode) {
  workspace.settings.color_by = static_cast<ColorBy>(position(
      mode, kColorModes, [](std::size_t i) { return color_by_name(static_cast<ColorBy>(i)); }, "colouring"));
}

void find_tensor(Workspace& workspace, const std::string&) { workspace.settings.panel = "tensors"; }

void filter(Workspace& workspace, const std::string& terms) {
  workspace.document().set_filter(terms);
  if (!workspace.document().table().error.empty()) refuse(workspace.document().table().error);
}

void sort(Workspace& workspace, const std::string& argument) {
  std::string_view name = argument;
  const bool up = ascending(name);
  const std::size_t column = position(
      name, kSortColumns, [](std::size_t i) { return sort_column_name(static_cast<SortColumn>(i)); },
      "column");
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

// What the files hold.

void look_at(Workspace& workspace, const std::string& key) {
  const auto& entries = model_of(workspace).graph->metadata;
  const auto found =
      std::find_if(entries.begin(), entries.end(), [&](const MetaEntry& entry) { return entry.key == key; });
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
  if (view != "modules" && view != "list")
    refuse(fmt::format("no view '{}'; there are: modules, list", view));
  workspace.settings.operators_as_list = view == "list";
}

void fold_operators(Workspace& workspace, const std::string& word) {
  workspace.settings.fold_operators = on_or_off(word);
}

void add_first_token(Workspace& workspace, const std::string& word) {
  set_switch(workspace, &Asked::first_token, word);
}

// The methods beside each other, and the order of the load.

void compare_every_order(Workspace& workspace, const std::string& word) {
  set_switch(workspace, &Asked::every_order, word);
}

void show_comparison(Workspace& workspace, const std::string& view) {
  workspace.settings.compare_view = static_cast<CompareView>(position(
      view, kCompareViews, [](std::size_t i) { return compare_view_name(static_cast<CompareView>(i)); },
      "view"));
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
  const std::string_view view = argument;
  const std::size_t space = view.find(' ');
  if (space == std::string_view::npos) refuse(fmt::format("'{}' is not FROM TO", argument));
  OrderList list = listed_order(workspace);
  const std::size_t from = parse_number<std::size_t>(view.substr(0, space), 1, list.items().size());
  const std::size_t to = parse_number<std::size_t>(view.substr(space + 1), 1, list.items().size());
  list.move(from - 1, to - 1);
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

// Bytes that move.

void choose_device(Workspace& workspace, const std::string& id) { workspace.choose_device(id); }
void upload(Workspace& workspace, const std::string&) { workspace.upload(); }

void convert(Workspace& workspace, const std::string& argument) {
  const std::size_t space = argument.find(' ');
  if (space == std::string::npos) refuse("needs an exporter and a file");
  ConvertTask task;
  task.request.to = argument.substr(0, space);
  task.request.write.overwrite = true;
  task.request.write.verify = true;
  task.out = argument.substr(space + 1);
  workspace.convert(task);
}

constexpr Argument kNone = Argument::none;
constexpr Argument kOptional = Argument::optional;
constexpr Argument kRequired = Argument::required;

constexpr auto kActions = std::to_array<Action>({
    {"open", "Open a path", "", kRequired, always, open},
    {"browse", "Open a model", "Ctrl+O", kOptional, always, browse},
    {"demo", "Open the demo model", "", kNone, always, demo},
    {"close", "Close the model", "Ctrl+W", kNone, always, close},
    {"quit", "Quit", "Ctrl+Q", kNone, always, quit},
    {"open-request", "Open a saved request", "", kRequired, always, open_request},
    {"save-request", "Save what is asked as a request", "", kRequired, always, save_request},
    {"mend", "Do what the newest message offers", "", kNone, has_remedy, mend},
    {"panel", "Show a panel", "", kRequired, always, show_panel},
    {"manual", "Show the manual", "F1", kOptional, always, show_manual},
    {"theme", "Switch between dark and light", "Ctrl+T", kOptional, always, set_theme},

    {"select", "Select a tensor", "", kRequired, has_model, select},
    {"deselect", "Select nothing", "Escape", kNone, has_model, deselect},
    {"zoom", "Show a module in the map", "", kOptional, has_model, zoom},
    {"zoom-out", "Show the module around it in the map", "Backspace", kNone, has_model, zoom_out},
    {"color", "Colour the map", "", kRequired, always, set_color},
    {"find-tensor", "Find a tensor", "Ctrl+F", kNone, always, find_tensor},
    {"filter", "Filter the tensors", "", kOptional, always, filter},
    {"sort", "Sort the tensors", "", kRequired, always, sort},
    {"find", "Search in the panel shown", "", kOptional, always, find},

    {"metadata", "Show an entry of the metadata", "", kRequired, has_model, look_at},
    {"element", "Show an element of the array", "", kRequired, has_array, show_element},
    {"search", "Search the array", "", kRequired, has_array, search},
    {"doctor", "Look into the files", "", kNone, can_diagnose, diagnose},

    {"operator", "Show an operator", "", kRequired, has_operators, show_operator},
    {"operators", "List operators, or modules", "", kRequired, always, show_operators},
    {"fold", "Show modules that are alike as one", "", kRequired, always, fold_operators},
    {"first-token", "Go on to the first token", "", kRequired, always, add_first_token},

    {"every-order", "Compare the methods in every order", "", kRequired, always, compare_every_order},
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

    {"device", "Choose the device to upload to", "", kRequired, always, choose_device},
    {"upload", "Upload to the device", "", kNone, can_upload, upload},
    {"convert", "Convert to another format", "", kRequired, can_convert, convert},
});

}  // namespace

std::span<const Action> actions() { return kActions; }

const Action* find_action(std::string_view id) {
  const auto found =
      std::find_if(kActions.begin(), kActions.end(), [&](const Action& action) { return action.id == id; });
  return found == kActions.end() ? nullptr : &*found;
}

void run_action(Workspace& workspace, std::string_view id) {
  const Action* action = find_action(id);
  assert(action != nullptr);
  workspace.attempt([&] { action->run(workspace, ""); });
}

}  // namespace loadline::gui
