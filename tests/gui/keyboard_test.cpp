// Keys, actions, the palette, and the queue of input.

#include "app/gui/frame/actions.h"
#include "app/gui/frame/facts.h"
#include "app/gui/frame/gui_app.h"
#include "app/gui/frame/overlays.h"
#include "app/gui/panels/forward/forward.h"
#include "app/gui/panels/panels.h"
#include "app/gui/window/input.h"
#include "app/report/manual.h"
#include "core/base/error.h"
#include "core/forward/gguf/type_policy.h"
#include "core/view/operator_graph.h"
#include "tests/gui/harness.h"
#include "tests/gui/sample_graphs.h"
#include "tests/support/builders.h"

#include <algorithm>
#include <set>
#include <string>

#include <gtest/gtest.h>
#include <imgui.h>
#include <imgui_internal.h>

namespace loadline::gui {

// --- The keyboard alone: parts of the window in turn, lists by their arrows, the filter's hits, what Escape
// closes, what the palette says of arguments.

namespace {

constexpr int kEscape = 256, kEnter = 257, kTab = 258, kBackspace = 259, kRight = 262, kLeft = 263,
              kDown = 264, kUp = 265, kHome = 268, kEnd = 269;

std::string refusal_of(const char* words) {
  return loadline::testing::facts_of([&] { convert_words(words); });
}

class Keyboard : public ::testing::Test {
 protected:
  Keyboard() {
    workspace_.show(llama_70b_graph(), "");
    app_.settle();
    app_.draw_settled();
  }
  void press(int key, bool shift = false) {
    ImGuiIO& io = ImGui::GetIO();
    io.KeyShift = shift;
    io.KeysDown[key] = true;
    app_.frame();
    io.KeyShift = false;
    io.KeysDown[key] = false;
    for (int i = 0; i < 6; ++i) app_.frame();  // where a part holds parts, the focus goes inwards
  }
  void type(std::string_view text) {
    for (const char letter : text) ImGui::GetIO().AddInputCharacter(static_cast<unsigned char>(letter));
    for (int i = 0; i < 3; ++i) app_.frame();
  }
  void click(ImVec2 at) {
    for (const bool down : {false, true, false}) {
      window_->set_mouse(at.x, at.y, down);
      for (int i = 0; i < 3; ++i) app_.frame();
    }
  }
  static bool has_drop_down() { return !ImGui::GetCurrentContext()->OpenPopupStack.empty(); }
  // The ImGui window that has the keyboard: its own name, without its parents'.
  static std::string focused() {
    const ImGuiWindow* window = ImGui::GetCurrentContext()->NavWindow;
    const std::string name = window == nullptr ? "" : window->Name;
    const std::size_t slash = name.rfind('/');
    const std::string own = slash == std::string::npos ? name : name.substr(slash + 1);
    return own.substr(0, own.rfind('_'));
  }
  // Presses Tab until a part has the keyboard.
  bool go_to(std::string_view part) {
    for (int i = 0; i < 20 && focused() != part; ++i) press(kTab);
    return focused() == part;
  }
  Document& document() { return workspace_.document(); }

