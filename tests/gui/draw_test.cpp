// The whole window drawn, without one: every state, lessons, saved requests.

#include "app/gui/frame/actions.h"
#include "app/gui/frame/gui_app.h"
#include "app/gui/parts/widgets.h"
#include "app/gui/state/base/services.h"
#include "app/lesson/exercises.h"
#include "app/lesson/lesson.h"
#include "core/inspect/doctor.h"
#include "core/load/request/load_options.h"
#include "exporters/convert.h"
#include "tests/gui/harness.h"
#include "tests/gui/sample_graphs.h"
#include "tests/support/builders.h"

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <new>

#include <fmt/core.h>
#include <gtest/gtest.h>
#include <imgui.h>

namespace loadline::gui {

// --- Every panel in every state under a mouse that goes everywhere, and what the mouse does. No window.

namespace {

// Nothing of it may fail; panels_test.cpp says what is to be seen.
class DoesNotCrash : public ::testing::TestWithParam<State> {};

TEST_P(DoesNotCrash, every_panel_at_every_size) {
  const auto window = open_null_window({});
  GuiApp app(*window, "");
  GetParam().prepare(app.workspace());
  app.frame();  // while the jobs are under way
  app.settle();
  if (app.workspace().document().model && !app.workspace().document().model->graph->tensors.empty())
    app.workspace().document().select(graph::TensorId{0});
  for (const auto& [width, height] : {std::pair(kLeastWidth, kLeastHeight), std::pair(1280, 720),
                                      std::pair(1920, 1080), std::pair(420, 260)}) {
    window->set_size(width, height);
    for (const PanelRow& row : panels()) {
      app.workspace().settings.panel = row.id;
      app.workspace().settings.dark = !app.workspace().settings.dark;
      app.draw_settled();
    }
  }
}

TEST_P(DoesNotCrash, every_panel_under_the_mouse) {
  const auto window = open_null_window({});
  GuiApp app(*window, "");
  GetParam().prepare(app.workspace());
  app.settle();
  for (const PanelRow& row : panels()) {
    app.workspace().settings.panel = row.id;
    app.draw_settled();
    for (int y = 60; y < 800; y += 90)
      for (int x = 20; x < 1280; x += 130) {
        window->set_mouse(static_cast<float>(x), static_cast<float>(y), false);
        app.frame();
        app.frame();
      }
    // a click on a tensor of the panel, wherever it is
    window->set_mouse(640, 420, true);
    app.frame();
    window->set_mouse(640, 420, false);
    app.frame();
  }
  app.settle();
}

// What has no room in the line goes to sheets; what stays is not covered.
TEST(Toolbar, keeps_its_parts_apart_in_a_small_window) {
  const auto window = open_null_window({});
  GuiApp app(*window, "");
  app.workspace().open_demo();
  app.settle();
  window->set_size(720, 422);
  app.draw_settled();
  const std::vector<ImVec2> options = drawn_at("Options"), more = drawn_at("More");
  ASSERT_EQ(options.size(), 1u);
  ASSERT_EQ(more.size(), 1u);
  EXPECT_LT(options[0].x + 150, more[0].x);  // the chip between them
  EXPECT_TRUE(drawn_at("Convert").empty());
  window->set_size(1280, 720);
  app.draw_settled();
  EXPECT_EQ(drawn_at("Convert").size(), 1u);
  EXPECT_TRUE(drawn_at("More").empty());
}

TEST_P(DoesNotCrash, every_coloring_and_zoom) {
  const auto window = open_null_window({});
  GuiApp app(*window, "");
  GetParam().prepare(app.workspace());
  app.settle();
  app.workspace().settings.panel = "map";
  for (std::size_t mode = 0; mode < kColorNames.size(); ++mode) {
    app.workspace().settings.color_by = static_cast<ColorBy>(mode);
    if (app.workspace().document().model)
      app.workspace().document().zoom(graph::NodeId{static_cast<std::uint32_t>(mode)});
    app.draw_settled();
  }
}

TEST_P(DoesNotCrash, every_view_of_the_methods_under_the_mouse) {
  const auto window = open_null_window({});
  GuiApp app(*window, "");
  GetParam().prepare(app.workspace());
  app.settle();
  app.workspace().settings.panel = "methods";
  for (const plan::MemoryKind memory : {plan::MemoryKind::discrete, plan::MemoryKind::unified})
    for (std::size_t view = 0; view < kCompareViewNames.size(); ++view) {
      app.workspace().settings.compare_view = static_cast<CompareView>(view);
      Document& document = app.workspace().document();
      document.load.set_option("memory", plan::memory_kind_name(memory));
      document.load.set_option("device_budget", memory == plan::MemoryKind::discrete ? "4096" : "none");
      app.frame();  // while the jobs are under way
      app.settle();
      for (const auto& [width, height] : {std::pair(kLeastWidth, kLeastHeight), std::pair(1280, 720)}) {
        window->set_size(width, height);
        app.draw_settled();
        app.settle();
        for (int y = 200; y < height; y += 130)
          for (int x = 320; x < width; x += 230) {
            window->set_mouse(static_cast<float>(x), static_cast<float>(y), false);
            app.frame();
            app.frame();
          }
      }
    }
}

INSTANTIATE_TEST_SUITE_P(States, DoesNotCrash, ::testing::ValuesIn(states().begin(), states().end()),
                         [](const ::testing::TestParamInfo<State>& state) {
                           return std::string(state.param.name);
                         });

// What surrounds the panels.
TEST(Shell, shows_the_model_its_tabs_the_selection_and_notices) {
  const auto window = open_null_window({});
  GuiApp app(*window, "");
  const auto shows = [](std::string_view words) {
    return drawn_text().find(without_blanks(words)) != std::string::npos;
  };
  app.draw_settled();
  EXPECT_TRUE(shows("What runs on this machine?"));
  EXPECT_TRUE(shows("Open the demo model"));
  Workspace& workspace = app.workspace();
  workspace.show(llama_70b_graph(), "");
  app.settle();
  app.draw_settled();
  EXPECT_FALSE(shows("What runs on this machine?"));
  for (const std::string_view tab : tabs()) EXPECT_TRUE(shows(tab)) << tab;
  EXPECT_TRUE(shows("Parameters 70.6 B"));
  EXPECT_TRUE(shows("device peak 131.42 GiB"));
  EXPECT_TRUE(shows("lm_head"));  // of the tree
  EXPECT_FALSE(shows("At byte"));
  workspace.document().select(graph::TensorId{1});
  workspace.services.notices.add(graph::Severity::info, "something to tell");
  app.draw_settled();
  EXPECT_TRUE(shows("At byte"));
  EXPECT_TRUE(shows("something to tell"));
}

TEST(Mouse, a_click_looks_into_the_files_again) {
  const auto window = open_null_window({});
  GuiApp app(*window, "");
  app.workspace().open_demo();
  app.settle();
  Document& document = app.workspace().document();
  document.checks.diagnose();
  app.workspace().settings.panel = "findings";
  app.settle();
  app.draw_settled();
  ASSERT_TRUE(document.checks.findings.value());
  const JobId first = document.checks.findings.job();
  for (int y = 90; y < 200 && document.checks.findings.job() == first; y += 8)
    play_script(app, parse_script("click 340 " + std::to_string(y) + "\n", "inline"), "inline");
  EXPECT_NE(document.checks.findings.job(), first);
  app.settle();
  EXPECT_TRUE(document.checks.findings.value());
}

TEST(Mouse, a_click_in_the_table_selects_everywhere) {
  const auto window = open_null_window({});
  GuiApp app(*window, "");
  app.workspace().show(llama_70b_graph(), "");
  app.workspace().settings.panel = "tensors";
  app.settle();
  app.draw_settled();
  play_script(app, parse_script("click 420 220\n", "inline"), "inline");
  EXPECT_TRUE(app.workspace().document().selected_tensor());
}

TEST(Mouse, a_click_in_the_map_selects_and_a_double_click_goes_on) {
  const auto window = open_null_window({});
  GuiApp app(*window, "");
  app.workspace().show(llama_70b_graph(), "");
  app.workspace().settings.panel = "map";
  app.settle();
  app.draw_settled();
  Document& document = app.workspace().document();
  play_script(app, parse_script("click 400 300\n", "inline"), "inline");
  ASSERT_TRUE(document.selected_tensor());
  // on the title of a module it looks inside, on a tensor it shows the values
  const ImVec2 layers = drawn_at("layers").back();
  play_script(app, parse_script(fmt::format("double-click {:.0f} {:.0f}\n", layers.x, layers.y), "inline"),
              "inline");
  EXPECT_NE(document.zoomed(), graph::kRootNode);
  EXPECT_EQ(app.workspace().settings.panel, "map");
  play_script(app, parse_script("zoom-out\ndouble-click 400 300\n", "inline"), "inline");
  EXPECT_EQ(app.workspace().settings.panel, "values");
}

// Right clicks: what lies there is selected, and a menu says what can be done with it.
class RightClick : public ::testing::Test {
 protected:
  RightClick() {
    workspace_.show(llama_70b_graph(), "");
    app_.settle();
    app_.draw_settled();
  }
  void click_right(ImVec2 at) {
    window_->set_mouse(at.x, at.y, false);
    app_.frame();
    app_.frame();
    ImGui::GetIO().MouseDown[1] = true;
    app_.frame();
    ImGui::GetIO().MouseDown[1] = false;
    for (int i = 0; i < 3; ++i) app_.frame();
  }
  void show(const char* panel) {
    workspace_.settings.panel = panel;
    app_.settle();
    app_.draw_settled();
    app_.settle();
    app_.draw_settled();
  }
  static bool is_menu_open() { return !drawn_at("Copy as JSON").empty(); }
  void pick(std::string_view words) {
    const std::vector<ImVec2> at = drawn_at(words);
    ASSERT_FALSE(at.empty()) << words << " is not in " << drawn_text();
    play_script(app_, parse_script(fmt::format("click {:.0f} {:.0f}\n", at.back().x, at.back().y), "s"), "s");
  }
  // Opens the menu over the words, and closes it.
  void expect_menu(std::string_view words, const Selected& selected) {
    const std::vector<ImVec2> at = drawn_at(words);
    ASSERT_FALSE(at.empty()) << words << " is not in " << drawn_text();
    expect_menu(at.back(), words, selected);
  }
  void expect_menu(ImVec2 at, std::string_view words, const Selected& selected) {
    document().select({});
    click_right(at);
    EXPECT_TRUE(is_menu_open()) << words;
    EXPECT_EQ(document().selected().index(), selected.index()) << words;
    ImGui::GetIO().KeysDown[256] = true;
    app_.frame();
    ImGui::GetIO().KeysDown[256] = false;
    for (int i = 0; i < 3; ++i) app_.frame();
    EXPECT_FALSE(is_menu_open()) << "Escape closes it";
    EXPECT_EQ(document().selected().index(), selected.index()) << "and nothing else";
  }
  Document& document() { return workspace_.document(); }

