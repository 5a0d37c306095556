// What is to be seen in each panel, drawn alone: a panel that draws nothing, or something else, fails here.
#include "app/gui/frame/gui_app.h"
#include "app/gui/panels/panels.h"
#include "app/gui/window/window.h"
#include "tests/gui/drawn_text.h"
#include "tests/gui/null_window.h"
#include "tests/gui/sample_graphs.h"
#include "tests/gui/states.h"

#include <functional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include <gtest/gtest.h>
#include <imgui.h>

namespace loadline::gui {
namespace {

class EmptyPanel final : public Panel {
 public:
  void draw_content(Workspace&, const Ui&) override {}
};

struct Seen {
  std::string text;
  int vertices = 0;
};

// A window with one panel in it, and nothing around that.
class Stage {
 public:
  Stage() {
    ui_.fonts = load_fonts(1);
    window_->upload_fonts();
    look(true);
  }

  void look(bool dark) {
    ui_.theme = dark ? &dark_theme() : &light_theme();
    apply_theme(*ui_.theme, 1);
  }

  // Once the jobs are done that the panel asks for, and what depends on its layout has found its place.
  Seen draw(Panel& panel, ImVec2 size = {1280, 760}) {
    return draw_frames(panel, size, [&] {
      while (workspace.busy())
        if (!workspace.poll()) std::this_thread::yield();
    });
  }
  // While jobs run: what they answer is not taken in.
  Seen draw_meanwhile(Panel& panel) {
    return draw_frames(panel, {1280, 760}, [] {});
  }
  Seen draw(std::string_view id) { return draw(*find_panel(id).make()); }

  Workspace workspace{""};

 private:
  Seen draw_frames(Panel& panel, ImVec2 size, const std::function<void()>& before) {
    window_->set_size(static_cast<int>(size.x), static_cast<int>(size.y));
    constexpr int kFrames = 4;
    for (int i = 0; i < kFrames; ++i) {
      before();
      window_->frame([&] {
        ImGui::SetNextWindowPos({0, 0});
        ImGui::SetNextWindowSize(size);
        ImGui::Begin("stage", nullptr, ImGuiWindowFlags_NoDecoration | ImGuiWindowFlags_NoMove);
        panel.draw(workspace, ui_);
        ImGui::End();
      });
    }
    return {drawn_text(), ImGui::GetDrawData()->TotalVtxCount};
  }

