// The forward pass in the window's state: scenes, figures, the timeline that ends with the first token.
#include "app/gui/state/workspace.h"
#include "core/base/error.h"
#include "core/forward/model/known_models.h"
#include "core/forward/pass/lifetimes.h"
#include "tests/gui/sample_graphs.h"
#include "tests/gui/settle.h"

#include <algorithm>
#include <array>

#include <gtest/gtest.h>

namespace loadline::gui {
namespace {

std::shared_ptr<const ForwardScene> scene_of(const char* preset, const ForwardOptions& options = {}) {
  Progress progress;
  return make_forward_scene(preset_graph(preset), built_in_assets(), options, progress);
}

std::uint64_t device_peak(const Workspace& workspace) {
  return workspace.document().projection.value()->timeline.peaks[index(Space::device)].bytes;
}

TEST(ForwardScene, everything_has_its_place) {
  const auto scene = scene_of("llama-3-8b", {.profile = "hf_eager"});
  ASSERT_NE(scene->forward(), nullptr);
  EXPECT_EQ(scene->weights.size(), scene->graph->tensors.size());
  EXPECT_EQ(scene->cache.size(), 64u);
  EXPECT_FALSE(scene->temporaries.empty());
  EXPECT_TRUE(scene->has_logits);
  EXPECT_EQ(scene->symbols_matter, (std::vector<bool>{true, true, true}));
  ASSERT_EQ(scene->bands.size(), 32u);
  EXPECT_EQ(scene->bands.back().name, "31");
  for (std::size_t i = 1; i < scene->bands.size(); ++i)
    EXPECT_LE(scene->bands[i - 1].ops.end, scene->bands[i].ops.first);
  EXPECT_TRUE(std::is_sorted(scene->weights.begin(), scene->weights.end(),
                             [](const auto& a, const auto& b) { return a.ops.first < b.ops.first; }));
}

TEST(ForwardScene, an_encoder_has_no_past_and_no_cache) {
  const auto scene = scene_of("bert-base-uncased");
  EXPECT_EQ(scene->symbols_matter, (std::vector<bool>{true, true, false}));
  EXPECT_TRUE(scene->cache.empty());
  EXPECT_EQ(scene->bands.size(), 12u);
  EXPECT_EQ(scene->bands.front().stack, "layer");
  EXPECT_FALSE(scene->has_logits);  // the pooler's one row is not a choice
}

TEST(ForwardScene, every_profile_has_the_bands_and_each_operator_counts_once) {
  const auto fused = scene_of("llama-3-8b"), eager = scene_of("llama-3-8b", {.profile = "hf_eager"});
  EXPECT_GT(eager->forward()->ops.size(),
            fused->forward()->ops.size());  // memory before an operator's results
  EXPECT_EQ(eager->bands.size(), 32u);
  EXPECT_EQ(eager->tree.nodes.front().all_ops, fused->tree.nodes.front().all_ops);
}

TEST(ForwardScene, a_short_window_leaves_the_past_a_choice) {
  const MetaGraph graph = config_graph(
      R"({"architectures":["MistralForCausalLM"],"model_type":"mistral","hidden_size":8,"num_hidden_layers":2,
          "num_attention_heads":2,"num_key_value_heads":1,"intermediate_size":12,"vocab_size":10,
          "sliding_window":64})",
      "config.json");
  Progress progress;
  const auto scene = make_forward_scene(std::make_shared<MetaGraph>(graph), built_in_assets(), {}, progress);
  ASSERT_NE(scene->forward(), nullptr) << scene->model.remark;
  EXPECT_TRUE(scene->symbols_matter[static_cast<std::size_t>(kPast)]);
}

TEST(ForwardScene, options_that_fail_are_left_out_and_told) {
  auto assets = std::make_shared<ForwardAssets>(*built_in_assets());
  assets->profiles.push_back(
      parse_profile(R"({"profile":"broken","ops":{"linear":{"temporaries":["'much'"]}}})", "broken.json"));
  Progress progress;
  const auto scene = make_forward_scene(preset_graph("demo"), assets, {.profile = "broken"}, progress);
  EXPECT_EQ(scene->model.profile, "fused");
  EXPECT_NE(scene->fault.find("broken.json"), std::string::npos) << scene->fault;
}

