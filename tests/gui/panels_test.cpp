// Each panel drawn alone, and its colors.

#include "app/gui/panels/panels.h"

#include "app/gui/frame/actions.h"
#include "app/gui/frame/facts.h"
#include "app/gui/frame/gui_app.h"
#include "app/gui/frame/overlays.h"
#include "app/gui/panels/arena_plot.h"
#include "app/gui/panels/forward/forward.h"
#include "app/gui/panels/load_rows.h"
#include "app/gui/parts/theme.h"
#include "app/gui/window/window.h"
#include "tests/gui/harness.h"
#include "tests/gui/sample_graphs.h"
#include "tests/support/builders.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <limits>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <variant>
#include <vector>

#include <gtest/gtest.h>
#include <imgui.h>
#include <nlohmann/json.hpp>

namespace loadline::gui {

// --- What is to be seen in each panel, drawn alone: a panel that draws nothing, or something else, fails
// here.

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
                {"graph", {"Model", "1,364 operators", "1,363 operators", "lm_head", "Whole"}},
                {"lifetimes", {"Activations 92.25 MiB", "327,680 bytes per token", "In the pass, at"}},
                {"arena", {"Buffers 1,286", "Lower bound 92.25 MiB", "Forward pas"}},
                {"tensors", {"723 tensors, 131.42 GiB", "model.embed_tokens.weight", "2,101,346,304"}},
                {"values", {"No tensor is selected"}},
                {"model", {"141,107,412,992 bytes", "70,553,706,496", "model-13.safetensors"}},
                {"bytes",
                 {"30 files, 131.42 GiB. staged_ring reads in file order, 29 jumps", "model-13",
                  "model.embed_tokens", "read last", "attention 22.50 GiB"}},
                {"metadata", {"1 key", "config.json", "LlamaForCausalLM"}},
                {"findings", {"Check files", "No problems in the headers"}},
                {"convert", {"Write as", "723 tensors, 131.42 GiB, from 30 files", "Replace files"}},
                {"upload",
                 {"Upload to", "Staging ring 64.00 MiB", "Readers the free cores", "Reading cache", "Verify",
                  "Projected", "131.42 GiB", "Times by assumed rates"}},
                {"diff", {"Only one model is open"}}});
}

TEST(PanelTexts, say_what_will_be_there_without_a_model) {
  expect_words("empty", {{"map", {"No model is open", "tensor by tensor"}},
                         {"load", {"No model is open", "each block of memory"}},
                         {"methods", {"No model is open", "Compares every load method"}},
                         {"operators", {"No model is open", "Lists the operators"}},
                         {"graph", {"No model is open", "what flows between them"}},
                         {"lifetimes", {"No model is open", "is in memory"}},
                         {"arena", {"Example: greedy fails", "Buffers 10", "Lower bound 1.00 MiB"}},
                         {"tensors", {"No model is open", "Lists the tensors"}},
                         {"values", {"No model is open", "numbers of the selected tensor"}},
                         {"model", {"No model is open", "Shows figures"}},
                         {"bytes", {"No model is open", "the bytes of each file as a strip"}},
                         {"metadata", {"No model is open", "Lists the metadata"}},
                         {"findings", {"No model is open", "Lists problems in the files"}},
                         {"convert", {"No model is open", "mmap-friendly file"}},
                         {"upload", {"No model is open", "to a GPU"}},
                         {"diff", {"No model is open", "Open two models"}}});
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
  document.load.set_option("method", "sequential");
  EXPECT_TRUE(shows("load", "sequential"));
  document.table.set_filter("layer:3");
  EXPECT_TRUE(shows("tensors", "9 of 723 tensors"));
  document.select(document.table.view().rows.front());
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
  stage.workspace.document().load.set_option("reading", "cold");
  stage.draw(*panel);
  stage.workspace.transfers.upload(stage.workspace.document());
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
  document.select(graph::TensorId{0});
  EXPECT_TRUE(shows("Deviation"));
  ASSERT_TRUE(document.values.picture.value());
  const auto cells = document.values.picture.value()->cells;
  EXPECT_EQ(cells.mean.size(), cells.height * cells.width);
  const inspect::CellRange whole = document.values.range();
  document.values.zoom({0, 4, 0, 4});
  stage.draw("values");
  EXPECT_EQ(document.values.cells()->range, (inspect::CellRange{0, 4, 0, 4}));
  document.values.zoom(whole);
  EXPECT_EQ(document.values.cells()->range, whole);
  document.values.keep(graph::TensorId{0});
  graph::TensorId other{0};  // another of the same shape
  for (std::uint32_t i = 1; i < document.model->graph->tensors.size() && other == graph::TensorId{0}; ++i)
    for (std::uint32_t k = 1; k < i; ++k)
      if (document.model->graph->tensors[i].shape == document.model->graph->tensors[k].shape) {
        document.values.keep(graph::TensorId{k});
        other = graph::TensorId{i};
        break;
      }
  document.select(other);
  EXPECT_TRUE(shows("relative error"));
  EXPECT_TRUE(shows("Unpin"));
  const auto& tensors = document.model->graph->tensors;
  const auto longer = std::ranges::find_if(tensors, [&](const graph::Tensor& tensor) {
    return graph::elements(tensor) != graph::elements(document.model->tensor(*document.values.kept()));
  });
  ASSERT_NE(longer, tensors.end());
  document.select(graph::TensorId{static_cast<std::uint32_t>(longer - tensors.begin())});
  EXPECT_TRUE(shows("Cannot be compared"));
}