  const std::unique_ptr<Window> window_ = open_null_window({});
  GuiApp app_{*window_, ""};
  Workspace& workspace_ = app_.workspace();
};

TEST_F(Keyboard, tab_goes_round_every_part_and_back) {
  std::vector<std::string> there, back;
  press(kTab);
  const std::string first = focused();
  do {
    there.push_back(focused());
    press(kTab);
  } while (focused() != first && there.size() < 30);
  ASSERT_LT(there.size(), 30u);
  for (const std::string part : {"shell", "tree", "lines", "main", "panel", "timeline"})
    EXPECT_EQ(std::ranges::count(there, part), 1) << part;
  do {
    back.push_back(focused());
    press(kTab, true);
  } while (focused() != first && back.size() < 30);
  EXPECT_EQ(std::set(back.begin(), back.end()), std::set(there.begin(), there.end()));
}

TEST_F(Keyboard, arrows_walk_fold_and_unfold_the_tree) {
  ASSERT_TRUE(go_to("lines"));
  press(kHome);
  ASSERT_TRUE(document().selected_tensor() || std::holds_alternative<graph::NodeId>(document().selected()));
  const auto path = [&] {
    if (const auto* const module = std::get_if<graph::NodeId>(&document().selected()))
      return graph::module_path(document().model->tree, *module);
    return document().model->tensor(*document().selected_tensor()).name.str();
  };
  for (int i = 0; i < 30 && path() != "model.layers"; ++i) press(kDown);
  ASSERT_EQ(path(), "model.layers");
  press(kRight);  // unfolds
  EXPECT_EQ(path(), "model.layers");
  press(kRight);  // goes in
  EXPECT_EQ(path(), "model.layers.0");
  press(kDown);
  EXPECT_EQ(path(), "model.layers.1");
  press(kLeft);  // it is folded: out
  EXPECT_EQ(path(), "model.layers");
  press(kLeft);  // folds
  press(kDown);
  EXPECT_NE(path(), "model.layers.0") << "what is folded is passed by";
  press(kEnd);
  const std::string last = path();
  press(kDown);
  EXPECT_EQ(path(), last);
  press(kUp);
  EXPECT_NE(path(), last);
}

TEST_F(Keyboard, arrows_choose_tensors_and_methods_in_their_tables) {
  workspace_.settings.panel = "tensors";
  app_.draw_settled();
  ASSERT_TRUE(go_to("rows") || go_to("tensors")) << focused();
  press(kDown);
  ASSERT_TRUE(document().selected_tensor());
  EXPECT_EQ(*document().selected_tensor(), document().table.view().rows.front());
  press(kDown);
  EXPECT_EQ(*document().selected_tensor(), document().table.view().rows[1]);
  press(kEnter);
  EXPECT_EQ(workspace_.settings.panel, "values");
  workspace_.settings.panel = "methods";
  app_.settle();
  app_.draw_settled();
  ASSERT_TRUE(go_to("comparison")) << focused();
  press(kHome);
  const auto first = document().load.asked().request.methods;
  press(kDown);
  EXPECT_NE(document().load.asked().request.methods, first);
  app_.settle();
  press(kEnter);
  EXPECT_EQ(workspace_.settings.panel, "load");
}

TEST_F(Keyboard, the_menu_of_the_selection_opens_and_is_walked_and_closes) {
  constexpr int kF10 = 299, kMenu = 348;
  const auto is_open = [] { return !drawn_at("Copy as Markdown").empty(); };
  document().select(graph::TensorId{3});
  press(kF10);
  EXPECT_FALSE(is_open());
  press(kF10, true);
  EXPECT_TRUE(is_open());
  press(kEscape);
  EXPECT_FALSE(is_open());
  EXPECT_EQ(document().selected_tensor(), graph::TensorId{3});
  press(kMenu);
  ASSERT_TRUE(is_open());
  const std::string before = workspace_.settings.panel;
  press(kDown);
  press(kEnter);
  EXPECT_FALSE(is_open());
  EXPECT_NE(workspace_.settings.panel, before) << "its first rows show the tensor elsewhere";
  EXPECT_EQ(document().selected_tensor(), graph::TensorId{3});
}

TEST_F(Keyboard, arrows_walk_over_the_tensors_of_the_files) {
  workspace_.settings.panel = "bytes";
  app_.settle();
  app_.draw_settled();
  ASSERT_TRUE(go_to("strips")) << focused();
  press(kHome);
  ASSERT_EQ(document().selected_tensor(), graph::TensorId{0});
  press(kDown);
  EXPECT_EQ(document().selected_tensor(), graph::TensorId{1});
  press(kEnter);
  EXPECT_EQ(workspace_.settings.panel, "values");
}

TEST_F(Keyboard, a_filtered_tree_lists_and_folds_what_passes) {
  document().table.set_filter("layer:7");
  app_.draw_settled();
  ASSERT_TRUE(go_to("lines"));
  press(kHome);
  press(kLeft);  // folds everything
  press(kDown);
  const auto lines = [&] { return drawn_at("self_attn").size(); };
  const std::size_t folded = lines();
  press(kHome);
  press(kRight);
  EXPECT_EQ(lines(), folded + 1);
  document().table.set_filter("layer:8");
  app_.draw_settled();
  EXPECT_EQ(lines(), folded + 1) << "another filter unfolds its hits";
}

TEST_F(Keyboard, the_filter_leads_to_its_hits_and_keeps_its_words) {
  run_action(workspace_, "find-tensor");
  app_.draw_settled();
  type("layer:7 q_proj");
  ASSERT_EQ(document().table.view().rows.size(), 1u);
  press(kEnter);
  ASSERT_TRUE(document().selected_tensor());
  EXPECT_EQ(*document().selected_tensor(), document().table.view().rows.front());
  press(kEscape);
  EXPECT_EQ(document().table.view().filter, "layer:7 q_proj") << "Escape leaves the field, not its words";
  EXPECT_FALSE(ImGui::GetIO().WantTextInput);
  document().table.set_filter("k_proj");
  run_action(workspace_, "find-tensor");
  app_.draw_settled();
  press(kEnter);
  EXPECT_EQ(*document().selected_tensor(), document().table.view().rows[0]);
  press(kEnter);
  EXPECT_EQ(*document().selected_tensor(), document().table.view().rows[1]);
  press(kEnter, true);
  EXPECT_EQ(*document().selected_tensor(), document().table.view().rows[0]);
  press(kDown);
  EXPECT_EQ(focused(), "lines") << "and down into the tree";
}

TEST_F(Keyboard, a_button_is_pressed_by_enter_and_space_plays) {
  ASSERT_TRUE(go_to("main"));
  press(kRight);
  press(kEnter);
  EXPECT_EQ(workspace_.settings.panel, "load");
  press(' ');
  EXPECT_TRUE(document().time.playing());
  press(' ');
  EXPECT_FALSE(document().time.playing());
  EXPECT_EQ(workspace_.settings.panel, "load");
}

TEST_F(Keyboard, the_graph_is_walked_entered_and_left) {
  workspace_.show(preset_graph("gpt2"), "");
  app_.settle();
  find_action("graph")->run(workspace_, "h");
  app_.draw_settled();
  const auto module = [&] {
    return graph::op_path(document().forward.scene.value()->tree, document().forward.module);
  };
  ASSERT_TRUE(go_to("graph")) << focused();
  press(kDown);  // to the first box, which is a layer
  press(kDown);
  press(kEnter);
  EXPECT_EQ(module(), "h.1");
  press(kDown);
  const auto* const op = std::get_if<OperatorAt>(&document().selected());
  ASSERT_NE(op, nullptr) << "an operator is what is selected";
  const std::size_t first = op->at;
  press(kDown);
  press(kUp);
  EXPECT_EQ(document().selected(), Selected(OperatorAt{first})) << "down and up again";
  press(kBackspace);
  EXPECT_EQ(module(), "h");
  press(kEnter);
  EXPECT_EQ(module(), "h.1") << "where it came from is marked";
  press(kBackspace);
  press(kBackspace);
  EXPECT_EQ(module(), "");
  press(kBackspace);
  EXPECT_EQ(module(), "") << "there is nothing around it";
  document().select(*find_tensor(*document().model, "h.5.ln_1.weight"));
  app_.draw_settled();
  EXPECT_EQ(module(), "h.5") << "a tensor leads to the operator that reads it";
}

// A chain of operators, then an If with one operator in a branch and two in the other; a constant is added to
// what comes out.
graph::MetaGraphPtr branching_graph() {
  auto graph = std::make_shared<graph::MetaGraph>(*operator_graph(1));
  graph::ForwardGraph& forward = *graph->forward;
  const graph::ValueId given = forward.outputs.front();
  const auto value = [&](std::string name) {
    forward.values.push_back({std::move(name), graph::DType::f32, std::vector{graph::SizePoly(8)}});
    return graph::ValueId{static_cast<std::uint32_t>(forward.values.size() - 1)};
  };
  const graph::ValueId r = value("r"), s = value("s"), t = value("t"), chosen = value("chosen"),
                       one = value("one"), sum = value("sum");
  forward.bodies.push_back({{{"Relu", "relu", {given}, {}, {r}}}, {}, {r}});
  forward.bodies.push_back(
      {{{"Sigmoid", "sigmoid", {given}, {}, {s}}, {"Tanh", "tanh", {s}, {}, {t}}}, {}, {t}});
  graph::Op choose{"If", "choose", {given}, {}, {chosen}};
  choose.bodies = {0, 1};
  choose.attributes = {{".scales", std::string("[0.5, 2]")}, {"scales", {}}};
  forward.ops.push_back(choose);
  forward.ops.push_back({"Constant", "first", {}, {graph::TensorId{0}}, {one}});
  graph::Op add{"Add", "last", {chosen, one}, {}, {sum}};
  add.arguments = {{chosen, {}}, {one, {}}};
  forward.ops.push_back(add);
  forward.outputs = {sum};
  return graph;
}

TEST_F(Keyboard, the_graph_goes_into_branches_and_back) {
  workspace_.show(branching_graph(), "");
  app_.settle();
  find_action("graph")->run(workspace_, "choose");
  app_.draw_settled();
  const auto inside = [&] { return document().forward.inside.size(); };
  EXPECT_EQ(inside(), 0u);
  ASSERT_TRUE(go_to("graph")) << focused();
  press(kEnter);
  EXPECT_EQ(inside(), 1u) << "into the operator";
  EXPECT_FALSE(drawn_at("then_branch").empty() && drawn_at("Relu").empty());
  EXPECT_FALSE(drawn_at("else_branch").empty());
  EXPECT_FALSE(drawn_at("If choose").empty()) << "the path leads back";
  find_action("graph")->run(workspace_, "tanh");
  app_.draw_settled();
  EXPECT_EQ(inside(), 1u) << "an operator of a branch is found by its name";
  const Selected tanh = document().selected();
  press(kEnter);  // the branch, which has a box of its own
  press(kUp);
  EXPECT_NE(document().selected(), tanh);
  press(kDown);
  EXPECT_EQ(document().selected(), tanh);
  while (inside() > 0) press(kBackspace);
  press(kEnter);
  EXPECT_EQ(inside(), 1u) << "where it came from is marked";
}

// What is found is walked through in the order of the pass, also inside of branches; Escape leaves those.
TEST_F(Keyboard, the_graph_finds_operators) {
  workspace_.show(branching_graph(), "");
  app_.settle();
  workspace_.settings.panel = "graph";
  app_.draw_settled();
  find_action("find-tensor")->run(workspace_, "");
  app_.draw_settled();
  type("TANH");
  press(kEnter);
  EXPECT_EQ(document().forward.inside.size(), 1u);
  const Selected tanh = document().selected();
  EXPECT_EQ(facts_text(facts_of(document(), tanh), CopyForm::name), "tanh");
  press(kEnter);
  EXPECT_EQ(document().selected(), tanh) << "it is the only one";
  EXPECT_NE(drawn_text().find("1of1"), std::string::npos);
  press(kEscape);
  EXPECT_EQ(document().forward.inside.size(), 1u) << "the field is left first";
  press(kEscape);
  EXPECT_TRUE(document().forward.inside.empty());
  EXPECT_EQ(facts_text(facts_of(document(), document().selected()), CopyForm::name), "choose");
  press(kEscape);
  EXPECT_EQ(document().selected(), Selected()) << "then the selection";
  const auto found = operators_with(*document().forward.scene.value()->drawn(), "relu");
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].body, 0u);
}