  const std::unique_ptr<Window> window_ = open_null_window({});
  GuiApp app_{*window_, ""};
  Workspace& workspace_ = app_.workspace();
};

TEST_F(RightClick, asks_everywhere_what_can_be_done) {
  const Selected tensor = graph::TensorId{}, module = graph::NodeId{};
  show("map");
  expect_menu({400, 300}, "a tile", tensor);
  expect_menu("layers", module);
  expect_menu(drawn_at("layers").front(), "a line of the tree", module);
  show("tensors");
  expect_menu(drawn_at("model.embed_tokens.weight").front(), "a row", tensor);
  show("bytes");
  expect_menu(drawn_at("model.embed_tokens").front(), "a strip", tensor);
  show("methods");
  expect_menu(drawn_at("layer_streaming").front(), "a method", LoadOf{});
  show("load");
  expect_menu({640, 240}, "a lane", module);
  workspace_.settings.operators_as_list = true;
  show("operators");
  expect_menu("table", OperatorAt{});
  document().checks.findings.set(std::vector<inspect::Finding>{
      {.id = "gaps", .severity = graph::Severity::warning, .text = "bytes between tensors", .cost = "none"}});
  show("findings");
  expect_menu("bytes between tensors", FindingAt{});
}

TEST_F(RightClick, leads_from_a_tensor_to_its_file_and_loads_it_first) {
  show("map");
  click_right({400, 300});
  ASSERT_TRUE(is_menu_open());
  const graph::TensorId tensor = *document().selected_tensor();
  pick("Show in its file");
  EXPECT_EQ(workspace_.settings.panel, "bytes");
  EXPECT_EQ(document().selected_tensor(), tensor);
  EXPECT_FALSE(is_menu_open());
  run_action(workspace_, "menu");
  for (int i = 0; i < 3; ++i) app_.frame();
  pick("Load it first");
  EXPECT_EQ(shown_order(document().load.asked()), "custom");
  EXPECT_EQ(document().load.custom_order()->front(), document().model->tensor(tensor).storage);
  EXPECT_EQ(document().load.custom_order()->size(), document().model->graph->storages.size());
}

TEST_F(RightClick, that_pulls_the_plot_opens_nothing) {
  show("load");
  window_->set_mouse(640, 240, false);
  app_.frame();
  ImGui::GetIO().MouseDown[1] = true;
  for (int x = 640; x < 760; x += 20) {
    window_->set_mouse(static_cast<float>(x), 240, false);
    app_.frame();
  }
  ImGui::GetIO().MouseDown[1] = false;
  for (int i = 0; i < 3; ++i) app_.frame();
  EXPECT_FALSE(is_menu_open());
}

TEST(Mouse, a_click_in_the_curves_chooses_the_method) {
  const auto window = open_null_window({});
  GuiApp app(*window, "");
  app.workspace().show(llama_70b_graph(), "");
  app.workspace().settings.panel = "methods";
  app.workspace().settings.compare_view = CompareView::curves;
  app.settle();
  app.draw_settled();
  play_script(app, parse_script("click 430 310\nwait\n", "inline"), "inline");
  EXPECT_NE(shown_method(app.workspace().document().load.asked()).id, "staged_ring");
  EXPECT_EQ(app.workspace().document().load.projection.value()->method->id,
            shown_method(app.workspace().document().load.asked()).id);
}

TEST(Mouse, choosing_rules_takes_the_map_back) {
  const auto window = open_null_window({});
  window->set_size(1280, 720);
  GuiApp app(*window, "");
  Workspace& workspace = app.workspace();
  workspace.show(llama_70b_graph(), "");
  workspace.settings.panel = "methods";
  app.settle();
  int x = 0;
  const auto click = [&](int y) {
    play_script(app, parse_script(fmt::format("click {} {}\n", x, y), "inline"), "inline");
  };
  // what each entry of a combo at that height makes of a map, from the first to the last
  const auto entries = [&](int combo) {
    std::string found;
    for (int y = combo - 130; y < combo + 130; y += 10) {
      workspace.document().load.set_option("method", "accelerate");
      workspace.document().load.set_option("auto_map", "10GiB");
      app.settle();
      app.draw_settled();
      click(combo);
      click(y);
      const load::LoadRequest& now = workspace.document().load.asked().request;
      const char what = now.auto_map ? 'm' : '-';
      if (found.empty() || found.back() != what) found += what;
    }
    return found;
  };
  // explanations above it move the combo
  bool chosen = false;
  for (x = 420; x < 900 && !chosen; x += 90)
    for (int combo = 350; combo < 480 && !chosen; combo += 12)
      chosen = entries(combo).find("-m-") != std::string::npos;
  EXPECT_TRUE(chosen);
}

TEST(Mouse, a_row_dragged_in_the_order_is_loaded_where_it_is_dropped) {
  const auto window = open_null_window({});
  GuiApp app(*window, "");
  Workspace& workspace = app.workspace();
  workspace.show(llama_70b_graph(), "");
  workspace.settings.panel = "methods";
  workspace.settings.compare_view = CompareView::order;
  app.settle();
  app.draw_settled();
  app.settle();
  app.draw_settled();
  ASSERT_FALSE(workspace.document().order.list.value()->items().empty());
  const std::string first = workspace.document().order.list.value()->items()[0].module;
  for (int y = 200; y < 400 && shown_order(workspace.document().load.asked()) != "custom"; y += 8) {
    window->set_mouse(600, static_cast<float>(y), false);
    app.frame();
    app.frame();
    window->set_mouse(600, static_cast<float>(y), true);
    for (int at = y; at < y + 80; at += 10) {
      window->set_mouse(600, static_cast<float>(at), true);
      app.frame();
    }
    window->set_mouse(600, static_cast<float>(y + 80), false);
    app.frame();
    app.frame();
  }
  EXPECT_EQ(shown_order(workspace.document().load.asked()), "custom");
  EXPECT_NE(workspace.document().order.list.value()->order(),
            load::find_order("file").make(*workspace.document().model->graph));
  app.settle();
  EXPECT_EQ(workspace.document().load.projection.value()->order, "custom");
}

TEST(Mouse, scale_changes_fonts_and_layout) {
  const auto window = open_null_window({});
  GuiApp app(*window, "");
  app.frame();
  const float before = ImGui::GetFontSize();
  window->set_scale(2);
  app.frame();
  app.frame();
  EXPECT_EQ(ImGui::GetIO().Fonts->Fonts[0]->FontSize, 2 * before);
}

TEST(Mouse, a_click_on_a_key_shows_its_value) {
  const auto window = open_null_window({});
  GuiApp app(*window, "");
  app.workspace().show(annotated_graph(10), "");
  app.workspace().settings.panel = "metadata";
  app.settle();
  app.draw_settled();
  play_script(app, parse_script("click 420 230\n", "inline"), "inline");
  EXPECT_TRUE(app.workspace().document().metadata.entry());
}

TEST(Mouse, a_click_on_an_operator_shows_it_and_one_on_its_weight_selects_the_tensor) {
  const auto window = open_null_window({});
  GuiApp app(*window, "");
  app.workspace().show(operator_graph(3), "");
  app.workspace().settings.panel = "operators";
  app.workspace().settings.operators_as_list = true;
  app.settle();
  app.draw_settled();
  for (int y = 200; y < 260 && !app.workspace().document().forward.shown; y += 10)
    play_script(app, parse_script("click 420 " + std::to_string(y) + "\n", "inline"), "inline");
  ASSERT_TRUE(app.workspace().document().forward.shown);
  EXPECT_FALSE(app.workspace().document().selected_tensor());
  for (int y = 180; y < 300 && !app.workspace().document().selected_tensor(); y += 6)
    for (int x = 600; x < 1240 && !app.workspace().document().selected_tensor(); x += 20)
      play_script(app, parse_script("click " + std::to_string(x) + " " + std::to_string(y) + "\n", "inline"),
                  "inline");
  EXPECT_TRUE(app.workspace().document().selected_tensor());
}

TEST(Mouse, rests_on_a_lane_while_other_models_come) {
  const auto window = open_null_window({});
  GuiApp app(*window, "");
  app.workspace().settings.panel = "lifetimes";
  for (const char* preset : {"llama-3.1-70b", "demo", "bert-base-uncased", "llama-3.1-70b"}) {
    app.workspace().show(preset_graph(preset), "");
    app.settle();
    for (const int y : {380, 440, 520, 580}) {
      window->set_mouse(640, static_cast<float>(y), false);
      for (int i = 0; i < 3; ++i) app.frame();
    }
  }
  for (int i = 0; i < 4; ++i) {
    app.workspace().close_model();
    app.frame();
  }
  EXPECT_FALSE(app.workspace().document().forward.scene.value());
}

TEST(Mouse, a_second_click_on_an_operator_closes_it) {
  const auto window = open_null_window({});
  GuiApp app(*window, "");
  app.workspace().show(operator_graph(3), "");
  app.workspace().settings.panel = "operators";
  app.workspace().settings.operators_as_list = true;
  app.settle();
  app.draw_settled();
  int y = 200;
  const auto click = [&] {
    play_script(app, parse_script("click 420 " + std::to_string(y) + "\n", "inline"), "inline");
  };
  for (click(); y < 260 && !app.workspace().document().forward.shown; click()) y += 10;
  ASSERT_TRUE(app.workspace().document().forward.shown);
  click();
  EXPECT_FALSE(app.workspace().document().forward.shown);
}

TEST(Mouse, a_click_on_a_module_folds_it_and_one_on_an_operator_shows_it) {
  const auto window = open_null_window({});
  GuiApp app(*window, "");
  app.workspace().show(preset_graph("llama-3-8b"), "");
  app.workspace().settings.panel = "operators";
  app.workspace().settings.layout = {.show_tree = false, .show_inspector = false, .show_timeline = false};
  app.settle();
  app.draw_settled();
  const auto vertices = [] { return ImGui::GetDrawData()->TotalVtxCount; };
  const int unfolded = vertices();
  // the first line is "model"
  int y = 120;
  for (; y < 280 && vertices() > unfolded * 9 / 10; y += 5)
    play_script(app, parse_script("click 300 " + std::to_string(y) + "\n", "inline"), "inline");
  EXPECT_LT(vertices(), unfolded * 9 / 10);
  EXPECT_FALSE(app.workspace().document().forward.shown);
  for (; y < 330 && !app.workspace().document().forward.shown; y += 5)
    play_script(app, parse_script("click 300 " + std::to_string(y) + "\n", "inline"), "inline");
  EXPECT_EQ(app.workspace().document().forward.shown,
            app.workspace().document().forward.graph()->ops.size() - 1);
}

TEST(Mouse, a_click_in_the_lanes_pins_the_cursor_and_the_wheel_zooms) {
  const auto window = open_null_window({});
  GuiApp app(*window, "");
  app.workspace().show(preset_graph("llama-3-8b"), "");
  app.workspace().settings.panel = "lifetimes";
  app.settle();
  app.draw_settled();
  play_script(app, parse_script("click 640 500\n", "inline"), "inline");
  ASSERT_TRUE(app.workspace().document().forward.shown);
  const std::size_t first = *app.workspace().document().forward.shown;
  EXPECT_GT(first, 100u);
  play_script(app, parse_script("click 700 500\n", "inline"), "inline");
  EXPECT_GT(*app.workspace().document().forward.shown, first);
  EXPECT_LT(*app.workspace().document().forward.shown,
            app.workspace().document().forward.graph()->ops.size());
}

TEST(Names, are_escaped_and_cut_in_the_middle) {
  const auto window = open_null_window({});
  GuiApp app(*window, "");
  app.workspace().show(tiny_graph(), "");
  app.settle();
  std::string odd;
  std::string chinese;
  std::string cut;
  window->frame([&] {
    odd = shown("\x1b[31mred\xff");
    chinese = shown("\xE4\xB8\xAD x");
    cut = elided("model.layers.17.self_attn.q_proj.weight", 100);
    EXPECT_LE(ImGui::CalcTextSize(cut.c_str()).x, 100);
  });
  EXPECT_EQ(odd.find('\x1b'), std::string::npos);
  EXPECT_EQ(odd.find('\xff'), std::string::npos);
  EXPECT_EQ(chinese, "\\u{4E2D} x");
  EXPECT_TRUE(cut.starts_with("mod"));
  EXPECT_TRUE(cut.ends_with("ght"));
}

// Whole parts go, in the middle: the first and the last stay. What precedes the number of a layer goes
// before.
TEST(Names, lose_what_they_share_and_keep_their_end) {
  const auto window = open_null_window({});
  GuiApp app(*window, "");
  app.workspace().show(tiny_graph(), "");
  app.settle();
  window->frame([&] {
    const std::string more = "\xE2\x80\xA6", whole = "model.layers.17.self_attn.q_proj.weight";
    const auto cut_to = [](std::string_view name, std::string_view shown_part) {
      return elided_name(name, text_width(shown_part) + 0.5f);
    };
    EXPECT_EQ(cut_to(whole, whole), whole);
    for (const std::string& cut : {std::string("17.self_attn.q_proj.weight"), "17" + more + "q_proj.weight",
                                   "17" + more + "proj.weight", "17" + more + "weight"})
      EXPECT_EQ(cut_to(whole, cut), cut);
    EXPECT_EQ(cut_to("model.embed_tokens.weight", "model" + more + "tokens.weight"),
              "model" + more + "tokens.weight");
    EXPECT_EQ(cut_to("embed_tokens.weight", "embed_" + more + "weight"), "embed_" + more + "weight");
    EXPECT_EQ(cut_to("/model/layer.0/attn/MatMul", "/model" + more + "attn/MatMul"),
              "/model" + more + "attn/MatMul");
    EXPECT_EQ(cut_to("layer2.0.down.weight", "layer2" + more + "down.weight"),
              "layer2" + more + "down.weight");
    EXPECT_EQ(cut_to("12  Conv  /layer1/layer1.0/conv1/Conv", "12  Conv  /layer1" + more + "conv1/Conv"),
              "12  Conv  /layer1" + more + "conv1/Conv");
    // and what all rows of a list begin with
    EXPECT_EQ(shared_parts("blk.0.ffn_down.weight", 21, "blk.0.ffn_up.weight"), 6u);
    EXPECT_EQ(shared_parts("blk.0.ffn_down.weight", 6, "blk.10.ffn_up.weight"), 4u);
    EXPECT_EQ(shared_parts("blk.0.ffn_down.weight", 4, "output.weight"), 0u);
    // a part of a number would be another number
    for (float width = 10; width < 200; width += 3) {
      const std::string cut = elided("step 123456 of 9,876,543", width);
      for (std::size_t at = cut.find_first_of("0123456789"); at != std::string::npos;) {
        const std::size_t end = std::min(cut.find_first_not_of("0123456789,", at), cut.size());
        const std::string number = cut.substr(at, end - at);
        EXPECT_TRUE(number == "123456" || number == "9,876,543") << cut;
        at = cut.find_first_of("0123456789", end);
      }
    }
  });
}

}  // namespace

// --- What a frame costs grows no faster than what it cannot show. Allocated bytes stand for the work: all
// that is built to be drawn, or to be measured and thrown away, is allocated.

namespace {

std::atomic<std::uint64_t> allocated_bytes = 0;

}  // namespace
}  // namespace loadline::gui