// What is selected in turn, and a fact of it that must be copied.
std::vector<std::pair<Selected, std::string>> one_of_each_kind(const Document& document) {
  return {{Selected(), "\"tensors\": 723"},
          {graph::TensorId{1}, "\"tensor\": \"model.layers.0.input_layernorm.weight\""},
          {document.model->tree.root().children.front(), "\"module\": "},
          {OperatorAt{0}, "\"operator\": 0"},
          {plan::BlockId{0}, "\"memory\": \"device\""},
          {LoadOf{"to_device", "file"}, "\"device\": 141107412992"},
          {FindingAt{0}, "\"severity\": "},
          {graph::OpPlace{.at = 0}, "\"kind\": \"embed\""}};
}

TEST(Facts, OfEveryKindAreDrawnAndCopied) {
  Stage stage;
  stage.workspace.show(llama_70b_graph(), "");
  Document& document = stage.workspace.document();
  document.checks.findings.set(std::vector<inspect::Finding>{{.id = "gaps",
                                                              .severity = graph::Severity::warning,
                                                              .text = "bytes between tensors",
                                                              .cost = "1 MiB",
                                                              .remedy = "convert"}});
  settle(stage.workspace);
  const auto inspector = make_inspector_panel();
  const auto kinds = one_of_each_kind(document);
  ASSERT_EQ(kinds.size(), std::variant_size_v<Selected>);
  for (std::size_t i = 0; i < kinds.size(); ++i) {
    EXPECT_EQ(kinds[i].first.index(), i) << "in the order of the kinds";
    const SelectionFacts of = facts_of(document, kinds[i].first);
    SCOPED_TRACE(of.kind);
    EXPECT_EQ(of.absent, "");
    const nlohmann::json copied = nlohmann::json::parse(facts_text(of, CopyForm::json));
    EXPECT_NE(facts_text(of, CopyForm::json).find(kinds[i].second), std::string::npos)
        << facts_text(of, CopyForm::json);
    document.select(kinds[i].first);
    ASSERT_EQ(document.selected(), kinds[i].first);
    const std::string drawn = stage.draw(*inspector, {420, 900}).text;
    EXPECT_NE(drawn.find(without_blanks(of.kind)), std::string::npos) << drawn;
    for (const Fact& fact : of.facts) {
      EXPECT_EQ(copied.contains(fact.id), !fact.id.empty()) << fact.id;
      if (!fact.lines.empty())
        EXPECT_NE(drawn.find(without_blanks(fact.label)), std::string::npos) << fact.label << ": " << drawn;
    }
  }
}

// Every row of every menu is an action that runs.
TEST(Menu, OffersWhatCanBeDoneWithEachKind) {
  Stage stage;
  stage.workspace.show(llama_70b_graph(), "");
  Document& document = stage.workspace.document();
  document.checks.findings.set(std::vector<inspect::Finding>{{.id = "gaps",
                                                              .severity = graph::Severity::warning,
                                                              .settings = {{"order", "forward"}},
                                                              .example = graph::TensorId{2}}});
  settle(stage.workspace);
  for (const auto& [selected, fact] : one_of_each_kind(document)) {
    document.select(selected);
    const std::vector<Offer> offers = offers_of(stage.workspace, selected);
    ASSERT_GE(offers.size(), 4u) << fact;
    for (const Offer& offer : offers) {
      SCOPED_TRACE(fact + ": " + offer.title);
      for (const Offer::Line& line : offer.lines) {
        const Action* const action = find_action(line.action);
        ASSERT_NE(action, nullptr);
        EXPECT_EQ(action->argument == Argument::none,
                  line.argument.empty() && action->argument == Argument::none);
      }
      if (std::holds_alternative<std::monostate>(selected)) continue;  // it may close the model
      EXPECT_NO_THROW(run_offer(stage.workspace, offer));
      settle(stage.workspace);
    }
  }
}