TEST(ForwardScene, both_stacks_of_a_model_have_bands) {
  const auto scene = scene_of("t5-small");
  ASSERT_EQ(scene->bands.size(), 12u);
  EXPECT_EQ(scene->bands[0].stack, "encoder");
  EXPECT_EQ(scene->bands[1].stack, "");
  EXPECT_EQ(scene->bands[6].stack, "decoder");
}

TEST(ForwardScene, the_peak_inside_the_root_is_the_peak) {
  for (const char* preset : {"demo", "deepseek-v3", "whisper-tiny"}) {
    const auto scene = scene_of(preset);
    const auto figures = forward_figures(scene->model, 2, 100, 7);
    const auto peaks = peaks_inside(scene->tree, figures->usage);
    EXPECT_EQ(peaks.front(), figures->peak.bytes) << preset;
    EXPECT_LE(*std::max_element(peaks.begin(), peaks.end()), peaks.front()) << preset;
  }
}

TEST(ForwardScene, a_file_s_own_symbols_can_be_chosen) {
  ForwardGraph graph;
  graph.symbols = {"B", "S", "P", "frames"};
  graph.sizes = {{"frames", SizePoly::symbol(SymbolId{3})}, {"tokens", SizePoly::symbol(kSequence)}};
  LoadRequest request = {.batch = 2, .sequence = 3, .past = 4, .sizes = {{"frames", 5}}};
  EXPECT_EQ(symbols_of(graph, request), (std::vector<std::uint64_t>{2, 3, 4, 5}));
  request.sizes.push_back({"tokens", 7});
  EXPECT_EQ(symbols_of(graph, request), (std::vector<std::uint64_t>{2, 7, 4, 5}));
  request.sizes.push_back({"height", 6});
  EXPECT_THROW(symbols_of(graph, request), Error);
  graph.least.push_back({SymbolId{3}, SizePoly::symbol(kSequence), 2});
  EXPECT_EQ(symbols_of(graph, {.sequence = 3}), (std::vector<std::uint64_t>{1, 3, 0, 2}));
}

TEST(ForwardSession, sizes_are_evaluated_at_once_and_options_in_the_background) {
  Workspace workspace("");
  workspace.show(preset_graph("llama-3-8b"), "");
  EXPECT_TRUE(workspace.document().forward.busy());
  settle(workspace);
  ASSERT_TRUE(workspace.document().figures());
  const auto scene = workspace.document().forward.value();
  const std::uint64_t before = workspace.document().figures()->peak.bytes;
  workspace.document().set_option("seq", "1024");
  EXPECT_FALSE(workspace.document().forward.busy());
  EXPECT_EQ(workspace.document().forward.value(), scene);
  EXPECT_EQ(workspace.document().figures()->peak.bytes, 2 * before);
  workspace.document().set_option("profile", "hf_eager");
  EXPECT_TRUE(workspace.document().forward.busy());
  EXPECT_EQ(workspace.document().forward.value(), scene);  // until the other is there
  settle(workspace);
  EXPECT_NE(workspace.document().forward.value(), scene);
  EXPECT_EQ(workspace.document().forward.value()->model.profile, "hf_eager");
}

TEST(ForwardSession, sizes_stay_in_bounds_and_a_bad_profile_is_said) {
  Workspace workspace("");
  workspace.show(preset_graph("demo"), "");
  settle(workspace);
  Asked asked = workspace.document().asked();
  for (const auto& [batch, sequence, past] :
       {std::array<std::uint64_t, 3>{0, 512, 0}, {1, UINT64_MAX, 0}, {1, 512, UINT64_MAX}}) {
    asked.request.batch = batch;
    asked.request.sequence = sequence;
    asked.request.past = past;
    EXPECT_THROW(workspace.document().ask(asked), Error);
  }
  EXPECT_EQ(workspace.document().asked(), Asked());
  asked.request.batch = asked.request.sequence = asked.request.past = kMostTokens;
  workspace.document().ask(asked);
  EXPECT_TRUE(workspace.document().figures() || !forward_error(workspace.document()).empty());
  EXPECT_THROW(workspace.document().set_option("profile", "none such"), Error);
  workspace.document().ask({});
  settle(workspace);
  EXPECT_TRUE(workspace.document().figures());
  EXPECT_EQ(forward_error(workspace.document()), "");
}