// Menus of what is no selection: every row runs, whatever it is of.
TEST_F(Keyboard, every_row_of_the_menus_of_the_graph_is_an_action) {
  workspace_.show(branching_graph(), "");
  app_.settle();
  workspace_.settings.panel = "graph";
  app_.draw_settled();
  const auto scene = document().forward.scene.value();
  const auto run_all = [&](const AskedMenu& menu) {
    EXPECT_FALSE(menu.offers.empty());
    EXPECT_FALSE(menu.title.empty());
    for (const Offer& offer : menu.offers) {
      for (const Offer::Line& line : offer.lines) ASSERT_NE(find_action(line.action), nullptr) << line.action;
      EXPECT_NO_THROW(run_offer(workspace_, offer)) << offer.title;
      app_.draw_settled();
    }
  };
  const auto level = graph_level(scene, {});
  for (std::uint32_t i = 1; i < level->tree().nodes.size(); ++i)
    if (level->tree().nodes[i].all_ops > 1) run_all(menu_of_module(document(), *level, graph::OpNodeId{i}));
  const std::vector<graph::ValueId> given = {scene->drawn()->ops.back().inputs.front()};
  const AskedMenu values = menu_of_values(document(), *level, given);
  EXPECT_EQ(values.offers.at(0).title, "Go to what makes it: If choose");
  EXPECT_EQ(values.offers.at(1).title, "Go to what reads it: Add last");
  run_all(values);
  const auto inside = graph_level(scene, {*view::operator_called(*scene->drawn(), "choose")});
  for (std::uint32_t i = 1; i < inside->tree().nodes.size(); ++i)
    if (inside->tree().nodes[i].all_ops > 1) run_all(menu_of_module(document(), *inside, graph::OpNodeId{i}));
  find_action("graph")->run(workspace_, "choose > else_branch");
  app_.draw_settled();
  EXPECT_EQ(document().forward.inside.size(), 1u);
  for (const Offer& offer : offers_of(workspace_, document().operator_at(document().forward.inside[0])))
    EXPECT_NO_THROW(run_offer(workspace_, offer)) << offer.title;
}

TEST_F(Keyboard, names_with_the_sign_for_going_inside_are_found) {
  auto graph = std::make_shared<graph::MetaGraph>(*branching_graph());
  for (graph::Op& op : graph->forward->ops)
    if (op.name == "choose") op.name = "a > choose";
  workspace_.show(std::move(graph), "");
  app_.settle();
  for (const auto& [path, depth] : {std::pair("a > choose", 0u), std::pair("a > choose >", 1u),
                                    std::pair("a > choose > else_branch", 1u)}) {
    document().forward.inside.clear();
    ASSERT_NO_THROW(find_action("graph")->run(workspace_, path)) << path;
    EXPECT_EQ(document().forward.inside.size(), depth) << path;
  }
}