  const std::unique_ptr<Window> window_ = open_null_window({});
  Ui ui_;
};

class Panels : public ::testing::TestWithParam<State> {};

TEST_P(Panels, draw_something_to_read_in_every_state) {
  Stage stage;
  GetParam().prepare(stage.workspace);
  EmptyPanel empty;
  for (const bool dark : {true, false}) {
    stage.look(dark);
    const Seen nothing = stage.draw(empty);
    EXPECT_EQ(nothing.text, "");
    for (const PanelRow& row : panels()) {
      const Seen seen = stage.draw(row.id);
      EXPECT_GT(seen.vertices, nothing.vertices) << row.id;
      EXPECT_NE(seen.text, "") << row.id;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(States, Panels, ::testing::ValuesIn(states().begin(), states().end()),
                         [](const ::testing::TestParamInfo<State>& state) {
                           return std::string(state.param.name);
                         });

// A panel, and words that stand in it.
struct Expected {
  const char* panel;
  std::vector<const char*> words;
};

void expect_words(const char* state, const std::vector<Expected>& expected) {
  Stage stage;
  for (const State& known : states())
    if (known.name == std::string_view(state)) known.prepare(stage.workspace);
  ASSERT_EQ(expected.size(), panels().size());
  for (const auto& [panel, words] : expected) {
    const Seen seen = stage.draw(std::string_view(panel));
    for (const char* const word : words)
      EXPECT_NE(seen.text.find(without_blanks(word)), std::string::npos)
          << state << ", " << panel << ": '" << word << "' is not in: " << seen.text;
  }
}

TEST(PanelTexts, say_what_is_in_a_model) {
  expect_words("llama_70b",
               {{"map", {"Role", "Shard", "layers 127.50 GiB", "attention 22.50 GiB", "norm 2.52 MiB"}},
                {"load", {"staged_ring in file order", "Device", "Staging"}},
                {"methods", {"Peak law", "layer_streaming", "staged_ring", "Every order"}},
                {"operators", {"1,364 operators", "layers.0-79", "input_layernorm", "lm_head"}},
                {"lifetimes", {"Activations 92.25 MiB", "327,680 bytes per token", "Alive at the peak"}},
                {"arena", {"Buffers 1,286", "Lower bound 92.25 MiB", "Forward pas"}},
                {"tensors", {"723 tensors, 131.42 GiB", "model.embed_tokens.weight", "2,101,346,304"}},
                {"values", {"No tensor is selected"}},
                {"model", {"141,107,412,992 bytes", "70,553,706,496", "model-13.safetensors"}},
                {"metadata", {"1 key", "config.json", "LlamaForCausalLM"}},
                {"findings", {"Look into the files", "Opening it found nothing odd"}},
                {"convert", {"Write as", "723 tensors, 131.42 GiB, from 30 files", "Replace files"}},
                {"upload",
                 {"Upload to", "Staging ring 64MiB", "Readers the free cores", "Reading cache", "Verify",
                  "Projected", "131.42 GiB", "Times by assumed rates"}},
                {"diff", {"Only one model is open"}}});
}

TEST(PanelTexts, say_what_will_be_there_without_a_model) {
  expect_words("empty", {{"map", {"No model is open", "tensor by tensor"}},
                         {"load", {"No model is open", "block by block"}},
                         {"methods", {"No model is open", "Every way of loading it"}},
                         {"operators", {"No model is open", "What it computes"}},
                         {"lifetimes", {"No model is open", "is alive"}},
                         {"arena", {"Example: greedy fails", "Buffers 10", "Lower bound 1.00 MiB"}},
                         {"tensors", {"No model is open", "Its tensors"}},
                         {"values", {"No model is open", "numbers of the selected tensor"}},
                         {"model", {"No model is open", "Its figures"}},
                         {"metadata", {"No model is open", "say of themselves"}},
                         {"findings", {"No model is open", "wrong with its files"}},
                         {"convert", {"No model is open", "mmap-friendly file"}},
                         {"upload", {"No model is open", "to a GPU"}},
                         {"diff", {"No model is open", "another one beside it"}}});
}

TEST(PanelTexts, say_what_differs_between_two_models) {
  Stage stage;
  stage.workspace.show(preset_graph("demo"), "");
  stage.workspace.show(tiny_graph(), "");
  const Seen seen = stage.draw("diff");
  for (const char* const word :
       {"against model", "differ 76", "only here 1", "only there 73", "model.embed_tokens.weight"})
    EXPECT_NE(seen.text.find(without_blanks(word)), std::string::npos) << word << " is not in " << seen.text;
}

TEST(PanelTexts, list_the_differences_again_after_another_tab) {
  Stage stage;
  stage.workspace.show(preset_graph("demo"), "");
  stage.workspace.show(tiny_graph(), "");
  const auto panel = find_panel("diff").make();
  const std::string before = stage.draw(*panel).text;
  panel->forget();  // another tab was shown, and nothing of its differences was there yet
  EXPECT_EQ(stage.draw(*panel).text, before);
  EXPECT_NE(before.find("onlythere"), std::string::npos);
}

TEST(PanelTexts, follow_what_is_chosen) {
  Stage stage;
  stage.workspace.show(llama_70b_graph(), "");
  Document& document = stage.workspace.document();
  const auto shows = [&](const char* panel, const char* words) {
    return stage.draw(std::string_view(panel)).text.find(without_blanks(words)) != std::string::npos;
  };
  EXPECT_FALSE(shows("load", "sequential"));
  document.set_option("method", "sequential");
  EXPECT_TRUE(shows("load", "sequential"));
  document.set_filter("layer:3");
  EXPECT_TRUE(shows("tensors", "9 of 723 tensors"));
  document.select(document.table().rows.front());
  EXPECT_TRUE(shows("tensors", "model.layers.3.input_layernorm.weight"));
  EXPECT_FALSE(shows("tensors", "model.layers.4.input_layernorm.weight"));
  stage.workspace.settings.color_by = ColorBy::dtype;
  EXPECT_TRUE(shows("map", "BF16 131.42 GiB"));
}

TEST(PanelTexts, of_an_upload_before_while_and_after) {
  Stage stage;
  stage.workspace.open_demo();
  const auto panel = find_panel("upload").make();
  const auto expect = [](const Seen& seen, std::initializer_list<const char*> words) {
    for (const char* const word : words)
      EXPECT_NE(seen.text.find(without_blanks(word)), std::string::npos)
          << word << " is not in " << seen.text;
  };
  expect(stage.draw(*panel), {"fits", "available", "Reading cache", "About"});
  stage.workspace.document().set_option("reading", "cold");
  stage.draw(*panel);
  stage.workspace.upload();
  expect(stage.draw_meanwhile(*panel), {"Reading cold", "Uploading", "Measured so far", "measured: process"});
  expect(stage.draw(*panel), {"Uploaded", "every byte verified", "projected", "measured",
                              "Times by assumed rates", "Counted by the system", "measured: allocated"});
}

TEST(PanelTexts, of_the_values_of_a_tensor) {
  Stage stage;
  stage.workspace.open_demo();
  stage.draw("values");
  Document& document = stage.workspace.document();
  ASSERT_TRUE(document.model);
  const auto shows = [&](const char* words) {
    return stage.draw("values").text.find(without_blanks(words)) != std::string::npos;
  };
  document.select(TensorId{0});
  EXPECT_TRUE(shows("Deviation"));
  ASSERT_TRUE(document.values.picture.value());
  const auto cells = document.values.picture.value()->cells;
  EXPECT_EQ(cells.mean.size(), cells.height * cells.width);
  const CellRange whole = document.values.range();
  document.values.zoom({0, 4, 0, 4});
  stage.draw("values");
  EXPECT_EQ(document.values.cells()->range, (CellRange{0, 4, 0, 4}));
  document.values.zoom(whole);
  EXPECT_EQ(document.values.cells()->range, whole);
  document.values.keep(TensorId{0});
  TensorId other{0};  // another of the same shape
  for (std::uint32_t i = 1; i < document.model->graph->tensors.size() && other == TensorId{0}; ++i)
    for (std::uint32_t k = 1; k < i; ++k)
      if (document.model->graph->tensors[i].shape == document.model->graph->tensors[k].shape) {
        document.values.keep(TensorId{k});
        other = TensorId{i};
        break;
      }
  document.select(other);
  EXPECT_TRUE(shows("relative error"));
  EXPECT_TRUE(shows("Let go"));
  const auto& tensors = document.model->graph->tensors;
  const auto longer = std::ranges::find_if(tensors, [&](const Tensor& tensor) {
    return elements(tensor) != elements(document.model->tensor(*document.values.kept()));
  });
  ASSERT_NE(longer, tensors.end());
  document.select(TensorId{static_cast<std::uint32_t>(longer - tensors.begin())});
  EXPECT_TRUE(shows("Cannot be compared"));
}

TEST(PanelTexts, of_the_parts_around_the_panels) {
  Stage stage;
  stage.workspace.show(llama_70b_graph(), "");
  Document& document = stage.workspace.document();
  const auto inspector = make_inspector_panel(), timeline = make_timeline_panel(), tree = make_tree_panel();
  const auto shows = [&](Panel& panel, const char* words, ImVec2 size = {420, 700}) {
    return stage.draw(panel, size).text.find(without_blanks(words)) != std::string::npos;
  };
  const ImVec2 wide = {1200, 240};
  EXPECT_TRUE(shows(*timeline, "device peak 131.42 GiB", wide));
  EXPECT_TRUE(shows(*timeline, "host peak 64.00 MiB", wide));
  EXPECT_FALSE(shows(*timeline, "budget", wide));
  document.set_option("device_budget", "160GiB");
  EXPECT_TRUE(shows(*timeline, "160 GiB budget", wide));
  EXPECT_TRUE(shows(*inspector, "Parameters 70.6 B"));
  EXPECT_TRUE(shows(*inspector, "Alive at the peak 131.48 GiB"));
  document.set_step(0);
  EXPECT_TRUE(shows(*inspector, "Alive at step 0"));
  document.select(TensorId{0});
  EXPECT_TRUE(shows(*inspector, "model.embed_tokens.weight"));
  EXPECT_TRUE(shows(*inspector, "At byte"));
  EXPECT_TRUE(shows(*timeline, "selected", wide));
  document.select(document.model->tree.root().children.front());
  EXPECT_TRUE(shows(*inspector, "Show in the map"));
  document.select(LoadOf{"to_device", "file"});
  EXPECT_TRUE(shows(*inspector, "Peak law"));
  document.select(OperatorAt{5});
  EXPECT_TRUE(shows(*inspector, "Takes"));
  document.select(BlockId{0});
  EXPECT_TRUE(shows(*inspector, "Alive"));
  document.set_filter("layer:3");
  EXPECT_TRUE(shows(*tree, "9 of 723 tensors"));
  document.set_filter("size:");
  EXPECT_TRUE(shows(*tree, "size"));
}

}  // namespace
}  // namespace loadline::gui