TEST(ForwardSession, the_operator_shown_stays_the_same_one_under_another_profile) {
  Workspace workspace("");
  workspace.show(preset_graph("deepseek-v2-lite"), "");
  settle(workspace);
  const std::vector<Op>& ops = workspace.document().forward.value()->forward()->ops;
  const auto found = std::find_if(ops.begin(), ops.end(),
                                  [](const Op& op) { return op.name == "model.layers.10.self_attn.o_proj"; });
  ASSERT_NE(found, ops.end());
  const auto at = static_cast<std::size_t>(found - ops.begin());
  const Op before = *found;
  workspace.document().operator_shown = at;
  for (const char* profile : {"hf_eager", "ggml", "fused"}) {
    workspace.document().set_option("profile", profile);
    settle(workspace);
    ASSERT_TRUE(workspace.document().operator_shown) << profile;
    const Op& now =
        workspace.document().forward.value()->forward()->ops[*workspace.document().operator_shown];
    EXPECT_EQ(now.name, before.name) << profile;
    EXPECT_EQ(now.kind, before.kind) << profile;
    EXPECT_FALSE(now.outputs.empty()) << profile;
  }
  EXPECT_EQ(workspace.document().operator_shown, at);
}

TEST(ForwardSession, a_profile_that_fails_leaves_the_default_and_a_notice) {
  auto assets = std::make_shared<ForwardAssets>(*built_in_assets());
  assets->profiles.push_back(
      parse_profile(R"({"profile":"broken","ops":{"linear":{"temporaries":["'much'"]}}})", "broken.json"));
  Workspace workspace("", assets);
  workspace.show(preset_graph("demo"), "");
  settle(workspace);
  workspace.document().set_option("profile", "broken");
  settle(workspace);
  ASSERT_TRUE(workspace.document().figures());
  EXPECT_EQ(workspace.document().forward.value()->model.profile, "fused");
  EXPECT_EQ(workspace.document().asked().request.forward.profile, "");
  ASSERT_FALSE(workspace.shared.notices.all().empty());
  EXPECT_NE(workspace.shared.notices.all().back().text.find("broken.json"), std::string::npos);
}

TEST(ForwardSession, the_first_token_follows_the_load) {
  Workspace workspace("");
  workspace.show(preset_graph("llama-3-8b"), "");
  settle(workspace);
  const std::uint64_t load = device_peak(workspace);
  workspace.document().set_option("activations", "1MiB");  // the pass has its own
  Asked asked = workspace.document().asked();
  asked.first_token = true;
  workspace.document().ask(asked);
  settle(workspace);
  ASSERT_EQ(workspace.document().projection.value()->plan.marks.size(), 2u);
  // no more than the peak and the whole cache, no less than the peak and what is cached by then
  const ForwardFigures& figures = *workspace.document().figures();
  EXPECT_GE(device_peak(workspace), load + figures.peak.bytes);
  EXPECT_LE(device_peak(workspace), load + figures.peak.bytes + figures.peak.cache_bytes);
  EXPECT_TRUE(workspace.shared.notices.all().empty());
  ASSERT_EQ(workspace.document().comparison.value()->answer.rows.size(), methods().size());
  for (const LoadRow& row : workspace.document().comparison.value()->answer.rows)
    if (row.method == workspace.document().projection.value()->method) {
      EXPECT_EQ(row.peaks[index(Space::device)].bytes, device_peak(workspace));
    }
  // sliders move it
  const std::uint64_t before = device_peak(workspace);
  workspace.document().set_option("seq", std::to_string(4 * kFirstSequence));
  settle(workspace);
  EXPECT_GT(device_peak(workspace), before);
  asked.first_token = false;
  asked.request.activation_bytes = 0;
  workspace.document().ask(asked);
  settle(workspace);
  EXPECT_EQ(device_peak(workspace), load);
}

TEST(ForwardSession, a_model_without_operators_loads_as_before) {
  Workspace workspace("");
  workspace.document().ask({.first_token = true});
  workspace.show(unknown_family_graph(), "");
  settle(workspace);
  ASSERT_TRUE(workspace.document().forward.value());
  EXPECT_EQ(workspace.document().forward.value()->forward(), nullptr);
  EXPECT_NE(workspace.document().forward.value()->model.remark, "");
  EXPECT_EQ(device_peak(workspace), workspace.document().model->weight_bytes);
  workspace.close_model();
  EXPECT_FALSE(workspace.document().forward.value());
}

}  // namespace
}  // namespace loadline::gui