TEST_F(Keyboard, a_constant_is_shown_by_what_uses_it) {
  workspace_.show(branching_graph(), "");
  app_.settle();
  const auto facts = [&](const char* name) {
    find_action("graph")->run(workspace_, name);
    app_.draw_settled();
    return facts_text(facts_of(document(), document().selected()), CopyForm::text);
  };
  EXPECT_NE(facts("choose").find("scales = [0.5, 2]"), std::string::npos) << facts("choose");
  EXPECT_NE(facts("choose").find("then_branch: 1 operator"), std::string::npos);
  const std::string tensor = document().model->tensor(graph::TensorId{0}).name.str();
  EXPECT_NE(facts("last").find("1: " + tensor), std::string::npos) << facts("last");
  EXPECT_TRUE(document().exists(document().selected()));
  facts("first");
  ASSERT_TRUE(std::holds_alternative<graph::OpPlace>(document().selected())) << "it does not run";
  EXPECT_EQ(facts_text(facts_of(document(), document().selected()), CopyForm::name), "first");
}

TEST_F(Keyboard, escape_closes_every_drop_down_and_nothing_else) {
  workspace_.services.notices.add(graph::Severity::error, "one thing");
  const std::size_t messages = workspace_.services.notices.all().size();
  for (const std::string_view button : {"no target", "staged_ring", "file", "Options", "Does it fit?"}) {
    app_.draw_settled();
    ASSERT_FALSE(drawn_at(button).empty()) << button;
    click(drawn_at(button).front());
    EXPECT_TRUE(has_drop_down()) << button;
    press(kEscape);
    EXPECT_FALSE(has_drop_down()) << button;
    EXPECT_EQ(workspace_.services.notices.all().size(), messages) << button;
  }
  click(drawn_at("Load").front());
  EXPECT_EQ(workspace_.settings.panel, "load") << "the first click after it counts";
}

TEST_F(Keyboard, load_and_timeline_stand_on_one_axis) {
  workspace_.settings.panel = "load";
  TimeAxis& axis = document().axis;
  Layout& layout = workspace_.settings.layout;
  for (const ImVec2 size : {ImVec2{1280, 720}, ImVec2{1920, 1080}, ImVec2{1031, 700}})
    for (const bool parts : {true, false}) {
      window_->set_size(static_cast<int>(size.x), static_cast<int>(size.y));
      layout.show_tree = layout.show_inspector = parts;
      app_.draw_settled();
      ASSERT_TRUE(axis.panel && axis.room) << size.x;
      EXPECT_EQ(*axis.panel, *axis.room) << size.x;
      EXPECT_GT(axis.panel->right - axis.panel->left, 200) << size.x;
    }
  layout.show_timeline = false;
  app_.draw_settled();
  EXPECT_FALSE(axis.room);
  EXPECT_NE(drawn_text().find("StepsTime"), std::string::npos) << "the switch goes along";
  layout.show_timeline = true;
  workspace_.settings.panel = "map";
  app_.draw_settled();
  EXPECT_FALSE(axis.panel);
  EXPECT_GT(axis.room->right - axis.room->left, 700) << "the timeline has the room for itself";
}

TEST_F(Keyboard, lifetimes_stand_on_the_axis_of_the_load_that_the_pass_follows) {
  workspace_.settings.panel = "lifetimes";
  app_.settle();
  app_.draw_settled();
  TimeAxis& axis = document().axis;
  EXPECT_FALSE(axis.panel) << "operators are no steps of this load";
  Asked asked = document().load.asked();
  asked.first_token = true;
  document().load.ask(asked);
  app_.settle();
  app_.draw_settled();
  ASSERT_TRUE(axis.panel && axis.room);
  EXPECT_EQ(*axis.panel, *axis.room);
  EXPECT_GT(axis.range.from, 0.01) << "the pass is in sight";
  EXPECT_EQ(axis.range.to, 1);
  document().forward.shown = 9;
  app_.draw_settled();
  const std::size_t step = document().time.step();
  document().time.set_step(step + 40);
  app_.draw_settled();
  EXPECT_GT(*document().forward.shown, 9u) << "one cursor";
  document().forward.shown = 9;
  app_.draw_settled();
  EXPECT_EQ(document().time.step(), step);
}

TEST_F(Keyboard, both_zoom_together_by_keys_and_wheel) {
  workspace_.settings.panel = "load";
  app_.draw_settled();
  TimeAxis& axis = document().axis;
  EXPECT_EQ(drawn_text().find("Wholeload"), std::string::npos);
  press('=');
  const PlotRange by_key = axis.range;
  EXPECT_FALSE(by_key.is_whole());
  EXPECT_NE(drawn_text().find("Wholeload"), std::string::npos) << "the way back";
  press('0');
  EXPECT_TRUE(axis.range.is_whole());
  const float middle = (axis.panel->left + axis.panel->right) / 2;
  const auto wheel_at = [&](float y) {
    axis.range = {};
    window_->set_mouse(middle, y, false);
    app_.frame();
    ImGui::GetIO().MouseWheel = 2;
    app_.frame();
    ImGui::GetIO().MouseWheel = 0;
    app_.draw_settled();
    return axis.range;
  };
  const PlotRange over_load = wheel_at(250), over_timeline = wheel_at(620);
  EXPECT_FALSE(over_load.is_whole());
  EXPECT_NEAR(over_load.from, over_timeline.from, 1e-6) << "at the same place of the screen";
  EXPECT_NEAR(over_load.to, over_timeline.to, 1e-6);
  press('T');
  EXPECT_EQ(document().axis_unit(), view::RunAxis::seconds);
  press('0');
  press('T');
  EXPECT_EQ(document().axis_unit(), view::RunAxis::steps);
}

TEST_F(Keyboard, the_overlay_draws_the_memory_that_has_a_budget) {
  workspace_.settings.panel = "methods";
  find_action("methods-view")->run(workspace_, "overlay");
  const auto shows = [&](const char* option, const char* bytes, const char* words) {
    document().load.set_option(option, bytes);
    app_.settle();
    app_.draw_settled();
    return drawn_text().find(without_blanks(words)) != std::string::npos;
  };
  EXPECT_TRUE(shows("host_budget", "90GiB", "On the host; click to show or hide"));
  EXPECT_TRUE(shows("device_budget", "160GiB", "On the device; click to show or hide"));
  EXPECT_GE(drawn_at("160 GiB").size() + drawn_at("160 GiB budget").size(), 3u) << "here, too";
}