TEST(Facts, OfATensorLeadToTheOperatorsThatUseIt) {
  Stage stage;
  stage.workspace.show(llama_70b_graph(), "");
  settle(stage.workspace);
  Document& document = stage.workspace.document();
  const SelectionFacts of = facts_of(document, graph::TensorId{1});
  EXPECT_EQ(of.links_title, "Used by");
  ASSERT_FALSE(of.links.empty());
  for (const std::string_view panel : {"map", "tensors", "load", "bytes", "values"})
    EXPECT_NE(std::ranges::find(of.panels, panel), of.panels.end()) << panel;
  document.select(of.links.front().to);
  ASSERT_TRUE(std::holds_alternative<OperatorAt>(document.selected()));
  const std::size_t at = std::get<OperatorAt>(document.selected()).at;
  EXPECT_EQ(document.forward.shown, at) << "the list of operators follows";
  const auto& weights = document.forward.graph()->ops[at].weights;
  EXPECT_NE(std::ranges::find(weights, graph::TensorId{1}), weights.end());
}

TEST(BytesPanel, SelectsAndFollowsTheSelection) {
  Stage stage;
  stage.workspace.show(many_tensors(60'000), "");
  Document& document = stage.workspace.document();
  const auto panel = find_panel("bytes").make();
  const int before = stage.draw(*panel).vertices;
  EXPECT_LT(before, 120'000) << "not each tensor alone";
  document.select(graph::TensorId{31'000});
  EXPECT_GT(stage.draw(*panel).vertices, before) << "an outline";
  document.select(document.model->tree.node(document.model->tree.root().children.front()).children.front());
  EXPECT_GT(stage.draw(*panel).vertices, before);
}

TEST(Facts, AreCopiedInThreeForms) {
  Stage stage;
  stage.workspace.show(llama_70b_graph(), "");
  const Document& document = stage.workspace.document();
  EXPECT_NE(facts_text(facts_of(document, Selected()), CopyForm::text).find("tensors: 723\n"),
            std::string::npos);
  const SelectionFacts tensor = facts_of(document, graph::TensorId{1});
  EXPECT_NE(facts_text(tensor, CopyForm::markdown).find("| dtype | BF16 |\n"), std::string::npos);
  EXPECT_NE(facts_text(tensor, CopyForm::text).find("shape: [8192]\n"), std::string::npos);
}

TEST(Facts, SayWhyThereAreNone) {
  Stage stage;
  stage.workspace.show(llama_70b_graph(), "");
  const Document& document = stage.workspace.document();
  for (const Selected& gone : {Selected(OperatorAt{1u << 30}), Selected(plan::BlockId{1u << 30}),
                               Selected(LoadOf{"no_method", "file"}), Selected(FindingAt{1u << 30})}) {
    const SelectionFacts of = facts_of(document, gone);
    EXPECT_NE(of.absent, "") << of.kind;
    EXPECT_TRUE(of.panels.empty() && of.links.empty()) << of.kind;
  }
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
  document.load.set_option("device_budget", "160GiB");
  EXPECT_TRUE(shows(*timeline, "160 GiB budget", wide));
  EXPECT_TRUE(shows(*inspector, "Parameters 70.6 B"));
  EXPECT_TRUE(shows(*inspector, "In the load, at the peak") && shows(*inspector, "Device131.42 GiB"));
  document.time.set_step(0);
  EXPECT_TRUE(shows(*inspector, "In the load, at step 0"));
  document.select(graph::TensorId{0});
  EXPECT_TRUE(shows(*inspector, "model.embed_tokens.weight"));
  EXPECT_TRUE(shows(*inspector, "At byte"));
  EXPECT_TRUE(shows(*timeline, "selected", wide));
  document.select(document.model->tree.root().children.front());
  EXPECT_TRUE(shows(*inspector, "Parameters"));
  EXPECT_TRUE(shows(*inspector, "Map"));
  document.select(LoadOf{"to_device", "file"});
  EXPECT_TRUE(shows(*inspector, "Peak law"));
  document.select(OperatorAt{5});
  EXPECT_TRUE(shows(*inspector, "Inputs"));
  document.select(plan::BlockId{0});
  EXPECT_TRUE(shows(*inspector, "Alive"));
  document.table.set_filter("layer:3");
  EXPECT_TRUE(shows(*tree, "9 of 723 tensors"));
  // what does not pass is gone; what does is unfolded, with its own totals
  EXPECT_TRUE(shows(*tree, "1.59 GiB 9 layers"));
  EXPECT_TRUE(shows(*tree, "q_proj.weight"));
  EXPECT_FALSE(shows(*tree, "embed_tokens"));
  document.time.set_step(std::nullopt);
  EXPECT_TRUE(shows(*inspector, "9 blocks that pass the filter"));
  document.table.set_filter("size:");
  EXPECT_TRUE(shows(*tree, "size"));
}

}  // namespace

// --- The arena panel under the mouse and under scripts.

namespace {

void play(GuiApp& app, const std::string& text) { play_script(app, parse_script(text, "s"), "s"); }

std::string refusal(GuiApp& app, const std::string& text) {
  return loadline::testing::facts_of([&] { play(app, text); });
}

void move_everywhere(GuiApp& app, int width, int height) {
  for (int y = 60; y < height; y += 70)
    for (int x = 20; x < width; x += 110) {
      app.window().set_mouse(static_cast<float>(x), static_cast<float>(y), false);
      app.frame();
      app.frame();
    }
}

TEST(ArenaPanelDoesNotCrash, BothViewsAtEverySizeUnderTheMouse) {
  for (const bool model : {false, true}) {
    const auto window = open_null_window({});
    GuiApp app(*window, "");
    if (model) app.workspace().show(preset_graph("demo"), "");
    play(app, "panel arena\narena-time 0.1\nwait\n");
    for (const char* view : {"packing", "steps"})
      for (const auto& [width, height] :
           {std::pair(kLeastWidth, kLeastHeight), std::pair(1600, 900), std::pair(420, 260)}) {
        window->set_size(width, height);
        play(app, std::string("arena-view ") + view + "\nframes 2\nwait\nframes 2\n");
        app.workspace().settings.dark = !app.workspace().settings.dark;
        move_everywhere(app, width, height);
      }
  }
}

TEST(ArenaPanel, ScriptsDriveIt) {
  const auto window = open_null_window({});
  GuiApp app(*window, "");
  const loadline::testing::TemporaryFolder folder;
  loadline::testing::write_file(folder / "p.csv", "id,lower,upper,size,arena\na,0,4,100,0\nb,2,6,50,1\n");
  app.workspace().show(preset_graph("demo"), "");
  play(app,
       "wait\npanel arena\narena device\narena-time 0.1\narena-threads 2\narena-capacity 1GiB\nwait\n"
       "arena-zoom 0.25 0.5 0 0.5\nframes 2\n");
  ArenaWork& work = *app.workspace().document().arena;
  EXPECT_EQ(work.scene()->of->source, ArenaSource::device);
  EXPECT_EQ(work.options.threads, 2u);
  EXPECT_EQ(work.options.seconds, 0.1);
  EXPECT_EQ(work.options.capacity, 1u << 30);
  EXPECT_EQ(work.view.time, (PlotRange{0.25, 0.5}));
  EXPECT_EQ(work.view.height, (PlotRange{0, 0.5}));
  play(app,
       "arena example\narena-capacity none\nwait\narena-zoom\narena-view steps\narena-rule start\nwait\n"
       "frames 2\nwait\narena-step end\nframes 2\n");
  ASSERT_TRUE(work.steps());
  EXPECT_EQ(packing::greedy_rules()[work.steps()->rule].id, "start");
  EXPECT_EQ(work.view.step, work.steps()->length());
  EXPECT_EQ(refusal(app, "arena nowhere\n"), "usage s 1 'nowhere'");
  EXPECT_EQ(refusal(app, "arena file\n"), "usage s 1 'file'");
  EXPECT_EQ(refusal(app, "arena-step 1000\n"),
            "usage s 1 '1000' 0 " + std::to_string(work.steps()->length()));
  EXPECT_EQ(refusal(app, "arena-view pie\n"), "usage s 1 'pie'");
  EXPECT_EQ(refusal(app, "arena-zoom 0.5 0.5\n"), "usage s 1 '0.5 0.5' TIME0 TIME1");
  EXPECT_EQ(refusal(app, "arena-zoom 0 1 0 1 0\n"), "usage s 1 '0 1 0 1 0' TIME0 TIME1");
  EXPECT_EQ(refusal(app, "arena-zoom 0 nan\n"), "usage s 1 'nan' 0 1");
  EXPECT_EQ(refusal(app, "arena-rule luck\n"), "usage s 1 'luck'");
  EXPECT_EQ(refusal(app, "arena-number 1\n"), "usage s 1 '1' 0 0");
  play(app, "arena-view packing\nopen " + folder / "p.csv" + "\nwait\narena-number 1\nframes 2\n");
  EXPECT_EQ(work.scene()->of->title, "p.csv");
  EXPECT_EQ(work.view.arena, 1u);
  EXPECT_EQ(refusal(app, "arena-step 1\n"), "") << "those of the example are still there";
}

// Ticks and sizes as large as a file can have them, names that are none.
TEST(ArenaPanel, DrawsWhatAHostileFileHas) {
  const auto window = open_null_window({});
  GuiApp app(*window, "");
  const loadline::testing::TemporaryFolder folder;
  loadline::testing::write_file(
      folder / "far.csv",
      "id,lower,upper,size,gaps\n\x1b[31m,0,18446744073709551615,1,\n\"a,b\",18446744073709551000,"
      "18446744073709551615,4611686018427387000,\n,5,5,7,\n\xff\xfe,1,9,0,\nz,2,100,3,4-5 7-9\n");
  play(app, "open " + folder / "far.csv" + "\nwait\n");
  ASSERT_TRUE(app.workspace().services.notices.all().empty())
      << app.workspace().services.notices.all().front().text;
  ASSERT_TRUE(app.workspace().document().arena->scene()) << app.workspace().document().arena->error();
  for (const char* how :
       {"arena-zoom", "arena-zoom 0.9999 1 0.9999 1", "arena-zoom 0 0.0001 0 0.0001", "arena-view steps"}) {
    play(app, std::string(how) + "\nframes 2\nwait\nframes 2\n");
    move_everywhere(app, 1280, 800);
  }
}

TEST(ArenaPanel, APlaceIsAWholeNumber) {
  EXPECT_EQ(whole(std::numeric_limits<double>::quiet_NaN()), 0u);
  EXPECT_EQ(whole(-1), 0u);
  EXPECT_EQ(whole(2.9), 2u);
  EXPECT_EQ(whole(0x1p64), UINT64_MAX - 2047);
}

// Ticks that are one double, and such as are neighbors among doubles.
TEST(ArenaPanel, DrawsTicksThatDoublesDoNotTellApart) {
  const auto window = open_null_window({});
  GuiApp app(*window, "");
  const loadline::testing::TemporaryFolder folder;
  for (const char* ticks :
       {"18446744073709551614,18446744073709551615", "9223372036854775808,9223372036854779904",
        "18446744073709547520,18446744073709551615", "9007199254740993,9007199254740995"}) {
    loadline::testing::write_file(folder / "late.csv", std::string("lower,upper,size\n") + ticks + ",7\n");
    play(app, "open " + folder / "late.csv" + "\narena-view packing\nwait\nframes 2\n");
    ASSERT_TRUE(app.workspace().services.notices.all().empty())
        << app.workspace().services.notices.all().front().text;
    for (const char* how : {"arena-zoom", "arena-zoom 0.9999 1 0.9999 1", "arena-zoom 0 0.0001 0.9999 1"}) {
      play(app, std::string(how) + "\narena-view packing\nframes 2\n");
      move_everywhere(app, 1280, 800);
      app.window().set_mouse(700, 400, false);
      ImGui::GetIO().MouseWheel = 1;
      app.frame();
      app.frame();
      const ArenaView& view = app.workspace().document().arena->view;
      EXPECT_TRUE(view.time.from < view.time.to) << ticks;
      play(app, "arena-view steps\nframes 2\nwait\nframes 2\n");
      move_everywhere(app, 1280, 800);
    }
  }
}

TEST(ArenaPanel, PlaysToTheEndAndStops) {
  const auto window = open_null_window({});
  GuiApp app(*window, "");
  play(app, "panel arena\nwait\narena-view steps\nframes 2\nwait\nframes 2\narena-play on\n");
  ArenaView& view = app.workspace().document().arena->view;
  ASSERT_TRUE(app.workspace().document().arena->steps());
  view.speed = std::size(kArenaSpeeds) - 1;
  std::size_t last = view.step;
  for (int i = 0; i < 1000 && view.playing; ++i) {
    app.frame();
    EXPECT_GE(view.step, last);
    last = view.step;
  }
  EXPECT_FALSE(view.playing);
  EXPECT_EQ(view.step, app.workspace().document().arena->steps()->length());
}

TEST(ArenaPanel, AClickSelectsTheTensorThatLiesThere) {
  const auto window = open_null_window({});
  GuiApp app(*window, "");
  app.workspace().show(llama_70b_graph(), "");
  play(app, "wait\npanel arena\narena-time 0.1\narena device\nwait\nframes 2\n");
  for (int y = 300; y < 600 && !app.workspace().document().selected_tensor(); y += 40)
    play(app, "click 1100 " + std::to_string(y) + "\n");
  EXPECT_TRUE(app.workspace().document().selected_tensor());
  play(app, "frames 2\n");  // with its outline
}

TEST(ArenaPanel, IsAPageOfItsOwnWithoutAModel) {
  const auto window = open_null_window({});
  GuiApp app(*window, "");
  play(app, "demo\nwait\npanel arena\nwait\nclose\n");
  EXPECT_EQ(app.workspace().settings.panel, "map") << "the start page, not an example nobody asked for";
  play(app, "panel arena\nwait\nframes 2\n");
  EXPECT_EQ(app.workspace().document().arena->scene()->of->source, ArenaSource::example);
  for (int y = 66; y < 100 && app.workspace().settings.panel == "arena"; y += 6)
    play(app, "click 60 " + std::to_string(y) + "\n");
  EXPECT_EQ(app.workspace().settings.panel, "map") << "the button that leads back";
  play(app, "frames 2\n");
  for (int y = 66; y < 120 && app.workspace().settings.panel != "arena"; y += 6)
    play(app, "click 1180 " + std::to_string(y) + "\n");
  EXPECT_EQ(app.workspace().settings.panel, "arena") << "the button that leads here";
}

}  // namespace

// --- The lanes of a forward pass: every row, and what is listed at an operator.

namespace {

std::shared_ptr<const PassData> data_of(const char* preset, const char* profile, bool everything) {
  Progress progress;
  auto scene =
      make_forward_scene(preset_graph(preset), forward::built_in_assets(), {.profile = profile}, progress);
  auto figures =
      std::make_shared<const forward::ForwardFigures>(*forward::forward_figures(scene->model, 1, 64, 32));
  return pass_data(std::move(scene), std::move(figures), everything);
}

const LaneRows& lane(const PassData& data, PassLane which) {
  return data.lanes[static_cast<std::size_t>(which)];
}

TEST(PassData, rows_at_every_operator_add_up_to_its_usage) {
  for (const char* profile : {"fused", "hf_eager", "ggml"}) {
    const auto data = data_of("demo", profile, false);
    for (std::uint32_t op = 0; op < data->figures->usage.size(); ++op) {
      forward::LaneBytes sum;
      const std::vector<PassRow> rows = alive_rows(*data, op);
      EXPECT_TRUE(std::ranges::is_sorted(rows, std::greater{}, &PassRow::bytes)) << profile << " " << op;
      for (const PassRow& row : rows) {
        if (row.lane >= PassLane::states && row.lane <= PassLane::activations) sum.activations += row.bytes;
        if (row.lane == PassLane::temporaries) sum.temporaries += row.bytes;
        if (row.lane == PassLane::cache) sum.cache += row.bytes;
      }
      EXPECT_EQ(sum.activations, data->figures->usage[op].activations) << profile << " " << op;
      EXPECT_EQ(sum.temporaries, data->figures->usage[op].temporaries) << profile << " " << op;
      EXPECT_EQ(sum.cache, data->figures->usage[op].cache) << profile << " " << op;
    }
  }
}

// Each of its parts in a lane of its own, and together what is alive.
TEST(PassData, a_training_step_has_lanes_of_its_own) {
  Progress progress;
  auto scene = make_forward_scene(preset_graph("demo"), forward::built_in_assets(),
                                  {.training = {.weights = forward::TrainedWeights::full}}, progress);
  ASSERT_TRUE(scene->forward()->training);
  const graph::TrainingParts training = *scene->forward()->training;
  auto figures =
      std::make_shared<const forward::ForwardFigures>(*forward::forward_figures(scene->model, 1, 64, 0));
  const auto data = pass_data(std::move(scene), std::move(figures), false);
  EXPECT_EQ(lane(*data, PassLane::states).bytes, training.state_bytes);
  EXPECT_GE(lane(*data, PassLane::gradients).bytes, training.gradient_bytes);
  EXPECT_TRUE(lane(*data, PassLane::cache).rows.empty());
  for (const PassRow& row : lane(*data, PassLane::kept).rows)
    EXPECT_TRUE(row.ops.first < training.backward && row.ops.end > training.backward);
  EXPECT_GT(lane(*data, PassLane::kept).rows.size(), 0u);
  for (const PassRow& row : lane(*data, PassLane::gradients).rows)
    EXPECT_GE(row.ops.first, training.backward);
  for (std::uint32_t op = 0; op < data->figures->usage.size(); ++op) {
    std::uint64_t rows = 0, curve = 0;
    for (const PassRow& row : alive_rows(*data, op)) rows += row.lane == PassLane::weights ? 0 : row.bytes;
    for (const std::uint64_t bytes : data->alive[op]) curve += bytes;
    EXPECT_EQ(rows, data->figures->usage[op].passing()) << op;
    EXPECT_EQ(curve, data->figures->usage[op].passing()) << op;
  }
}

TEST(PassData, rows_begin_in_order_and_have_spans) {
  const auto data = data_of("llama-3-8b", "hf_eager", false);
  for (const LaneRows& rows : data->lanes) {
    ASSERT_EQ(rows.rows.size(), rows.spans.size());
    EXPECT_TRUE(std::is_sorted(rows.spans.begin(), rows.spans.end(),
                               [](const auto& a, const auto& b) { return a.from < b.from; }));
  }
  EXPECT_EQ(lane(*data, PassLane::weights).bytes, data->weight_bytes);
  EXPECT_EQ(lane(*data, PassLane::cache).bytes, data->figures->peak.cache_bytes);
}

TEST(PassData, an_operator_lists_the_weights_that_it_uses) {
  const auto data = data_of("demo", "fused", false);
  const graph::ForwardGraph& forward = *data->scene->forward();
  for (std::uint32_t op = 0; op < forward.ops.size(); ++op) {
    const auto rows = alive_rows(*data, op);
    const auto used = std::count_if(rows.begin(), rows.end(),
                                    [](const PassRow& row) { return row.lane == PassLane::weights; });
    EXPECT_EQ(static_cast<std::size_t>(used), forward.ops[op].weights.size()) << op;
  }
}

TEST(PassData, the_curve_can_stand_on_weights_and_cache) {
  const auto passing = data_of("demo", "fused", false);
  const auto everything = data_of("demo", "fused", true);
  const auto top = [](const PassData& data) {
    double most = 0;
    for (const view::CurvePoint& point : data.curves.back()) most = std::max(most, point.y);
    return most;
  };
  EXPECT_EQ(top(*passing), static_cast<double>(passing->figures->peak.bytes));
  EXPECT_GE(top(*everything), static_cast<double>(everything->weight_bytes + passing->figures->peak.bytes));
}

TEST(PassData, operators_stand_on_the_steps_of_the_load_that_they_follow) {
  Workspace workspace("");
  workspace.show(preset_graph("gpt2"), "");
  settle(workspace);
  Document& document = workspace.document();
  EXPECT_FALSE(places_of_pass(document)) << "no pass follows";
  Asked asked = document.load.asked();
  asked.first_token = true;
  document.load.ask(asked);
  settle(workspace);
  const auto places = places_of_pass(document);
  ASSERT_TRUE(places);
  const std::vector<std::size_t>& begins = places->begins;
  const auto& ops = document.forward.scene.value()->forward()->ops;
  ASSERT_EQ(begins.size(), ops.size() + 1);
  const load::Projection& run = *document.load.projection.value();
  std::size_t seen = 0;
  for (std::size_t i = 0; i < run.plan.blocks.size(); ++i) {
    const std::size_t from = run.timeline.lifetimes[i].from_step;
    if (from < begins.front()) continue;
    const auto op = static_cast<std::size_t>(std::ranges::upper_bound(begins, from) - begins.begin()) - 1;
    const std::string_view label = run.plan.blocks[i].label();
    EXPECT_TRUE(label.ends_with(" of " + ops[op].name)) << label << " at " << ops[op].name;
    ++seen;
  }
  const graph::ForwardGraph& forward = *document.forward.scene.value()->forward();
  for (std::size_t i = 0; i < forward.values.size(); ++i)
    if (const auto block = places->blocks[i]; block && !forward.values[i].memory_of)
      EXPECT_TRUE(run.plan.block(*block).label().starts_with(forward.values[i].name))
          << forward.values[i].name;
  EXPECT_GT(seen, 50u);
}

TEST(PassData, lifetimes_are_shown_where_sizes_cannot_be) {
  Progress progress;
  auto scene = make_forward_scene(preset_graph("demo"), forward::built_in_assets(), {}, progress);
  const auto data = pass_data(scene, nullptr, true);
  EXPECT_FALSE(lane(*data, PassLane::activations).rows.empty());
  EXPECT_EQ(lane(*data, PassLane::activations).bytes, 0u);
  EXPECT_TRUE(data->curves.back().empty());
}

}  // namespace

// --- The rows of the panel Load.

namespace {

TEST(LoadRows, are_modules_where_not_all_blocks_fit) {
  Workspace workspace("");
  workspace.show(preset_graph("gpt2-xl"), "");
  workspace.document().load.set_option("method", "per_tensor");
  settle(workspace);
  const load::Projection& run = *workspace.document().load.projection.value();
  const Model& model = *workspace.document().model;
  const auto steps = static_cast<double>(run.plan.steps.size());
  const SpaceBlocks all(model, run, plan::Space::device, 0, steps);
  EXPECT_EQ(all.size(), 580u);
  EXPECT_EQ(rows_that_fit(all, 1000).size(), 580u) << "each block has a row";
  const auto layers = rows_that_fit(all, 60);
  EXPECT_EQ(layers.size(), 51u + 1u) << "48 layers, what is around them, both parts of the last norm";
  const auto coarse = rows_that_fit(all, 20);
  EXPECT_LT(coarse.size(), 10u);
  std::size_t blocks = 0;
  for (const RowKey& row : coarse) blocks += all.count(row);
  EXPECT_EQ(blocks, 580u) << "nothing is left out";
  EXPECT_EQ(rows_that_fit(all, 1).size(), 1u);
  // of a part of the load: fewer, and so they unfold
  const SpaceBlocks some(model, run, plan::Space::device, 0, 40);
  EXPECT_LE(some.size(), 40u);
  EXPECT_EQ(rows_that_fit(some, 60).size(), some.size());
}

}  // namespace

// --- Colors that must be told apart are apart for every kind of color vision.

namespace {

using Triple = std::array<double, 3>;
using Matrix = std::array<Triple, 3>;

Triple times(const Matrix& m, const Triple& v) {
  Triple result{};
  for (std::size_t i = 0; i < 3; ++i) result[i] = m[i][0] * v[0] + m[i][1] * v[1] + m[i][2] * v[2];
  return result;
}

// Linear RGB as seen without one kind of cone: Machado, Oliveira, Fernandes, 2009, severity 1. The first is
// what is seen with all.
constexpr std::array<Matrix, 4> kVisions = {
    {{{{1, 0, 0}, {0, 1, 0}, {0, 0, 1}}},
     {{{0.152286, 1.052583, -0.204868}, {0.114503, 0.786281, 0.099216}, {-0.003882, -0.048116, 1.051998}}},
     {{{0.367322, 0.860646, -0.227968}, {0.280085, 0.672501, 0.047413}, {-0.011820, 0.042940, 0.968881}}},
     {{{1.255528, -0.076749, -0.178779}, {-0.078411, 0.930809, 0.147602}, {0.004733, 0.691367, 0.303900}}}}};

// Ottosson, "A perceptual color space for image processing", 2020.
Triple oklab(ImU32 color, const Matrix& vision) {
  Triple rgb{};
  for (std::size_t i = 0; i < 3; ++i) {
    const double c = static_cast<double>((color >> (8 * i)) & 0xFFu) / 255;
    rgb[i] = c <= 0.04045 ? c / 12.92 : std::pow((c + 0.055) / 1.055, 2.4);
  }
  rgb = times(vision, rgb);
  for (double& c : rgb) c = std::clamp(c, 0.0, 1.0);
  Triple cones = times({{{0.4122214708, 0.5363325363, 0.0514459929},
                         {0.2119034982, 0.6806995451, 0.1073969566},
                         {0.0883024619, 0.2817188376, 0.6299787005}}},
                       rgb);
  for (double& c : cones) c = std::cbrt(c);
  return times({{{0.2104542553, 0.7936177850, -0.0040720468},
                 {1.9779984951, -2.4285922050, 0.4505937099},
                 {0.0259040371, 0.7827717662, -0.8086757660}}},
               cones);
}

double least_distance(const std::vector<ImU32>& colors) {
  double least = 1;
  for (const Matrix& vision : kVisions)
    for (std::size_t i = 0; i < colors.size(); ++i)
      for (std::size_t j = i + 1; j < colors.size(); ++j) {
        const Triple a = oklab(colors[i], vision), b = oklab(colors[j], vision);
        least = std::min(least, std::hypot(a[0] - b[0], a[1] - b[1], a[2] - b[2]));
      }
  return least;
}

TEST(Theme, colors_are_apart_for_every_color_vision) {
  constexpr double kApart = 0.05;
  for (const Theme* theme : {&dark_theme(), &light_theme()}) {
    EXPECT_GE(least_distance({theme->roles.begin(), theme->roles.end()}), kApart);
    EXPECT_GE(least_distance({theme->categories.begin(), theme->categories.end()}), kApart);
    EXPECT_GE(least_distance({theme->spaces.begin(), theme->spaces.end()}), kApart);
    EXPECT_GE(least_distance({theme->lives.begin(), theme->lives.end()}), kApart);
  }
}

double distance(ImU32 one, ImU32 other) {
  const Triple a = oklab(one, kVisions[0]), b = oklab(other, kVisions[0]);
  return std::hypot(a[0] - b[0], a[1] - b[1], a[2] - b[2]);
}

// A color means one thing: roles, memories, what weights, caches and activations are, and the categories of
// types, files and curves have colors of their own.
TEST(Theme, colors_mean_one_thing) {
  for (const Theme* theme : {&dark_theme(), &light_theme()}) {
    const std::array<std::vector<ImU32>, 4> families = {
        std::vector<ImU32>(theme->roles.begin(), theme->roles.end()),
        std::vector<ImU32>(theme->spaces.begin(), theme->spaces.end()),
        std::vector<ImU32>(theme->lives.begin(), theme->lives.end()),
        std::vector<ImU32>(theme->categories.begin(), theme->categories.end())};
    for (std::size_t i = 2; i < families.size(); ++i)
      for (std::size_t j = 0; j < i; ++j)
        for (const ImU32 one : families[i])
          for (const ImU32 other : families[j])
            EXPECT_GE(distance(one, other), 0.06) << (theme == &dark_theme()) << ' ' << i << ' ' << j;
    for (const ImU32 category : theme->categories)
      EXPECT_GE(distance(category, theme->bad), 0.12) << "red is over the budget, and nothing else";
  }
}

}  // namespace

}  // namespace loadline::gui
