// How much is claimed to be known of a model's forward pass, a user's assets, and load and pass as one plan.
#include "core/forward/model/forward_model.h"

#include "core/base/error.h"
#include "core/forward/model/known_models.h"
#include "core/load/answer/projection.h"
#include "core/load/request/model_parts.h"
#include "core/plan/plan.h"
#include "tests/support/builders.h"

#include <filesystem>
#include <fstream>

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace loadline {
namespace {

namespace fs = std::filesystem;

MetaGraph preset_graph(std::string_view id) {
  return config_graph(find_preset(id)->config_json, "config.json");
}

ForwardModel model_of(const MetaGraph& graph) {
  return forward_model(graph, *built_in_assets(), built_in_assets()->profile("fused"));
}

TEST(ForwardModel, AKnownFamilyGivesFigures) {
  const MetaGraph graph = preset_graph("llama-3-8b");
  const ForwardModel model = model_of(graph);
  EXPECT_EQ(model.source, ForwardSource::architecture);
  EXPECT_EQ(model.family, "llama");
  EXPECT_EQ(model.cache_bytes_per_token, 131'072u);
  const auto figures = forward_figures(model, 1, 2048, 0);
  ASSERT_TRUE(figures);
  const std::uint32_t at = figures->peak.op;
  EXPECT_EQ(op_text(model.graph->ops[at]), "model.layers.0.g (act)");
  std::uint64_t sum = 0;
  for (const ValueId id : alive_during(model, *figures, at))
    sum += *figures->sizes[static_cast<std::size_t>(id)];
  EXPECT_EQ(sum, figures->peak.bytes);
  EXPECT_EQ(sum, figures->usage[at].passing());
  // the cache fills layer by layer
  EXPECT_EQ(figures->usage.back().cache, figures->peak.cache_bytes);
  EXPECT_LT(figures->usage[at].cache, figures->peak.cache_bytes);
}

TEST(ForwardModel, WhatIsChosenReplacesWhatTheProfileSays) {
  const MetaGraph graph = preset_graph("llama-3-8b");
  const ForwardAssets& assets = *built_in_assets();
  const auto figures = [&](const ForwardOptions& options) {
    return *forward_figures(forward_model(graph, assets, chosen_profile(assets, graph, options)), 1, 2048, 0);
  };
  const ForwardFigures plain = figures({});
  const ForwardFigures wide = figures({.activation = DType::f32});
  EXPECT_EQ(wide.peak.cache_bytes, plain.peak.cache_bytes);
  EXPECT_EQ(wide.peak.bytes, 2 * plain.peak.bytes);
  const ForwardFigures narrow = figures({.cache = DType::f8_e4m3});
  EXPECT_EQ(2 * narrow.peak.cache_bytes, plain.peak.cache_bytes);
  EXPECT_GE(figures({.all_logits = true}).peak.bytes, std::uint64_t{2048} * 128'256 * 2);
  // the pooler of an encoder looks at one row whatever is chosen
  const MetaGraph bert = preset_graph("bert-base-uncased");
  const ForwardModel all = forward_model(bert, assets, chosen_profile(assets, bert, {.all_logits = true}));
  const Op& pooler = *std::find_if(all.graph->ops.begin(), all.graph->ops.end(),
                                   [](const Op& op) { return op.name == "pooler.dense"; });
  EXPECT_EQ((*all.graph->value(pooler.outputs[0]).shape)[1], SizePoly(1));
  EXPECT_THROW(figures({.cache = DType::q8_0}), Error);
  EXPECT_THROW(figures({.profile = "none such"}), Error);
}

TEST(ForwardModel, AnAssetThatDoesNotFitIsNotBelieved) {
  MetaGraph graph = preset_graph("llama-3-8b");
  graph.tensors[5].name = Name("model.layers.0.mlp.other.weight");
  const ForwardModel model = model_of(graph);
  EXPECT_EQ(model.source, ForwardSource::estimate);
  EXPECT_NE(model.remark.find("do not hold"), std::string::npos) << model.remark;
  EXPECT_FALSE(model.graph);
  EXPECT_FALSE(forward_figures(model, 1, 1, 0));
  MetaGraph larger = preset_graph("demo");
  larger.storages.push_back(shapes_only_storage(100 << 20));
  larger.tensors.push_back({Name("other"),
                            DType::u8,
                            Shape{100 << 20},
                            {},
                            StorageId{static_cast<std::uint32_t>(larger.storages.size() - 1)},
                            0});
  EXPECT_NE(model_of(larger).remark.find("unexplained"), std::string::npos);
}

TEST(ForwardModel, AnUnknownFamilyGivesAnEstimateOfItsCache) {
  MetaGraph graph = preset_graph("demo");
  graph.metadata[0].value = std::string(
      R"({"architectures":["NewForCausalLM"],"n_layer":4,"n_head":8,"n_embd":64,"torch_dtype":"float16"})");
  const ForwardModel model = model_of(graph);
  EXPECT_EQ(model.source, ForwardSource::estimate);
  EXPECT_EQ(model.cache_bytes_per_token, 2u * 4 * 64 * 2);
  EXPECT_NE(model.remark.find("no asset for NewForCausalLM"), std::string::npos);
  graph.metadata.clear();
  EXPECT_EQ(model_of(graph).source, ForwardSource::nothing);
}

CacheEstimate cache_of(std::string_view fields) {
  const std::string config = fmt::format(
      R"({{"num_hidden_layers":4,"hidden_size":64,"num_attention_heads":8,"dtype":"float16",{}}})", fields);
  return estimated_cache(ModelConfig(config, "config.json")).value();
}

TEST(CacheEstimate, LayersMayDiffer) {
  const auto each = [](std::uint64_t bytes) { return CacheEstimate{.per_token = bytes}; };
  constexpr std::uint64_t kHead = 2 * 2 * 8;  // key and value of 8 numbers in 2 bytes
  EXPECT_EQ(cache_of(R"("x":0)"), each(4 * 8 * kHead));
  EXPECT_EQ(cache_of(R"("num_key_value_heads":2)"), each(4 * 2 * kHead));
  EXPECT_EQ(cache_of(R"("num_key_value_heads":[0,2,0,1])"), each(3 * kHead));
  EXPECT_EQ(cache_of(R"("num_key_value_heads":[0,2,0,1],"pads_values":1)"), each(3 * kHead / 2 + 2 * kHead));
  EXPECT_EQ(cache_of(R"("num_key_value_heads":[1,2])"), each(4 * 8 * kHead));  // a list of too few layers
  EXPECT_EQ(cache_of(R"("head_dim":16,"v_head_dim":0)"), each(4 * 8 * kHead));
  EXPECT_EQ(cache_of(R"("full_attention_interval":4)"), each(8 * kHead));
  EXPECT_EQ(cache_of(R"("num_kv_shared_layers":3)"), each(8 * kHead));
  EXPECT_EQ(cache_of(R"("num_kv_shared_layers":9)"), each(0));
  EXPECT_EQ(cache_of(R"("layer_types":["linear_attention","mamba","conv","full_attention"])"),
            each(8 * kHead));
}

TEST(CacheEstimate, WindowsAndStates) {
  const CacheEstimate windows = cache_of(
      R"("sliding_window":100,"layer_types":["sliding_attention","sliding_attention","full_attention","mamba"])");
  EXPECT_EQ(windows, (CacheEstimate{.per_token = 256, .windowed_per_token = 512, .window = 100}));
  EXPECT_EQ(windows.bytes(10), 10u * 768);
  EXPECT_EQ(windows.bytes(1000), 1000u * 256 + 100 * 512);
  EXPECT_EQ(windows.bytes(UINT64_MAX), std::nullopt);
  EXPECT_EQ(cache_of(R"("sliding_window":100,"sliding_window_pattern":2)").windowed_per_token, 512u);
  EXPECT_EQ(cache_of(R"("sliding_window":100,"sliding_window_pattern":[1,1,0,1],"swa_head_dim":4)")
                .windowed_per_token,
            3u * 8 * 2 * (4 + 8));
  EXPECT_EQ(cache_of(R"("sliding_window":100)").windowed_per_token, 0u);  // no key tells which layers
  // beside attention in every layer, or in the layers without
  EXPECT_EQ(cache_of(R"("recurrent_state":10)").state, 4u * 40);
  EXPECT_EQ(cache_of(R"("recurrent_state":10,"full_attention_interval":2)").state, 2u * 40);
  EXPECT_EQ(cache_of(R"("recurrent_state":10,"num_key_value_heads":[0,0,0,1])").bytes(5), 5u * 32 + 3 * 40);
}

TEST(CacheEstimate, WhatTheKeysDoNotSayIsNotGuessed) {
  const auto of = [](std::string_view config) {
    return estimated_cache(ModelConfig(std::string(config), "config.json"));
  };
  EXPECT_FALSE(of("{}"));
  EXPECT_FALSE(of(R"({"num_hidden_layers":4,"hidden_size":64})"));
  EXPECT_FALSE(of(R"({"num_hidden_layers":4,"hidden_size":65,"num_attention_heads":8})"));
  EXPECT_FALSE(of(R"({"num_hidden_layers":4000000000,"hidden_size":64,"num_attention_heads":8})"));
  EXPECT_FALSE(of(R"({"num_hidden_layers":4,"hidden_size":64,"num_attention_heads":-8})"));
  const auto widest = of(R"({"num_hidden_layers":65536,"head_dim":16777216,"num_attention_heads":16777216})");
  EXPECT_FALSE(widest && widest->bytes(1'000'000));
}

void add_weight(MetaGraph& graph, std::string_view name, const Shape& shape, DType dtype = DType::bf16) {
  graph.storages.push_back(shapes_only_storage(*byte_size(dtype, *element_count(shape))));
  graph.tensors.push_back(
      {Name(name), dtype, shape, {}, StorageId{static_cast<std::uint32_t>(graph.storages.size() - 1)}, 0});
}

TEST(ForwardModel, AnUnknownFamilyGetsALowerBoundOfItsActivations) {
  MetaGraph graph = preset_graph("demo");
  EXPECT_FALSE(model_of(graph).activation_bound_per_token);  // known: a peak says more
  EXPECT_FALSE(activation_lower_bound(model_of(graph), 1, 16));
  const auto bound_with = [&](std::string_view config) {
    graph.metadata[0].value = std::string(config);
    const ForwardModel model = model_of(graph);
    EXPECT_FALSE(forward_figures(model, 1, 16, 0));
    return activation_lower_bound(model, 2, 16);
  };
  constexpr std::string_view kUnknown = R"({"architectures":["New"],"vocab_size":8192})";
  EXPECT_EQ(bound_with(kUnknown),
            2u * 16 * 1408 * 2);  // the feed-forward's width, as BF16 as the weights are
  EXPECT_EQ(bound_with(R"({"architectures":["New"],"vocab_size":8192,"dtype":"float32"})"),
            2u * 16 * 1408 * 4);
  // none of these sees all tokens, or has a row for each number that it gives
  add_weight(graph, "model.other_embedding.weight", {9000, 512});
  add_weight(graph, "output.weight", {8192, 512});
  add_weight(graph, "pooler.dense.weight", {9000, 512});
  add_weight(graph, "model.layers.0.mlp.experts.3.up_proj.weight", {9000, 512});
  add_weight(graph, "model.layers.0.mlp.packed.weight", {9000, 1}, DType::u8);
  add_weight(graph, "model.layers.0.mlp.conv.weight", {9000, 4, 1});
  EXPECT_EQ(bound_with(kUnknown), 2u * 16 * 1408 * 2);
  add_weight(graph, "model.layers.0.mlp.shared_experts.up_proj.weight", {2000, 512});
  EXPECT_EQ(bound_with(kUnknown), 2u * 16 * 2000 * 2);
  EXPECT_THROW(activation_lower_bound(model_of(graph), UINT64_MAX / 2, 4), Error);
  graph.metadata.clear();
  EXPECT_FALSE(activation_lower_bound(model_of(graph), 1, 16));
}

TEST(ForwardModel, AUsersAssetWinsByWhateverItMatches) {
  const testing::TemporaryFolder folder;
  fs::create_directories(folder.path() / "architectures");
  std::ofstream(folder.path() / "architectures/mine.json")
      << R"({"family":"mine","model_types":["llama"],"main":["x = embed ids @own[10,4]"]})";
  const auto assets = load_assets(folder.path().string());
  const auto family = [&](std::string_view config) {
    const Architecture* const found = assets->architecture(ModelConfig(config, "config.json"));
    return found == nullptr ? "" : found->family;
  };
  EXPECT_EQ(family(R"({"model_type":"llama","architectures":["LlamaForCausalLM"]})"), "mine");
  EXPECT_EQ(family(R"({"model_type":"qwen3","architectures":["Qwen3ForCausalLM"]})"), "llama");
  EXPECT_EQ(family(R"({"model_type":"none"})"), "");
}

TEST(ForwardModel, AUsersAssetsTakeThePlaceOfBuiltInOnes) {
  const testing::TemporaryFolder folder;
  fs::create_directories(folder.path() / "architectures");
  fs::create_directories(folder.path() / "profiles");
  std::ofstream(folder.path() / "architectures/mine.json")
      << R"({"family":"llama","model_types":["llama"],"main":["x = embed ids @own[10,4]"]})";
  std::ofstream(folder.path() / "architectures/broken.json") << R"({"family":)";
  std::ofstream(folder.path() / "profiles/mine.json") << R"({"profile":"mine"})";
  const auto assets = load_assets(folder.path().string());
  const MetaGraph graph = config_graph(R"({"model_type":"llama"})", "c", *assets);
  ASSERT_EQ(graph.tensors.size(), 1u);
  EXPECT_EQ(graph.tensors[0].name, "own.weight");
  EXPECT_EQ(assets->profile("mine").id, "mine");
  EXPECT_THROW(assets->profile("no_such"), Error);
  ASSERT_EQ(assets->faults.size(), 1u);
  EXPECT_NE(assets->faults[0].find("broken.json"), std::string::npos);
  EXPECT_TRUE(load_assets("/no/such/folder")->faults.empty());
}

TEST(ForwardPass, FollowsTheLoadInOnePlan) {
  const MetaGraph graph = preset_graph("demo");
  const ForwardModel model = model_of(graph);
  const ForwardPass pass = {&*model.graph, symbol_values(*model.graph, 1, 256, 0)};
  const auto figures = forward_figures(model, 1, 256, 0);
  const Method& method = find_method("staged_ring");
  const Order& order = find_order("file");
  Progress progress;
  const Projection load = project(graph, method, order, {});
  const Projection both = project(graph, method, order, {}, progress, &pass);
  EXPECT_EQ(both.plan.marks.back().label, "first token");
  // the cache of every layer lies beside the weights at the end, with the logits
  const std::uint64_t logits = 8192 * 2;
  EXPECT_EQ(both.timeline.final_bytes[index(Space::device)],
            load.timeline.final_bytes[index(Space::device)] + figures->peak.cache_bytes + logits);
  EXPECT_GE(both.timeline.peaks[index(Space::device)].bytes, storage_bytes(graph) + figures->peak.bytes);
  EXPECT_EQ(device_lower_bound(graph, {}, &pass), both.timeline.peaks[index(Space::device)].bytes);
}

// With a past, the caches of all layers are there before the first operator.
TEST(ForwardPass, ThePastIsThereFromTheStart) {
  const MetaGraph graph = preset_graph("demo");
  const ForwardModel model = model_of(graph);
  Plan plan;
  append_forward_pass(plan, {&*model.graph, symbol_values(*model.graph, 1, 1, 4096)});
  std::uint64_t before_the_first_free = 0;
  for (const Step& step : plan.steps) {
    if (step.verb == Verb::free) break;
    before_the_first_free += plan.blocks[static_cast<std::size_t>(step.block)].bytes;
  }
  EXPECT_GE(before_the_first_free, forward_figures(model, 1, 1, 4096)->peak.cache_bytes);
}

// Where a method allocates activations before the weights are there, the pass's memory is one block by then:
// 2W + A + w against W + A.
TEST(ForwardPass, IsThereFirstWhereTheMethodAllocatesItFirst) {
  const MetaGraph graph = preset_graph("demo");
  const ForwardModel model = model_of(graph);
  const ForwardPass pass = {&*model.graph, symbol_values(*model.graph, 1, 256, 0)};
  const std::uint64_t weights = storage_bytes(graph);
  const std::uint64_t activations = device_lower_bound(graph, {}, &pass) - weights;
  std::uint64_t most = 0;
  for (const Storage& storage : graph.storages) most = std::max(most, storage.bytes);
  const auto timeline = [&](const char* method) {
    Progress progress;
    return project(graph, find_method(method), find_order("largest"), {}, progress, &pass).timeline;
  };
  EXPECT_EQ(timeline("executorch_before").unified.bytes, 2 * weights + activations + most);
  EXPECT_EQ(timeline("executorch_after").unified.bytes, weights + std::max(activations, 2 * most));
  const Timeline streamed = timeline("layer_streaming");
  EXPECT_EQ(streamed.final_bytes[index(Space::device)], activations);
  EXPECT_GE(streamed.peaks[index(Space::device)].bytes, most + activations);
  EXPECT_LT(streamed.peaks[index(Space::device)].bytes, weights + activations);
}

// The ladder holds where config.json does not fit: what it does say, and why there is no more.
TEST(ForwardModel, AConfigurationThatDoesNotFitLeavesAnEstimate) {
  const std::string config = R"({"model_type":"llama","hidden_size":64,"num_hidden_layers":3,
    "num_attention_heads":4,"intermediate_size":96,"vocab_size":100,"torch_dtype":"float32"})";
  MetaGraph graph = config_graph(config, "config.json");
  const auto remark_with = [&](const std::string& from, const std::string& to) {
    std::string changed = config;
    changed.replace(changed.find(from), from.size(), to);
    graph.metadata[0].value = changed;
    const auto assets = built_in_assets();
    const ForwardModel model = forward_model(graph, *assets, assets->profile("fused"));
    EXPECT_FALSE(model.graph);
    EXPECT_EQ(model.source, model.cache_bytes_per_token ? ForwardSource::estimate : ForwardSource::nothing);
    return model.remark;
  };
  const std::string list = remark_with(R"("vocab_size":100)", R"("vocab_size":100,"layer_types":["x"])");
  EXPECT_TRUE(
      list.starts_with("config.json: does not fit the architecture: 'layer_types' has 1 entry, position 1 "
                       "(from 0) is asked for (llama.json: line "))
      << list;
  const std::string text = remark_with("64", "\"wide\"");
  EXPECT_NE(text.find("'hidden_size'"), std::string::npos) << text;
  const std::string broken = remark_with("96,", "96");
  EXPECT_EQ(broken.find("json.exception"), std::string::npos);
  EXPECT_TRUE(broken.starts_with("config.json: line 2, column ")) << broken;
  EXPECT_NE(broken.find("expected"), std::string::npos) << broken;
}

}  // namespace
}  // namespace loadline