TEST_F(Keyboard, a_failing_load_is_marked_with_its_tensor) {
  EXPECT_EQ(drawn_text().find("failsat"), std::string::npos);
  document().load.set_option("device_budget", "100GiB");
  app_.settle();
  app_.draw_settled();
  EXPECT_NE(drawn_text().find("failsat"), std::string::npos);
  document().time.set_step(0);
  document().time.speed = 16;
  press(' ');
  for (int i = 0; i < 2000 && document().time.playing(); ++i) app_.frame();
  EXPECT_EQ(document().time.step(), document().failure()->step);
}

TEST_F(Keyboard, escape_closes_a_message_then_a_sheet_then_deselects) {
  document().select(graph::TensorId{3});
  workspace_.settings.panel = "tensors";
  app_.draw_settled();
  workspace_.settings.panel = "convert";
  app_.draw_settled();
  run_action(workspace_, "upload");
  app_.settle();  // what comes of it may be a message, too
  app_.draw_settled();
  workspace_.services.notices.add(graph::Severity::error, "one thing");
  const std::size_t messages = workspace_.services.notices.all().size();
  press(kEscape);
  EXPECT_EQ(workspace_.services.notices.all().size(), messages - 1);
  while (!workspace_.services.notices.all().empty()) press(kEscape);
  EXPECT_EQ(workspace_.settings.panel, "convert");
  press(kEscape);
  EXPECT_EQ(workspace_.settings.panel, "tensors");
  EXPECT_TRUE(document().selected_tensor());
  press(kEscape);
  EXPECT_FALSE(document().selected_tensor());
}

TEST_F(Keyboard, the_palette_says_what_an_action_takes) {
  const auto items = palette_items(workspace_, "Move the time cursor", 5);
  ASSERT_FALSE(items.empty());
  EXPECT_EQ(items.front().takes, "STEP|peak|end");
  const auto colors = palette_items(workspace_, "color l", 5);
  ASSERT_FALSE(colors.empty());
  EXPECT_EQ(colors.front().argument, "layer");
  run_item(workspace_, colors.front());
  EXPECT_EQ(workspace_.settings.color_by, ColorBy::layer);
}

TEST(ConvertWords, take_options_and_tell_a_type_from_a_name) {
  const ConvertTask task = convert_words("gguf a b.gguf --outtype q8_0 --max-shard-size 1GiB");
  EXPECT_EQ(task.request.to, "gguf");
  EXPECT_EQ(task.out, "a b.gguf");
  EXPECT_EQ(task.request.outtype, "q8_0");
  EXPECT_EQ(refusal_of("gguf out.gguf q8_0"), "usage 'out.gguf q8_0' out.gguf --outtype q8_0");
  EXPECT_EQ(refusal_of("gguf out.gguf --speed 2"), "usage '--speed'");
  EXPECT_EQ(refusal_of("gguf"), "usage");
}

}  // namespace

// --- The tables of actions and panels: rows that scripts, buttons and shortcuts can rely on, and the keys
// that run them.

namespace {

TEST(Actions, every_word_of_a_script_means_one_thing) {
  const std::vector<std::string_view> words = script_words();
  EXPECT_EQ(std::set(words.begin(), words.end()).size(), words.size());
  for (const std::string_view word : words) {
    EXPECT_FALSE(word.empty());
    EXPECT_EQ(word.find_first_not_of("abcdefghijklmnopqrstuvwxyz-_"), std::string_view::npos) << word;
  }
}

TEST(Actions, have_titles_and_shortcuts_of_their_own) {
  std::set<std::string_view> titles, shortcuts;
  std::size_t with_shortcut = 0;
  for (const Action& action : actions()) {
    EXPECT_FALSE(action.title.empty()) << action.id;
    titles.insert(action.title);
    if (action.shortcut.empty()) continue;
    shortcuts.insert(action.shortcut);
    ++with_shortcut;
    EXPECT_NE(action.argument, Argument::required) << action.id << ": a key gives none";
  }
  EXPECT_EQ(titles.size(), actions().size());
  EXPECT_EQ(shortcuts.size(), with_shortcut);
  EXPECT_EQ(find_action("fly"), nullptr);
}

TEST(Actions, what_needs_a_model_is_enabled_once_it_is_there) {
  Workspace workspace("");
  const auto enabled = [&](std::string_view id) { return find_action(id)->enabled(workspace); };
  for (const char* id : {"select", "doctor", "convert", "upload", "save-chart", "operator", "move-item"})
    EXPECT_FALSE(enabled(id)) << id;
  for (const char* id : {"open", "demo", "theme", "panel"}) EXPECT_TRUE(enabled(id)) << id;
  workspace.show(operator_graph(3), "");
  EXPECT_TRUE(enabled("select"));
  EXPECT_FALSE(enabled("upload"));  // it is not projected yet
  while (workspace.busy()) workspace.poll();
  for (const char* id : {"doctor", "convert", "upload", "save-chart", "operator"})
    EXPECT_TRUE(enabled(id)) << id;
  for (const char* id : {"compare-converted", "open-converted"}) EXPECT_FALSE(enabled(id)) << id;
  run_action(workspace, "close");
  EXPECT_FALSE(enabled("select"));
}

TEST(Actions, a_failure_is_a_notice) {
  Workspace workspace("");
  run_action(workspace, "upload");
  ASSERT_EQ(workspace.services.notices.all().size(), 1u);
  EXPECT_EQ(workspace.services.notices.all()[0].text, "no model is open");
}

TEST(Panels, are_called_the_same_everywhere) {
  for (const PanelRow& row : panels()) {
    std::string title(row.title);
    title[0] = static_cast<char>(title[0] - 'A' + 'a');
    EXPECT_EQ(title, row.id);
    EXPECT_FALSE(report::find_manual_page(row.manual).text.empty()) << row.id;
    EXPECT_EQ(&find_panel(row.id), &row);
  }
}

class Keys : public ::testing::Test {
 protected:
  Keys() {  // as the desktop's window has them
    ImGui::GetIO().KeyMap[ImGuiKey_Escape] = kEscape;
    ImGui::GetIO().KeyMap[ImGuiKey_Backspace] = kBackspace;
  }
  // Presses what an action's shortcut says, and lets it go.
  void press(std::string_view id) {
    const std::string_view shortcut = find_action(id)->shortcut;
    ImGuiIO& io = ImGui::GetIO();
    const bool control = shortcut.starts_with("Ctrl+");
    ASSERT_TRUE(control || shortcut == "Escape" || shortcut == "Backspace" || shortcut == "F1") << shortcut;
    const int key = control                ? shortcut.back()
                    : shortcut == "Escape" ? kEscape
                    : shortcut == "F1"     ? kF1
                                           : kBackspace;
    app_.frame();
    io.KeyCtrl = control;
    io.KeysDown[key] = true;
    app_.frame();
    io.KeyCtrl = false;
    io.KeysDown[key] = false;
    app_.frame();
  }