// not inlined: the compiler would take their memory for that of its own operators
[[gnu::noinline]] void* operator new(std::size_t bytes) {
  loadline::gui::allocated_bytes += bytes;
  if (void* const memory = std::malloc(std::max<std::size_t>(bytes, 1))) return memory;
  throw std::bad_alloc();
}
[[gnu::noinline]] void operator delete(void* memory) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }

namespace loadline::gui {
namespace {

std::string repeated(std::string_view part, std::size_t count) {
  std::string text;
  for (std::size_t i = 0; i < count; ++i) text += part;
  return text;
}

// What one frame of the window allocates with each panel in front, once all is settled.
std::vector<std::uint64_t> frame_costs(const graph::MetaGraph& graph) {
  const auto window = open_null_window({});
  GuiApp app(*window, "");
  app.workspace().show(std::make_shared<const graph::MetaGraph>(graph), "");
  app.workspace().document().select(graph::TensorId{0});
  std::vector<std::uint64_t> costs;
  for (const PanelRow& row : panels()) {
    app.workspace().settings.panel = row.id;
    app.settle();
    app.draw_settled();
    const std::uint64_t before = allocated_bytes;
    app.frame();
    costs.push_back(allocated_bytes - before);
  }
  return costs;
}

// Four times as much costs about four times as much at most, where what is quadratic costs sixteen times.
void expect_bounded(const char* what, const std::function<graph::MetaGraph(std::size_t)>& make,
                    std::size_t n) {
  const std::vector<std::uint64_t> small = frame_costs(make(n)), large = frame_costs(make(4 * n));
  for (std::size_t i = 0; i < small.size(); ++i)
    EXPECT_LE(large[i], 5 * small[i] + 200'000) << what << ", " << panels()[i].id;
}

graph::MetaGraph with_name(std::string name) {
  graph::MetaGraph graph = *tiny_graph();
  graph.tensors[0].name = std::move(name);
  return graph;
}

TEST(Frames, do_not_cost_the_square_of_levels_in_a_name) {
  expect_bounded(
      "levels", [](std::size_t n) { return with_name("a" + repeated(".b", n)); }, 10'000);
}

TEST(Frames, do_not_cost_the_square_of_letters_in_a_name) {
  expect_bounded(
      "letters", [](std::size_t n) { return with_name(std::string(n, 'x')); }, 250'000);
  expect_bounded(
      "escapes", [](std::size_t n) { return with_name(std::string(n, '\xff')); }, 250'000);
}

TEST(Frames, do_not_cost_the_square_of_tensors_in_a_module) {
  const auto wide = [](std::size_t n) {
    graph::MetaGraph graph = *tiny_graph();
    for (std::size_t i = 0; i < n; ++i) {
      graph.tensors.push_back(graph.tensors[0]);
      graph.tensors.back().name = "model." + std::to_string(i);
    }
    return graph;
  };
  expect_bounded("tensors", wide, 10'000);
}

TEST(Frames, do_not_cost_the_square_of_notes) {
  const auto many = [](std::size_t n) {
    graph::MetaGraph graph = *tiny_graph();
    for (std::size_t i = 0; i < n; ++i)
      graph.notes.push_back({graph::Severity::warning, {}, "odd " + std::to_string(i)});
    return graph;
  };
  expect_bounded("notes", many, 50'000);
  const auto longer = [](std::size_t n) {
    graph::MetaGraph graph = *tiny_graph();
    graph.notes.push_back({graph::Severity::warning, std::string(n, 'x'), std::string(n, 'y')});
    graph.metadata.push_back({std::string(n, 'k'), repeated("word ", n)});
    return graph;
  };
  expect_bounded("long notes", longer, 250'000);
}

TEST(Names, that_no_window_has_room_for_keep_their_ends) {
  const auto window = open_null_window({});
  GuiApp app(*window, "");
  window->frame([&] {
    const std::string whole = shown("begin" + std::string(1'000'000, 'x') + "end");
    EXPECT_LE(whole.size(), 5000u);
    EXPECT_TRUE(whole.starts_with("begin"));
    EXPECT_TRUE(whole.ends_with("end"));
    const std::string wide = shown(repeated("\xE2\x82\xAC", 1'000'000));
    EXPECT_EQ(wide.find("\\x"), std::string::npos) << "cut between characters";
    for (const float width : {50.0f, 200.0f, 777.0f}) {
      const std::string cut = elided_name("model" + repeated(".7.part", 10'000) + ".weight", width);
      EXPECT_LE(text_width(cut), width);
      EXPECT_GT(text_width(cut), width / 2);
    }
  });
}

}  // namespace

// --- Every step of every lesson drawn, beside the views and in front of an audience; its keys. No window.

namespace {

class LessonInWindow : public ::testing::Test {
 protected:
  void settle() {
    app_.settle();
    app_.draw_settled();
    app_.settle();
    app_.draw_settled();
  }
  void run(std::string_view action, const std::string& argument = "") {
    find_action(action)->run(workspace_, argument);
    settle();
  }
  void press(int key) {
    ImGui::GetIO().KeysDown[key] = true;
    app_.frame();
    ImGui::GetIO().KeysDown[key] = false;
    app_.frame();
    settle();
  }
  static bool shows(std::string_view words) {
    return drawn_text().find(without_blanks(words)) != std::string::npos;
  }
  void expect_no_error(const std::string& where) {
    for (const Notice& notice : workspace_.services.notices.all())
      EXPECT_NE(notice.severity, graph::Severity::error) << where << ": " << notice.text;
  }

  static constexpr int kSpace = 32, kEscape = 256, kRight = 262, kLeft = 263, kPageUp = 266, kPageDown = 267;
  const std::unique_ptr<Window> window_ = open_null_window({.width = 1280, .height = 720});
  GuiApp app_{*window_, ""};
  Workspace& workspace_ = app_.workspace();
};

TEST_F(LessonInWindow, every_step_of_every_lesson) {
  std::vector<std::string> ids;
  for (const lesson::Lesson& lesson : workspace_.lesson.all()) ids.push_back(lesson.id);
  for (const std::string& id : ids) {
    run("lesson", id);
    const LessonPlay& play = workspace_.lesson;
    for (std::size_t at = 0; at < play.count(); ++at) {
      const std::string where = id + ", step " + play.lesson().steps[at].id;
      run("lesson-step", std::to_string(at + 1));
      EXPECT_TRUE(play.to_show.empty()) << where;
      expect_no_error(where);
      EXPECT_TRUE(shows("Step " + std::to_string(at + 1) + " of")) << where;
      EXPECT_EQ(shows("Check"),
                play.step().ask && std::holds_alternative<lesson::AskNumber>(play.step().ask->kind))
          << where;
      workspace_.settings.dark = !workspace_.settings.dark;
      run("present", "on");
      EXPECT_FALSE(shows("Reset the view")) << where;
      if (play.step().ask) run("lesson-answer");
      run("present", "off");
      expect_no_error(where);
    }
  }
  run("lesson-leave");
  EXPECT_TRUE(shows("What runs on this machine?"));
}

TEST_F(LessonInWindow, a_line_that_cannot_be_run_is_a_notice) {
  run("lesson", "six-ways");
  for (const char* line : {"fly", "quit", "convert gguf out.gguf", "panel nowhere", "panel",
                           "method teleport", "export window out.png", "zoom-out now"})
    EXPECT_THROW(run_lesson_line(workspace_, line), Error) << line;
  EXPECT_FALSE(workspace_.services.requests.holds<Quit>());
  workspace_.lesson.to_show = {"panel nowhere", "time end", "panel values"};
  settle();
  EXPECT_EQ(workspace_.settings.panel, "values");  // the lines after it are run
  ASSERT_EQ(workspace_.services.notices.all().size(), 1u);
  EXPECT_EQ(loadline::testing::facts(workspace_.services.notices.all()[0].text), "'panel nowhere' 'nowhere'");
}

TEST_F(LessonInWindow, keys_turn_its_steps) {
  run("lesson", "six-ways");
  const LessonPlay& play = workspace_.lesson;
  press(kPageDown);
  EXPECT_EQ(play.at(), 1u);
  EXPECT_TRUE(ImGui::GetIO().WantTextInput) << "the answer has the keyboard";
  press(kPageDown);
  press(kPageDown);
  press(kPageUp);
  EXPECT_EQ(play.at(), 2u);
  run("present", "on");
  EXPECT_TRUE(shows("How many GiB"));
  press(kSpace);  // the answer first
  EXPECT_EQ(play.at(), 2u);
  EXPECT_FALSE(play.is_open());
  press(kRight);
  EXPECT_EQ(play.at(), 3u);
  press(kLeft);
  EXPECT_EQ(play.at(), 2u);
  EXPECT_FALSE(workspace_.document().time.playing());
  press(kEscape);
  EXPECT_FALSE(play.presents);
  EXPECT_TRUE(play.plays());
  press(kRight);
  EXPECT_EQ(play.at(), 2u);
}

TEST_F(LessonInWindow, its_cross_leaves_it) {
  run("lesson", "six-ways");
  const std::vector<ImVec2> present = drawn_at("Present");
  ASSERT_EQ(present.size(), 1u);
  const float x = 1280 - 10 - 14 - 12;  // the margin, the padding of the card, half of the button
  for (const bool down : {false, true, false}) {
    window_->set_mouse(x, present[0].y, down);
    app_.frame();
    app_.frame();
  }
  settle();
  EXPECT_FALSE(workspace_.lesson.plays());
}

TEST_F(LessonInWindow, enter_checks_the_answer) {
  run("lesson", "six-ways");
  run("lesson-step", "next");
  ImGui::GetIO().AddInputCharactersUTF8("12.8");
  settle();
  EXPECT_EQ(workspace_.lesson.now().typed, "12.8");
  press(257);
  ASSERT_TRUE(workspace_.lesson.now().judged);
  EXPECT_TRUE(workspace_.lesson.now().judged->right);
  EXPECT_TRUE(shows("Right: it is"));
  EXPECT_TRUE(shows("Published: 12.8"));
}

}  // namespace

// --- Saved requests and remedies: what is asked again, otherwise, or of another model.

namespace {

namespace fs = std::filesystem;

class Requests : public ::testing::Test {
 protected:
  void play(const std::string& lines) { play_script(app_, parse_script(lines, "s"), "s"); }
  std::string refusal(const std::string& lines) {
    return loadline::testing::facts_of([&] { play(lines); });
  }
  // The demo model in a folder of its own.
  std::string demo() {
    play("demo\nwait\n");
    const std::string copy = folder_ / "model";
    fs::copy(workspace_.document().model->path, copy, fs::copy_options::recursive);
    play("close\n");
    return copy;
  }
  const load::LoadRequest& request() const { return workspace_.document().load.asked().request; }

  const loadline::testing::TemporaryFolder folder_;
  const std::unique_ptr<Window> window_ = open_null_window({});
  GuiApp app_{*window_, ""};
  Workspace& workspace_ = app_.workspace();
};

TEST_F(Requests, a_model_whose_shard_is_a_link_elsewhere_can_be_opened) {
  const std::string model = demo();
  fs::path shard;
  for (const auto& entry : fs::directory_iterator(model))
    if (entry.path().extension() == ".safetensors") shard = entry.path();
  ASSERT_FALSE(shard.empty());
  fs::rename(shard, folder_ / "elsewhere.safetensors");
  fs::create_symlink(folder_ / "elsewhere.safetensors", shard);
  play("open " + model + "\nwait\nexpect-notice elsewhere.safetensors\n");
  EXPECT_FALSE(workspace_.document().model);
  ASSERT_EQ(workspace_.services.notices.all().size(), 1u);
  EXPECT_EQ(workspace_.services.notices.all()[0].remedy, (Remedy{"follow_links", "on"}));
  app_.draw_settled();
  EXPECT_NE(drawn_text().find("Followlinks"), std::string::npos);
  play("mend\nwait\n");
  ASSERT_TRUE(workspace_.document().model);
  EXPECT_EQ(workspace_.document().model->errors, 0u);
  EXPECT_TRUE(workspace_.services.notices.all().empty());
  EXPECT_EQ(refusal("mend\n"), "usage s 1");
}

TEST_F(Requests, findings_set_options_of_the_load_and_of_a_conversion) {
  workspace_.show(many_tensors(10), "");
  app_.settle();
  EXPECT_EQ(remedy_title(std::vector<Remedy>{{"order", "largest"}}), "Set Order to largest");
  workspace_.mend({{"order", "largest"}});
  EXPECT_EQ(request().orders, std::vector<std::string>{"largest"});
  const std::vector<Remedy> settings = {{"to", "gguf"}, {"align", "4096"}};
  EXPECT_EQ(remedy_kind(settings), RemedyKind::convert);
  workspace_.mend(settings);
  EXPECT_EQ(workspace_.settings.panel, "convert");
  EXPECT_EQ(workspace_.document().checks.suggested, settings);
  EXPECT_THROW(workspace_.mend({{"no_such_option", "on"}}), Error);
}

TEST_F(Requests, are_saved_and_opened_with_their_model) {
  const std::string model = demo();
  const std::string file = folder_ / "small.json";
  play("open " + model +
       "\nwait\nmethod accelerate\norder largest\nevery-order on\nauto_map 16MiB\nseq 64\n"
       "device_budget 64MiB\nsave-request " +
       file + "\n");
  EXPECT_EQ(load::read_request(file).request.sequence, 0u);  // no pass follows the load
  EXPECT_EQ(load::read_request(file).model, model);
  play("first-token on\nactivations 1MiB\nsave-request " + file + "\nclose\nmethod direct\n");
  const load::LoadRequest saved = load::read_request(file).request;
  EXPECT_EQ(saved.sequence, 64u);
  EXPECT_EQ(saved.activation_bytes, 0u);
  load::check_request(saved);
  for (const char* word : {"open-request ", "open "}) {
    play("close\ntarget none\n" + (word + file) + "\nwait\n");
    ASSERT_TRUE(workspace_.document().model) << word;
    const Asked& asked = workspace_.document().load.asked();
    EXPECT_EQ(shown_method(asked).id, "accelerate");
    EXPECT_EQ(shown_order(asked), "largest");
    EXPECT_TRUE(asked.every_order);
    EXPECT_TRUE(asked.first_token);
    EXPECT_EQ(request().auto_map, load::MemoryMap{16 << 20});
    EXPECT_EQ(workspace_.document().load.memory().budget.device, 64u << 20);
  }
  EXPECT_EQ(refusal("save-request " + folder_ / "small.txt"), "usage s 1 'small.txt' .json");
  loadline::testing::write_file(file, std::string_view(R"({"schema_version": 2, "options": {"slotz": 3}})"));
  EXPECT_EQ(refusal("open-request " + file), "malformed s 1 small.json 1 44 'slotz'");
  EXPECT_EQ(shown_method(workspace_.document().load.asked()).id, "accelerate");
}

TEST_F(Requests, an_order_that_no_file_holds_is_not_saved) {
  workspace_.show(llama_70b_graph(), "");
  play("wait\npanel methods\nmethods-view order\nframes 2\nwait\nmove-item 1 3\nwait\n");
  const std::string file = folder_ / "own.json", order = folder_ / "order.txt";
  EXPECT_EQ(refusal("save-request " + file), "usage s 1");
  EXPECT_FALSE(fs::exists(file));
  play("save-order " + order + "\nwait\norder " + order + "\nwait\nsave-request " + file + "\n");
  EXPECT_EQ(load::read_request(file).request.orders, std::vector<std::string>{order});
  EXPECT_EQ(workspace_.document().load.projection.value()->order, order);
}

TEST_F(Requests, targets_of_ones_own_are_offered) {
  load::Target own = load::built_in_targets().front();
  own.id = "my-machine";
  workspace_.services.targets = std::make_shared<const std::vector<load::Target>>(1, own);
  workspace_.show(llama_70b_graph(), "");
  play("wait\ntarget my-machine\nwait\n");
  EXPECT_EQ(workspace_.document().load.memory().target->id, "my-machine");
  EXPECT_EQ(workspace_.document().load.comparison.value()->answer.bound->memory.target->id, "my-machine");
}

}  // namespace

}  // namespace loadline::gui
