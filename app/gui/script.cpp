// A table of commands, one function each.
#include "app/gui/script.h"

#include "app/gui/script_arena.h"
#include "app/gui/script_words.h"
#include "core/base/error.h"
#include "core/base/text.h"
#include "core/load/storage_cast.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>

namespace loadline::gui {
namespace {

const Model& model_of(GuiApp& app) {
  if (!app.workspace().document().model) refuse("no model is open");
  return *app.workspace().document().model;
}

void wait(GuiApp& app, const std::string&) { app.settle(); }

void open(GuiApp& app, const std::string& path) { app.workspace().open(path); }

void set_size(GuiApp& app, const std::string& text) {
  const std::size_t by = text.find('x');
  if (by == std::string::npos) refuse(fmt::format("'{}' is not WIDTHxHEIGHT", text));
  const std::string_view view = text;
  const int width = parse_number<int>(view.substr(0, by), 320, 16384);
  const int height = parse_number<int>(view.substr(by + 1), 240, 16384);
  app.window().set_size(width, height);
}

void select(GuiApp& app, const std::string& name) {
  const auto& tensors = model_of(app).graph->tensors;
  const auto found =
      std::find_if(tensors.begin(), tensors.end(), [&](const Tensor& t) { return t.name == name; });
  if (found == tensors.end()) refuse(fmt::format("no tensor '{}'", name));
  app.workspace().document().select(TensorId{static_cast<std::uint32_t>(found - tensors.begin())});
}

void zoom(GuiApp& app, const std::string& path) {
  const ModuleTree& tree = model_of(app).tree;
  for (std::uint32_t i = 0; i < tree.nodes.size(); ++i)
    if (module_path(tree, NodeId{i}) == path) return app.workspace().document().zoom(NodeId{i});
  refuse(fmt::format("no module '{}'", path));
}

void sort(GuiApp& app, const std::string& argument) {
  const std::size_t space = argument.find(' ');
  const std::string_view order =
      space == std::string::npos ? std::string_view() : std::string_view(argument).substr(space + 1);
  if (!order.empty() && order != "descending") refuse(fmt::format("'{}' is not descending", order));
  const std::size_t column = position(
      std::string_view(argument).substr(0, space), kSortColumns,
      [](std::size_t i) { return sort_column_name(static_cast<SortColumn>(i)); }, "column");
  app.workspace().document().set_sort(static_cast<SortColumn>(column), order.empty());
}

void filter(GuiApp& app, const std::string& terms) {
  app.workspace().document().set_filter(terms);
  if (!app.workspace().document().table().error.empty()) refuse(app.workspace().document().table().error);
}

void find(GuiApp& app, const std::string& text) {
  Workspace& workspace = app.workspace();
  if (workspace.settings.panel == "tensors")
    workspace.document().set_filter(text);
  else if (workspace.settings.panel == "metadata")
    workspace.document().metadata.search = text;
  else if (workspace.settings.panel == "operators")
    workspace.document().operator_search = text;
  else
    refuse(fmt::format("the panel '{}' has no search box", workspace.settings.panel));
}

void look_at(GuiApp& app, const std::string& key) {
  const auto& entries = model_of(app).graph->metadata;
  const auto found =
      std::find_if(entries.begin(), entries.end(), [&](const MetaEntry& entry) { return entry.key == key; });
  if (found == entries.end()) refuse(fmt::format("no metadata '{}'", key));
  app.workspace().document().metadata.look_at(static_cast<std::size_t>(found - entries.begin()));
}

ArrayView& array_of(GuiApp& app) {
  if (!app.workspace().document().metadata.array()) refuse("no array is looked at");
  return *app.workspace().document().metadata.array();
}

void show_operator(GuiApp& app, const std::string& text) {
  model_of(app);
  const auto& scene = app.workspace().document().forward.value();
  if (!scene || scene->forward() == nullptr) refuse("no operators are known of this model");
  app.workspace().document().operator_shown =
      parse_number<std::size_t>(text, 0, scene->forward()->ops.size() - 1);
}

void show_operators(GuiApp& app, const std::string& view) {
  if (view != "modules" && view != "list")
    refuse(fmt::format("no view '{}'; there are: modules, list", view));
  app.workspace().settings.operators_as_list = view == "list";
}

template <typename Change>
void change_plan(GuiApp& app, Change change) {
  PlanChoice choice = app.workspace().document().choice();
  change(choice);
  app.workspace().document().set_plan(choice);
}

// DEVICE[,HOST] or none.
void set_memory_map(GuiApp& app, const std::string& text) {
  change_plan(app, [&](PlanChoice& choice) {
    choice = without_placement(choice);
    if (text != "none") choice.memory_map = parse_memory_map(text, "max-memory");
  });
}

template <typename Change>
void change_forward(GuiApp& app, Change change) {
  ForwardChoice choice = app.workspace().document().forward_choice();
  change(choice);
  app.workspace().document().set_forward(choice);
}

void set_memory(GuiApp& app, const std::string& kind) {
  app.workspace().document().set_plan(with_memory(app.workspace().document().choice(), memory_kind(kind)));
}

void set_preset(GuiApp& app, const std::string& id) {
  const std::vector<DevicePreset>& presets = app.workspace().shared.presets;
  PlanChoice choice = app.workspace().document().choice();
  if (id == "none")
    choice.preset.clear(), choice.budget = {};
  else
    choice =
        on_device(choice, presets[position(
                              id, presets.size(), [&](std::size_t i) { return presets[i].id; }, "device")]);
  app.workspace().document().set_plan(choice);
}

void show_comparison(GuiApp& app, const std::string& view) {
  app.workspace().settings.compare_view = static_cast<CompareView>(position(
      view, kCompareViews, [](std::size_t i) { return compare_view_name(static_cast<CompareView>(i)); },
      "view"));
}

void sort_comparison(GuiApp& app, const std::string& argument) {
  const std::size_t space = argument.find(' ');
  const std::string_view order =
      space == std::string::npos ? std::string_view() : std::string_view(argument).substr(space + 1);
  if (!order.empty() && order != "descending") refuse(fmt::format("'{}' is not descending", order));
  const std::size_t column = position(
      std::string_view(argument).substr(0, space), kCompareColumns,
      [](std::size_t i) { return compare_column_name(static_cast<CompareColumn>(i)); }, "column");
  app.workspace().settings.compare_sort = {static_cast<CompareColumn>(column), order.empty()};
}

void overlay(GuiApp& app, const std::string& id) {
  auto& picked = app.workspace().document().overlaid;
  const std::string known(find_method(id).id);
  if (picked.erase(known) == 0) picked.insert(known);
}

void move_item(GuiApp& app, const std::string& argument) {
  const std::size_t space = argument.find(' ');
  if (space == std::string::npos) refuse(fmt::format("'{}' is not FROM TO", argument));
  OrderList list = *app.workspace().document().order.value();
  if (list.items().empty()) refuse("no order is listed: methods-view order lists it");
  const std::string_view view = argument;
  const std::size_t from = parse_number<std::size_t>(view.substr(0, space), 1, list.items().size());
  const std::size_t to = parse_number<std::size_t>(view.substr(space + 1), 1, list.items().size());
  list.move(from - 1, to - 1);
  app.workspace().document().arrange_order(std::move(list));
}

void unfold_item(GuiApp& app, const std::string& text) {
  const Model& model = model_of(app);
  OrderList list = *app.workspace().document().order.value();
  if (list.items().empty()) refuse("no order is listed: methods-view order lists it");
  list.unfold(*model.graph, parse_number<std::size_t>(text, 1, list.items().size()) - 1);
  app.workspace().document().arrange_order(std::move(list));
}

void set_color(GuiApp& app, const std::string& mode) {
  app.workspace().settings.color_by = static_cast<ColorBy>(position(
      mode, kColorModes, [](std::size_t i) { return color_by_name(static_cast<ColorBy>(i)); }, "colouring"));
}

void set_theme(GuiApp& app, const std::string& name) {
  if (name != "dark" && name != "light") refuse(fmt::format("no theme '{}'; there are: dark, light", name));
  app.workspace().settings.dark = name == "dark";
}

void convert(GuiApp& app, const std::string& argument) {
  const std::size_t space = argument.find(' ');
  if (space == std::string::npos) refuse("needs an exporter and a file");
  ConvertRequest request;
  request.exporter = argument.substr(0, space);
  request.out = argument.substr(space + 1);
  request.overwrite = true;
  app.workspace().convert(request);
}

void browse(GuiApp& app, const std::string& folder) {
  if (!folder.empty()) app.workspace().browse(folder);
  app.workspace().wants_browser = true;
}

void screenshot(GuiApp& app, const std::string& file) {
  app.draw_settled();
  app.window().save_png(file);
}

void expect_notice(GuiApp& app, const std::string& words) {
  const auto& notices = app.workspace().shared.notices.all();
  const bool found = std::any_of(notices.begin(), notices.end(), [&](const Notice& notice) {
    return notice.text.find(words) != std::string::npos;
  });
  if (!found) refuse(fmt::format("no notice says '{}'", words));
}

void press(GuiApp& app, const std::string& argument, int times) {
  const std::size_t space = argument.find(' ');
  if (space == std::string::npos) refuse(fmt::format("'{}' is not X Y", argument));
  const std::string_view view = argument;
  const auto x = static_cast<float>(parse_number<int>(view.substr(0, space), 0, 16384));
  const auto y = static_cast<float>(parse_number<int>(view.substr(space + 1), 0, 16384));
  app.window().set_mouse(x, y, false);
  app.frame();  // what lies under the mouse is known a frame later
  app.frame();
  for (int i = 0; i < times; ++i) {
    app.window().set_mouse(x, y, true);
    app.frame();
    app.window().set_mouse(x, y, false);
    app.frame();
  }
}

enum class Needs { nothing, argument, optional };

struct Command {
  std::string_view name;
  Needs needs;
  void (*play)(GuiApp& app, const std::string& argument);
};

constexpr std::array<Command, 73> kCommands = {{
    {"open", Needs::argument, open},
    {"demo", Needs::nothing, [](GuiApp& app, const std::string&) { app.workspace().open_demo(); }},
    {"close", Needs::nothing, [](GuiApp& app, const std::string&) { app.workspace().close_model(); }},
    {"wait", Needs::nothing, wait},
    {"panel", Needs::argument,
     [](GuiApp& app, const std::string& id) { app.workspace().settings.panel = find_panel(id).id; }},
    {"theme", Needs::argument, set_theme},
    {"size", Needs::argument, set_size},
    {"scale", Needs::argument,
     [](GuiApp& app, const std::string& text) {
       app.window().set_scale(parse_number<float>(text, 0.5f, 4));
     }},
    {"select", Needs::argument, select},
    {"deselect", Needs::nothing, [](GuiApp& app, const std::string&) { app.workspace().document().select(std::nullopt); }},
    {"zoom", Needs::optional, zoom},
    {"color", Needs::argument, set_color},
    {"filter", Needs::optional, filter},
    {"find", Needs::optional, find},
    {"metadata", Needs::argument, look_at},
    {"element", Needs::argument,
     [](GuiApp& app, const std::string& text) {
       array_of(app);
       app.workspace().document().metadata.wants_element = parse_number<std::uint64_t>(text, 0, UINT64_MAX);
     }},
    {"search", Needs::argument, [](GuiApp& app, const std::string& text) { array_of(app).search(text); }},
    {"operator", Needs::argument, show_operator},
    {"operators", Needs::argument, show_operators},
    {"fold", Needs::argument,
     [](GuiApp& app, const std::string& word) { app.workspace().settings.fold_operators = on_or_off(word); }},
    {"batch", Needs::argument,
     [](GuiApp& app, const std::string& text) {
       change_forward(app, [&](ForwardChoice& c) { c.batch = parse_number<std::uint64_t>(text, 1, kMostBatch); });
     }},
    {"seq", Needs::argument,
     [](GuiApp& app, const std::string& text) {
       change_forward(
           app, [&](ForwardChoice& c) { c.sequence = parse_number<std::uint64_t>(text, 1, kMostSequence); });
     }},
    {"past", Needs::argument,
     [](GuiApp& app, const std::string& text) {
       change_forward(app, [&](ForwardChoice& c) { c.past = parse_number<std::uint64_t>(text, 0, kMostPast); });
     }},
    {"profile", Needs::argument,
     [](GuiApp& app, const std::string& id) {
       change_forward(app, [&](ForwardChoice& c) { c.options.profile = id; });
     }},
    {"first-token", Needs::argument,
     [](GuiApp& app, const std::string& word) {
       change_plan(app, [&](PlanChoice& c) { c.first_token = on_or_off(word); });
     }},
    {"doctor", Needs::nothing, [](GuiApp& app, const std::string&) { app.workspace().document().diagnose(); }},
    {"sort", Needs::argument, sort},
    {"method", Needs::argument,
     [](GuiApp& app, const std::string& id) { change_plan(app, [&](PlanChoice& c) { c.method = id; }); }},
    {"order", Needs::argument,
     [](GuiApp& app, const std::string& id) { change_plan(app, [&](PlanChoice& c) { c.order = id; }); }},
    {"ring", Needs::argument,
     [](GuiApp& app, const std::string& size) {
       change_plan(app, [&](PlanChoice& c) { c.options.staging_bytes = parse_size(size, "ring"); });
     }},
    {"slots", Needs::argument,
     [](GuiApp& app, const std::string& text) {
       change_plan(app, [&](PlanChoice& c) { c.options.slots = parse_number<std::uint32_t>(text, 1, 1024); });
     }},
    {"activations", Needs::argument,
     [](GuiApp& app, const std::string& size) {
       change_plan(app, [&](PlanChoice& c) { c.options.activation_bytes = parse_size(size, "activations"); });
     }},
    {"every-order", Needs::argument,
     [](GuiApp& app, const std::string& word) {
       change_plan(app, [&](PlanChoice& c) { c.every_order = on_or_off(word); });
     }},
    {"memory", Needs::argument, set_memory},
    {"preset", Needs::argument, set_preset},
    {"device-budget", Needs::argument,
     [](GuiApp& app, const std::string& size) {
       change_plan(app, [&](PlanChoice& c) {
         (c.memory == MemoryKind::unified ? c.budget.unified : c.budget.device) = size_or_none(size, "budget");
       });
     }},
    {"host-budget", Needs::argument,
     [](GuiApp& app, const std::string& size) {
       if (app.workspace().document().choice().memory == MemoryKind::unified) refuse("unified memory has one budget");
       change_plan(app, [&](PlanChoice& c) { c.budget.host = size_or_none(size, "budget"); });
     }},
    {"allocator", Needs::argument,
     [](GuiApp& app, const std::string& id) {
       change_plan(app, [&](PlanChoice& c) { c.options.allocator = load_allocator(id); });
     }},
    {"cast", Needs::argument,
     [](GuiApp& app, const std::string& name) {
       change_plan(app, [&](PlanChoice& c) {
         c.options.cast = name == "none" ? std::nullopt : std::optional(find_cast(name));
       });
     }},
    {"shards", Needs::argument,
     [](GuiApp& app, const std::string& size) {
       change_plan(app, [&](PlanChoice& c) { c.options.shard_bytes = size_or_none(size, "shards").value_or(0); });
     }},
    {"flush", Needs::argument,
     [](GuiApp& app, const std::string& size) {
       change_plan(app, [&](PlanChoice& c) { c.options.flush_bytes = size_or_none(size, "flush").value_or(0); });
     }},
    {"limit", Needs::argument,
     [](GuiApp& app, const std::string& size) {
       change_plan(app, [&](PlanChoice& c) { c.options.memory_limit = parse_size(size, "limit"); });
     }},
    {"gpu-layers", Needs::argument,
     [](GuiApp& app, const std::string& text) {
       change_plan(app, [&](PlanChoice& c) {
         c = without_placement(c);
         if (text != "all") c.gpu_layers = parse_number<std::uint64_t>(text, 0, 1'000'000);
       });
     }},
    {"max-memory", Needs::argument, set_memory_map},
    {"place", Needs::argument,
     [](GuiApp& app, const std::string& text) {
       change_plan(app, [&](PlanChoice& c) {
         c = without_placement(c);
         if (text != "none") c.place = parse_place_text(text);
       });
     }},
    {"methods-view", Needs::argument, show_comparison},
    {"methods-sort", Needs::argument, sort_comparison},
    {"overlay", Needs::argument, overlay},
    {"move-item", Needs::argument, move_item},
    {"unfold-item", Needs::argument, unfold_item},
    {"load-order", Needs::argument, [](GuiApp& app, const std::string& path) { app.workspace().document().load_order(path); }},
    {"save-order", Needs::argument, [](GuiApp& app, const std::string& path) { app.workspace().document().save_order(path); }},
    {"save-chart", Needs::argument, [](GuiApp& app, const std::string& path) { app.workspace().document().save_chart(path); }},
    {"arena", Needs::argument, choose_arena},
    {"arena-time", Needs::argument, set_arena_time},
    {"arena-threads", Needs::argument, set_arena_threads},
    {"arena-capacity", Needs::argument, set_arena_capacity},
    {"arena-number", Needs::argument, set_arena_number},
    {"arena-zoom", Needs::optional, zoom_arena},
    {"arena-view", Needs::argument, show_arena_view},
    {"arena-rule", Needs::argument, set_arena_rule},
    {"arena-step", Needs::argument, set_arena_step},
    {"arena-play", Needs::argument, play_arena},
    {"device", Needs::argument, [](GuiApp& app, const std::string& id) { app.workspace().choose_device(id); }},
    {"upload", Needs::nothing, [](GuiApp& app, const std::string&) { app.workspace().upload(); }},
    {"convert", Needs::argument, convert},
    {"browse", Needs::optional, browse},
    {"mouse", Needs::argument, [](GuiApp& app, const std::string& at) { press(app, at, 0); }},
    {"click", Needs::argument, [](GuiApp& app, const std::string& at) { press(app, at, 1); }},
    {"double-click", Needs::argument, [](GuiApp& app, const std::string& at) { press(app, at, 2); }},
    {"screenshot", Needs::argument, screenshot},
    {"frames", Needs::argument,
     [](GuiApp& app, const std::string& text) {
       for (int left = parse_number<int>(text, 1, 10000); left > 0; --left) {
         app.check_open();
         app.frame();
       }
     }},
    {"expect-notice", Needs::argument, expect_notice},
}};

const Command* find_command(std::string_view name) {
  const auto found = std::find_if(kCommands.begin(), kCommands.end(),
                                  [&](const Command& command) { return command.name == name; });
  return found == kCommands.end() ? nullptr : &*found;
}

Error at_line(const std::string& file, int line, const Error& error) {
  return Error(error.code(), {.file = file}, fmt::format("line {}: {}", line, error.what()));
}

std::string_view trimmed(std::string_view text) {
  const auto blank = [](char c) { return c == ' ' || c == '\t' || c == '\r'; };
  while (!text.empty() && blank(text.front())) text.remove_prefix(1);
  while (!text.empty() && blank(text.back())) text.remove_suffix(1);
  return text;
}

}  // namespace

std::vector<std::string_view> script_commands() {
  std::vector<std::string_view> names;
  for (const Command& command : kCommands) names.push_back(command.name);
  return names;
}

std::vector<ScriptLine> parse_script(std::string_view text, const std::string& file) {
  std::vector<ScriptLine> lines;
  for (int number = 1; !text.empty(); ++number) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = trimmed(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
    if (line.empty() || line.front() == '#') continue;
    const std::size_t space = std::min(line.find(' '), line.size());
    ScriptLine parsed{number, std::string(line.substr(0, space)), std::string(trimmed(line.substr(space)))};
    const auto fail = [&](std::string_view detail) {
      throw at_line(file, number, Error(ErrorCode::usage, detail));
    };
    const Command* command = find_command(parsed.command);
    if (command == nullptr && parsed.command != "quit")
      fail(fmt::format("unknown command '{}'; loadline gui --help lists them", parsed.command));
    const Needs needs = command == nullptr ? Needs::nothing : command->needs;
    if (needs == Needs::argument && parsed.argument.empty())
      fail(fmt::format("{} needs an argument", parsed.command));
    if (needs == Needs::nothing && !parsed.argument.empty())
      fail(fmt::format("{} takes no argument", parsed.command));
    lines.push_back(std::move(parsed));
  }
  return lines;
}

bool play_script(GuiApp& app, const std::vector<ScriptLine>& lines, const std::string& file) {
  for (const ScriptLine& line : lines) {
    if (line.command == "quit") return true;
    try {
      app.check_open();
      find_command(line.command)->play(app, line.argument);
      app.frame();
    } catch (const Error& error) {
      throw at_line(file, line.number, error);
    }
  }
  return false;
}

}  // namespace loadline::gui