  static constexpr int kEscape = 256;
  static constexpr int kBackspace = 259;
  static constexpr int kF1 = 290;
  const std::unique_ptr<Window> window_ = open_null_window({});
  GuiApp app_{*window_, ""};
  Workspace& workspace_ = app_.workspace();
};

TEST_F(Keys, run_the_actions_that_name_them) {
  workspace_.show(llama_70b_graph(), "");
  app_.settle();
  const bool dark = workspace_.settings.dark;
  press("theme");
  EXPECT_NE(workspace_.settings.dark, dark);
  workspace_.document().select(graph::TensorId{3});
  press("deselect");
  EXPECT_FALSE(workspace_.document().selected_tensor());
  const graph::NodeId below = workspace_.document().model->tree.root().children.front();
  workspace_.document().zoom(below);
  press("zoom-out");
  EXPECT_EQ(workspace_.document().zoomed(), graph::kRootNode);
  workspace_.document().select(graph::TensorId{3});
  press("find-tensor");
  app_.frame();
  EXPECT_TRUE(ImGui::GetIO().WantTextInput) << "the filter has the keyboard";
  press("deselect");
  EXPECT_TRUE(workspace_.document().selected_tensor()) << "Escape leaves the filter first";
  press("tree");
  EXPECT_FALSE(workspace_.settings.layout.show_tree);
  press("close");
  EXPECT_FALSE(workspace_.document().model);
  press("browse");
  EXPECT_TRUE(workspace_.places.listing.busy() ||
              !workspace_.places.folder().path.empty());  // of the file browser
  EXPECT_FALSE(app_.wants_close());
  press("quit");
  EXPECT_TRUE(app_.wants_close());
}

// F1 explains the panel: its section of the page about the window, with a way to the page that says more.
TEST_F(Keys, show_the_manual_s_page_about_the_panel_and_close_it) {
  workspace_.show(llama_70b_graph(), "");
  app_.settle();
  const auto is_open = [] { return drawn_text().find("LeftandRightturnpages") != std::string::npos; };
  for (const PanelRow& row : panels()) {
    workspace_.settings.panel = row.id;
    press("manual");
    EXPECT_TRUE(is_open()) << row.id;
    EXPECT_NE(drawn_text().find("More:" + without_blanks(report::find_manual_page(row.manual).title)),
              std::string::npos)
        << row.id;
    const std::string page = report::find_manual_page("window").text;
    const std::size_t at = page.find(fmt::format("\n## {}\n\n", row.title));
    ASSERT_NE(at, std::string::npos) << row.id << " has a section";
    // its first words are in sight
    const std::string words = page.substr(page.find("\n\n", at) + 2, 24);
    EXPECT_NE(drawn_text().find(without_blanks(words.substr(0, words.rfind(' ')))), std::string::npos)
        << words;
    for (const std::string_view markup : {"**", "|---", "```"})
      EXPECT_EQ(drawn_text().find(markup), std::string::npos) << row.id << ": " << markup;
    workspace_.document().select(graph::TensorId{3});
    press("deselect");  // closes the manual alone
    EXPECT_FALSE(is_open()) << row.id;
    EXPECT_TRUE(workspace_.document().selected_tensor());
  }
  EXPECT_THROW(find_action("manual")->run(workspace_, "cookery"), Error);
}

}  // namespace

// The slider of the context: two clicks at one place make it a field, which takes "8k".
TEST_F(Keyboard, TypesANumberIntoASlider) {
  window_->set_size(1900, 900);
  app_.draw_settled();
  const std::vector<ImVec2> label = drawn_at("context");
  ASSERT_FALSE(label.empty());
  const ImVec2 slider = {label.front().x + 90, label.front().y};
  ASSERT_FALSE(document().load.asked().first_token);
  for (int i = 0; i < 2; ++i)
    for (const bool down : {false, true, false}) {
      window_->set_mouse(slider.x, slider.y, down);
      app_.frame();
    }
  for (int i = 0; i < 3; ++i) app_.frame();
  EXPECT_TRUE(ImGui::GetIO().WantTextInput);
  EXPECT_FALSE(document().load.asked().first_token) << "the clicks alone change nothing";
  type("8k");
  press(kEnter);
  EXPECT_EQ(document().load.asked().request.sequence + document().load.asked().request.past, 8192u);
  EXPECT_FALSE(ImGui::GetIO().WantTextInput);
}

TEST_F(Keyboard, GoesToTheStartPageAndBack) {
  const std::uint64_t model = document().id;
  find_action("start")->run(workspace_, "");
  app_.settle();
  app_.draw_settled();
  EXPECT_EQ(document().model, nullptr);
  EXPECT_FALSE(drawn_at("What runs on this machine?").empty());
  ASSERT_EQ(workspace_.documents().size(), 2u);
  workspace_.show_document(0);
  EXPECT_EQ(document().id, model);
  find_action("start")->run(workspace_, "");
  EXPECT_EQ(workspace_.documents().size(), 2u) << "there is one start page";
}

TEST_F(Keyboard, ClearsTheFilterOfTheTree) {
  const auto press_with_control = [&](int key) {
    ImGui::GetIO().KeyCtrl = true;
    press(key);
    ImGui::GetIO().KeyCtrl = false;
  };
  for (int i = 0; i < 2; ++i) {
    press_with_control('F');
    type("norm");
    EXPECT_FALSE(document().table.view().totals.empty());
    press_with_control('A');
    press(kBackspace);
    EXPECT_TRUE(document().table.view().applied.empty());
    EXPECT_NE(drawn_text().find("lm_head"), std::string::npos) << "the whole tree is back";
  }
}

// --- The dialogs of files and of exports by the keyboard.

