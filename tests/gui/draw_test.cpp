// Every panel in every state, drawn without a window, with a mouse that goes everywhere.
#include "app/gui/gui_app.h"
#include "app/gui/script.h"
#include "app/gui/widgets.h"
#include "tests/gui/sample_graphs.h"

#include <gtest/gtest.h>
#include <imgui.h>

namespace loadline::gui {
namespace {

struct State {
  const char* name;
  void (*prepare)(Session& session);
};

const State kStates[] = {
    {"empty", [](Session&) {}},
    {"tiny", [](Session& session) { session.show(tiny_graph(), ""); }},
    {"no_tensors", [](Session& session) { session.show(std::make_shared<const MetaGraph>(), ""); }},
    {"llama_70b", [](Session& session) { session.show(llama_70b_graph(), ""); }},
    {"many", [](Session& session) { session.show(many_tensors(100'000), ""); }},
    {"failed", [](Session& session) { session.open("/nonexistent"); }},
    {"unsound", [](Session& session) { session.show(unsound_graph(), ""); }},
    {"talkative", [](Session& session) { session.show(talkative_graph(), ""); }},
    {"unknown_device",
     [](Session& session) {
       session.show(tiny_graph(), "");
       session.set_device("no device is called this");
     }},
    {"unlisted_folder",
     [](Session& session) {
       session.browse("/nonexistent");
       session.wants_browser = true;
     }},
};

class Drawing : public testing::TestWithParam<State> {};

TEST_P(Drawing, every_panel_at_every_size) {
  const auto window = open_null_window({});
  GuiApp app(*window, "");
  GetParam().prepare(app.session());
  app.frame();  // while the jobs are under way
  app.settle();
  if (app.session().model() && !app.session().model()->graph->tensors.empty())
    app.session().select(TensorId{0});
  for (const auto& [width, height] : {std::pair(kLeastWidth, kLeastHeight), std::pair(1280, 720),
                                      std::pair(1920, 1080), std::pair(420, 260)}) {
    window->set_size(width, height);
    for (const PanelRow& row : panels()) {
      app.session().panel = row.id;
      app.session().dark = !app.session().dark;
      app.draw_settled();
      EXPECT_GT(ImGui::GetDrawData()->TotalVtxCount, 0) << row.id;
    }
  }
}

TEST_P(Drawing, every_panel_under_the_mouse) {
  const auto window = open_null_window({});
  GuiApp app(*window, "");
  GetParam().prepare(app.session());
  app.settle();
  for (const PanelRow& row : panels()) {
    app.session().panel = row.id;
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

TEST_P(Drawing, every_colouring_and_zoom) {
  const auto window = open_null_window({});
  GuiApp app(*window, "");
  GetParam().prepare(app.session());
  app.settle();
  app.session().panel = "treemap";
  for (std::size_t mode = 0; mode < kColorModes; ++mode) {
    app.session().color_by(static_cast<ColorBy>(mode));
    if (app.session().model()) app.session().zoom(NodeId{static_cast<std::uint32_t>(mode)});
    app.draw_settled();
  }
}

INSTANTIATE_TEST_SUITE_P(States, Drawing, testing::ValuesIn(kStates),
                         [](const testing::TestParamInfo<State>& state) {
                           return std::string(state.param.name);
                         });

TEST(Mouse, a_click_in_the_table_selects_everywhere) {
  const auto window = open_null_window({});
  GuiApp app(*window, "");
  app.session().show(llama_70b_graph(), "");
  app.session().panel = "tensors";
  app.settle();
  app.draw_settled();
  play_script(app, parse_script("click 420 220\n", "inline"), "inline");
  EXPECT_TRUE(app.session().selection());
}

TEST(Mouse, a_click_in_the_map_selects_and_a_double_click_zooms) {
  const auto window = open_null_window({});
  GuiApp app(*window, "");
  app.session().show(llama_70b_graph(), "");
  app.session().panel = "treemap";
  app.settle();
  app.draw_settled();
  play_script(app, parse_script("click 400 300\n", "inline"), "inline");
  ASSERT_TRUE(app.session().selection());
  const NodeId node = app.session().model()->nodes[index(*app.session().selection())];
  play_script(app, parse_script("double-click 400 300\n", "inline"), "inline");
  EXPECT_EQ(app.session().zoomed(), app.session().model()->tree.node(node).parent);
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

TEST(Names, are_escaped_and_cut_in_the_middle) {
  const auto window = open_null_window({});
  GuiApp app(*window, "");
  app.session().show(tiny_graph(), "");
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

}  // namespace
}  // namespace loadline::gui