namespace {

struct FileDialog : Keyboard {
  FileDialog() {
    for (const char* const name : {"alpha.gguf", "alphabet.gguf", "beta.gguf"})
      loadline::testing::write_file(folder / name, "no model");
    std::filesystem::create_directory(folder / "deep");
    loadline::testing::write_file(folder / "deep/inner.gguf", "no model");
    find_action("browse")->run(workspace_, folder.path().string());
    settle();
  }
  void settle() {
    for (int i = 0; i < 4; ++i) app_.settle(), app_.frame();
  }
  // The path that a conversion would be written to, once one was picked.
  std::optional<std::string> picked() { return workspace_.services.requests.take_picked("test"); }
  std::string opened() {
    app_.settle();
    const auto& notices = workspace_.services.notices.all();
    return notices.empty() ? "" : notices.back().text;
  }
  static bool is_listed(std::string_view name) { return drawn_text().find(name) != std::string::npos; }

  const loadline::testing::TemporaryFolder folder;
};

TEST_F(FileDialog, FiltersWhileANameIsTyped) {
  EXPECT_TRUE(is_listed("beta.gguf"));
  type("bet");
  EXPECT_FALSE(is_listed("alpha.gguf"));
  press(kEnter);
  EXPECT_NE(opened().find("beta.gguf"), std::string::npos) << "the one that is left";
}

TEST_F(FileDialog, CompletesWhatIsTyped) {
  type((folder / "al").c_str());
  press(kTab);
  type("bet");
  press(kTab);
  press(kEnter);
  EXPECT_NE(opened().find("alphabet.gguf"), std::string::npos);
}

TEST_F(FileDialog, GoesWhereTheTypedPathLeads) {
  type((folder / "deep/").c_str());
  settle();
  EXPECT_TRUE(is_listed("inner.gguf"));
  type("inn");
  press(kTab);
  press(kEnter);
  EXPECT_NE(opened().find("inner.gguf"), std::string::npos);
}

TEST_F(FileDialog, FindsAPathToWrite) {
  press(kEscape);
  workspace_.services.requests.add(OpenBrowser{"test", "Write to", folder / "new.gguf"});
  settle();
  press(kEnter);
  EXPECT_EQ(picked(), folder / "new.gguf");
  workspace_.services.requests.add(OpenBrowser{"test", "Write to", folder / "new.gguf"});
  settle();
  type((folder / "deep/other.gguf").c_str());
  settle();
  press(kEnter);
  EXPECT_EQ(picked(), folder / "deep/other.gguf");
  workspace_.services.requests.add(OpenBrowser{"test", "Write to", folder / "new.gguf"});
  settle();
  press(kEscape);
  EXPECT_FALSE(picked());
}

}  // namespace

// --- What frames learn of a keyboard and a mouse that are faster than they are.

namespace {

using Kind = InputEvent::Kind;

// What one frame gets: "+a" pressed, "-a" released, "'a" typed; "down", "up" and "@x" for the mouse, which
// the frame before saw at `mouse`.
std::string frame(InputQueue& queue, float mouse = 0, bool typing = false) {
  std::string seen;
  const auto place = queue.deliver({mouse, 0}, typing, [&](const InputEvent& event) {
    if (event.of_button()) {
      seen += event.kind == Kind::button_press ? "down" : "up";
      return;
    }
    seen += event.kind == Kind::press ? '+' : event.kind == Kind::release ? '-' : '\'';
    seen += static_cast<char>(event.code);
  });
  if (place) seen += "@" + std::to_string(static_cast<int>(place->x));
  return seen;
}

void click(InputQueue& queue, float x) {
  for (const Kind kind : {Kind::button_press, Kind::button_release})
    queue.push({.kind = kind, .code = 0, .x = x});
}

void tap(InputQueue& queue, char key, bool shortcut = false) {
  queue.push({Kind::press, key, 0, 0, shortcut});
  if (!shortcut) queue.push({Kind::character, key, 0, 0, false});
  queue.push({Kind::release, key, 0, 0, false});
}

TEST(InputQueue, ATapShorterThanAFrameIsSeen) {
  InputQueue queue;
  tap(queue, 'a');
  EXPECT_EQ(frame(queue), "+a'a");
  EXPECT_FALSE(queue.empty());
  EXPECT_EQ(frame(queue), "-a");
  EXPECT_TRUE(queue.empty());
  EXPECT_EQ(frame(queue), "");
}

TEST(InputQueue, EveryTapOfOneKeyIsSeen) {
  InputQueue queue;
  for (int i = 0; i < 3; ++i) tap(queue, 'j');
  std::string all;
  for (int i = 0; i < 6; ++i) all += frame(queue) + " ";
  EXPECT_EQ(all, "+j'j -j +j'j -j +j'j -j ");
}

TEST(InputQueue, DifferentKeysShareAFrame) {
  InputQueue queue;
  for (const char key : {'a', 'b'}) {
    queue.push({Kind::press, key, 0, 0, false});
    queue.push({Kind::character, key, 0, 0, false});
  }
  EXPECT_EQ(frame(queue), "+a'a+b'b");
}

TEST(InputQueue, ALineThatAFieldTakesArrivesInOneFrame) {
  InputQueue queue;
  const std::string line = "llama";
  for (const char key : line) tap(queue, key);
  queue.push({Kind::press, 257, 0, 0, false});  // Enter
  queue.push({Kind::release, 257, 0, 0, false});
  const std::string seen = frame(queue, 0, true);
  std::string letters;
  for (std::size_t i = 0; i + 1 < seen.size(); ++i)
    if (seen[i] == '\'') letters += seen[i + 1];
  EXPECT_EQ(letters, line);
  EXPECT_FALSE(queue.empty()) << "Enter is let go in a frame of its own";
  EXPECT_EQ(frame(queue, 0, true).front(), '-');
  EXPECT_TRUE(queue.empty());
}

TEST(InputQueue, WhatIsTypedAfterAShortcutWaitsForTheFocus) {
  InputQueue queue;
  tap(queue, 'F', true);
  tap(queue, 'x');
  EXPECT_EQ(frame(queue), "+F");
  EXPECT_EQ(frame(queue), "");  // the field takes the focus meanwhile
  EXPECT_EQ(frame(queue), "");
  EXPECT_FALSE(queue.empty());
  EXPECT_EQ(frame(queue), "-F+x'x");
  EXPECT_EQ(frame(queue), "-x");
  EXPECT_TRUE(queue.empty());
}

TEST(InputQueue, AReleaseThatWaitsKeepsASlowFrameFromRepeatingItsKey) {
  constexpr float kSlow = 0.4f, kRepeats = 0.25f;
  InputQueue queue;
  tap(queue, 'F', true);
  EXPECT_EQ(frame(queue), "+F");
  EXPECT_EQ(queue.counted(kSlow), kSlow) << "nothing waited before";
  for (const char* const seen : {"", "", "-F"}) {
    EXPECT_EQ(frame(queue), seen);
    EXPECT_LT(3 * queue.counted(kSlow), kRepeats);
  }
  EXPECT_EQ(frame(queue), "");
  EXPECT_EQ(queue.counted(kSlow), kSlow);
}

TEST(InputQueue, AClickIsWhereTheMouseWasAndAfterAFrameThatSawItThere) {
  InputQueue queue;
  click(queue, 7);
  EXPECT_EQ(frame(queue, 3), "@7");
  EXPECT_EQ(frame(queue, 7), "down@7");
  EXPECT_EQ(frame(queue, 7), "up@7");
  EXPECT_TRUE(queue.empty());
  EXPECT_EQ(frame(queue, 7), "") << "the mouse is free again";
}

TEST(InputQueue, EveryClickOfTwoInOneFrameIsSeen) {
  InputQueue queue;
  click(queue, 7);
  click(queue, 7);
  std::string all;
  for (int i = 0; i < 4; ++i) all += frame(queue, 7) + " ";
  EXPECT_EQ(all, "down@7 up@7 down@7 up@7 ");
}

TEST(InputQueue, AButtonKeepsItsTurnAmongKeys) {
  InputQueue queue;
  queue.push({Kind::press, 'c', 0, 0, false});
  click(queue, 7);
  queue.push({Kind::release, 'c', 0, 0, false});
  EXPECT_EQ(frame(queue, 7), "+cdown@7");
  EXPECT_EQ(frame(queue, 7), "up@7");
  EXPECT_EQ(frame(queue, 7), "-c");
}

}  // namespace

// --- What the palette finds, and what it runs.

namespace {

std::vector<PaletteItem> find(const Workspace& workspace, std::string_view typed) {
  return palette_items(workspace, typed, 20);
}

TEST(Palette, RanksBeginningsBeforeMiddlesBeforeScatteredLetters) {
  EXPECT_LT(*match_rank("methods", "met"), *match_rank("show methods", "met"));
  EXPECT_LT(*match_rank("show methods", "met"), *match_rank("primetime", "met"));
  EXPECT_LT(*match_rank("primetime", "met"), *match_rank("m e t", "met"));
  EXPECT_FALSE(match_rank("methods", "meth0d"));
  EXPECT_FALSE(match_rank("", "a"));
  EXPECT_EQ(match_rank("anything", ""), 0);
}

TEST(Palette, FindsWordsInAnyOrder) {
  EXPECT_TRUE(match_rank("Lesson: Six ways to load GPT-2 XL", "lesson six"));
  EXPECT_TRUE(match_rank("Lesson: Six ways to load GPT-2 XL", "six lesson"));
  const Workspace workspace("");
  EXPECT_EQ(find(workspace, "lesson six").at(0).argument, "six-ways");
}

TEST(Palette, TakesABareNumberForGibibytes) {
  const Workspace workspace("");
  const auto items = find(workspace, "device budget 8");
  ASSERT_GE(items.size(), 2u);
  EXPECT_EQ(items[0].argument, "8GiB");
  EXPECT_EQ(items[1].argument, "8MiB");
  EXPECT_EQ(find(workspace, "device budget 8GB").at(0).argument, "8GB");
  EXPECT_EQ(find(workspace, "slots 8").at(0).argument, "8");
}

TEST(Palette, FindsActionsPanelsOptionsTensorsAndModules) {
  Workspace workspace("");
  EXPECT_EQ(find(workspace, "open a model").at(0).word, "browse");
  for (const PaletteItem& item : find(workspace, ""))
    EXPECT_NE(item.word, "upload") << "it is not possible now";
  EXPECT_EQ(find(workspace, "").at(0).word, "browse") << "what people want most";
  EXPECT_FALSE(find(workspace, "").at(3).needs_more);
  workspace.show(llama_70b_graph(), "");
  EXPECT_EQ(find(workspace, "show methods").at(0).argument, "methods");
  EXPECT_EQ(find(workspace, "state_dict").at(0).word, "method");
  EXPECT_TRUE(find(workspace, "device budget").at(0).needs_more);
  const PaletteItem tensor = find(workspace, "layers.7.mlp.down").at(0);
  EXPECT_EQ(tensor.word, "select");
  EXPECT_EQ(tensor.argument, "model.layers.7.mlp.down_proj.weight");
  EXPECT_EQ(find(workspace, "self_attn").at(0).word, "select-module");
  EXPECT_TRUE(find(workspace, "zzzzqq").empty());
}

TEST(Palette, RunsWhatAScriptWouldSay) {
  Workspace workspace("");
  workspace.show(llama_70b_graph(), "");
  const PaletteItem budget = find(workspace, "device_budget 80GiB").at(0);
  EXPECT_EQ(budget.argument, "80GiB");
  run_item(workspace, budget);
  EXPECT_EQ(workspace.document().load.asked().request.device_budget, std::uint64_t{80} << 30);
  run_item(workspace, find(workspace, "show tensors").at(0));
  EXPECT_EQ(workspace.settings.panel, "tensors");
  EXPECT_THROW(run_item(workspace, find(workspace, "select no_such_tensor").at(0)), Error);
}

TEST(Palette, IsDrawnOverEverything) {
  const auto window = open_null_window({});
  GuiApp app(*window, "");
  app.workspace().show(llama_70b_graph(), "");
  app.settle();
  play_script(app, parse_script("palette\nframes 3\n", "inline"), "inline");
  EXPECT_NE(drawn_text().find(without_blanks("Suggest changes that fit")), std::string::npos);
  play_script(app, parse_script("click 20 700\nkeys\nframes 3\n", "inline"), "inline");
  EXPECT_NE(drawn_text().find(without_blanks("Command palette")), std::string::npos);
  EXPECT_NE(drawn_text().find("Ctrl+P"), std::string::npos);
}

}  // namespace

}  // namespace loadline::gui
