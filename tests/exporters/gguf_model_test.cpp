// Models under llama.cpp's names, there and back.

#include "core/base/error.h"
#include "core/convert/recipe/recipe.h"
#include "core/forward/family/model_config.h"
#include "core/forward/family/settings.h"
#include "core/forward/gguf/gguf_map.h"
#include "core/forward/model/expected_tensors.h"
#include "core/forward/model/forward_model.h"
#include "core/forward/model/known_models.h"
#include "core/graph/packed/quantization.h"
#include "exporters/gguf/gguf.h"
#include "exporters/gguf/hugging_face.h"
#include "exporters/preflight.h"
#include "exporters/synth.h"
#include "importers/resolve.h"
#include "tests/exporters/export_support.h"
#include "tests/support/builders.h"

#include <algorithm>
#include <cstring>
#include <functional>
#include <map>
#include <random>
#include <set>

#include <fmt/core.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace loadline::tests {

// --- GGUF files open as models: their keys give back the configuration, their tensors the operators'
// weights.

namespace {

// A sparse file of llama.cpp's names and keys.
graph::MetaGraph gguf_of(const graph::MetaGraph& shapes, const testing::TemporaryFolder& folder,
                         const std::string& name) {
  Progress progress;
  const std::string path = folder / (name + ".gguf");
  exporters::synthesize(shapes, path, {.seed = {}, .max_shard_bytes = 0, .overwrite = true, .to = "gguf"},
                        progress);
  return importers::open_model(path, {});
}
graph::MetaGraph gguf_of(const std::string& config, const testing::TemporaryFolder& folder) {
  return gguf_of(forward::config_graph(config, "config.json"), folder, "model");
}

forward::ForwardModel pass_of(const graph::MetaGraph& graph, const char* profile) {
  return forward::forward_model(graph, *forward::built_in_assets(),
                                forward::built_in_assets()->profile(profile));
}

void expect_equal_passes(const forward::ForwardModel& file, const forward::ForwardModel& model) {
  ASSERT_EQ(file.source, forward::ForwardSource::architecture) << file.remark;
  ASSERT_TRUE(file.graph && model.graph);
  EXPECT_EQ(file.cache_bytes_per_token, model.cache_bytes_per_token);
  EXPECT_EQ(file.graph->symbols, model.graph->symbols);
  EXPECT_TRUE(file.graph->values == model.graph->values);
  ASSERT_EQ(file.graph->ops.size(), model.graph->ops.size());
  for (std::size_t i = 0; i < file.graph->ops.size(); ++i) {
    graph::Op ours = file.graph->ops[i], theirs = model.graph->ops[i];
    ours.weights = theirs.weights = {};
    ours.name = theirs.name = {};  // each has the names of its file
    EXPECT_TRUE(ours == theirs) << ours.name;
  }
}

// What a file of llama.cpp cannot say: Mistral's sliding window, and how weights were packed.
std::string without_lost_settings(const forward::Preset& preset) {
  nlohmann::json config = nlohmann::json::parse(preset.config_json);
  if (config["model_type"] == "mistral") config["sliding_window"] = nullptr;
  config.erase("quantization_config");  // of gpt-oss: its file has MXFP4 blocks as one tensor
  return config.dump();
}

TEST(GgufModels, PublishedModelsComeBackAsTheyWere) {
  const testing::TemporaryFolder folder;
  std::size_t mapped = 0;
  for (const forward::Preset& preset : forward::presets()) {
    const std::string config = without_lost_settings(preset);
    if (forward::find_gguf_family(forward::ModelConfig(config, "config.json")) == nullptr) continue;
    SCOPED_TRACE(preset.id);
    ++mapped;
    const graph::MetaGraph shapes = forward::config_graph(config, "config.json");
    const graph::MetaGraph file = gguf_of(shapes, folder, "model");
    const bool pooled = preset.id == "bert-base-uncased";  // llama.cpp's files lack its pooler
    for (const char* profile : {"fused", "ggml"})
      if (pooled)
        EXPECT_EQ(pass_of(file, profile).source, forward::ForwardSource::architecture);
      else
        expect_equal_passes(pass_of(file, profile), pass_of(shapes, profile));
    const forward::ModelClaims claims = forward::model_claims(file, *forward::built_in_assets());
    EXPECT_TRUE(claims.missing.empty());
    EXPECT_TRUE(claims.unclaimed.empty());
    if (!pooled)
      EXPECT_EQ(claims.parameters, forward::model_claims(shapes, *forward::built_in_assets()).parameters);
  }
  EXPECT_GE(mapped, 20u);
}

TEST(GgufModels, EveryTensorIsTheWeightOfSomeOperator) {
  const testing::TemporaryFolder folder;
  for (const char* id : {"mixtral-8x7b", "deepseek-v2-lite", "falcon-40b", "gpt2"}) {
    SCOPED_TRACE(id);
    const graph::MetaGraph file =
        gguf_of(forward::config_graph(forward::find_preset(id)->config_json, id), folder, id);
    const forward::ForwardModel model = pass_of(file, "ggml");
    ASSERT_TRUE(model.graph) << model.remark;
    std::set<graph::TensorId> used;
    for (const graph::Op& op : model.graph->ops) {
      EXPECT_EQ(std::set<graph::TensorId>(op.weights.begin(), op.weights.end()).size(), op.weights.size())
          << op.name;
      used.insert(op.weights.begin(), op.weights.end());
    }
    EXPECT_EQ(used.size(), file.tensors.size());
  }
}

constexpr const char* kSmall =
    R"("hidden_size":64,"num_hidden_layers":2,"num_attention_heads":4,"num_key_value_heads":2,)"
    R"("intermediate_size":96,"vocab_size":200,"torch_dtype":"float16")";

nlohmann::json keys_back(const std::string& config) {
  const testing::TemporaryFolder folder;
  return nlohmann::json::parse(forward::gguf_config(gguf_of(config, folder))->json);
}

TEST(GgufModels, SettingsComeBack) {
  const nlohmann::json llama = keys_back(
      fmt::format(R"({{"model_type":"llama",{},"rms_norm_eps":1e-05,"rope_theta":500000.0,"head_dim":32,
        "rope_scaling":{{"rope_type":"llama3","factor":8.0,"low_freq_factor":1.0,"high_freq_factor":4.0,
        "original_max_position_embeddings":8192}}}})",
                  kSmall));
  EXPECT_EQ(llama["architectures"], nlohmann::json::array({"LlamaForCausalLM"}));
  EXPECT_EQ(llama["rms_norm_eps"].dump(), "1e-05");
  EXPECT_EQ(llama["rope_theta"].dump(), "500000.0");
  EXPECT_EQ(llama["head_dim"], 32);
  EXPECT_EQ(llama["tie_word_embeddings"], false);
  EXPECT_EQ(llama["torch_dtype"], "float16");
  EXPECT_EQ(llama["rope_scaling"]["factor"], 8.0);
  EXPECT_EQ(llama["rope_scaling"]["rope_type"], "llama3");

  const nlohmann::json yarn = keys_back(
      fmt::format(R"({{"model_type":"qwen2",{},"tie_word_embeddings":true,"rope_scaling":{{"type":"yarn",
        "factor":4.0,"original_max_position_embeddings":64}}}})",
                  kSmall));
  EXPECT_EQ(yarn["model_type"], "qwen2");
  EXPECT_EQ(yarn["tie_word_embeddings"], true);
  EXPECT_EQ(yarn["rope_scaling"]["rope_type"], "yarn");
  EXPECT_EQ(yarn["rope_scaling"]["original_max_position_embeddings"], 64);
  EXPECT_FALSE(yarn.contains("attention_bias"));

  const nlohmann::json olmo =
      keys_back(fmt::format(R"({{"model_type":"olmo2",{},"rope_scaling":{{"rope_type":"yarn","factor":4.0,
        "original_max_position_embeddings":64,"attention_factor":0.5}}}})",
                            kSmall));
  EXPECT_EQ(olmo["rope_scaling"]["rope_type"], "yarn");
  EXPECT_EQ(olmo["rope_scaling"]["original_max_position_embeddings"], 64);
  EXPECT_NEAR(olmo["rope_scaling"]["attention_factor"].get<double>(), 0.5, 1e-6);
  EXPECT_EQ(keys_back(fmt::format(R"({{"model_type":"gemma2",{},"head_dim":16,
        "layer_types":["full_attention","full_attention"]}})",
                                  kSmall))["layer_types"],
            nlohmann::json::parse(R"(["full_attention","full_attention"])"));

  EXPECT_EQ(
      keys_back(fmt::format(R"({{"model_type":"mixtral",{},"num_local_experts":4}})", kSmall))["model_type"],
      "mixtral");
}

// Puts parts of every layer together, as the converter's options do.
graph::MetaGraph fused(graph::MetaGraph graph, const std::vector<std::string>& parts,
                       const std::string& whole) {
  std::map<std::string, std::uint64_t> rows;
  std::vector<graph::Tensor> kept;
  for (graph::Tensor& tensor : graph.tensors) {
    const std::string name = tensor.name.str();
    const auto part = std::ranges::find_if(
        parts, [&](const std::string& one) { return name.ends_with("." + one + ".weight"); });
    if (part == parts.end()) {
      kept.push_back(tensor);
      continue;
    }
    const std::string to = name.substr(0, name.size() - part->size() - 7) + whole + ".weight";
    const std::size_t axis = tensor.shape.size() - 2;
    std::uint64_t& sum = rows[to];
    sum += tensor.shape[axis];
    if (*part != parts.back()) continue;
    std::vector<std::uint64_t> sides = tensor.shape.vector();
    sides[axis] = sum;
    tensor.name = graph::Name(to);
    tensor.shape = graph::Shape(sides);
    tensor.storage = graph.add_storage(
        graph::shapes_only_storage(*graph::byte_size(tensor.dtype, *graph::element_count(tensor.shape))));
    kept.push_back(tensor);
  }
  graph.tensors = kept;
  return graph;
}

TEST(GgufModels, FusedTensorsAreLegal) {
  const testing::TemporaryFolder folder;
  const graph::MetaGraph llama = gguf_of(fmt::format(R"({{"model_type":"llama",{}}})", kSmall), folder);
  const graph::MetaGraph qkv = fused(llama, {"attn_q", "attn_k", "attn_v"}, "attn_qkv");
  EXPECT_EQ(qkv.tensors.size(), llama.tensors.size() - 4);
  expect_equal_passes(pass_of(qkv, "ggml"), pass_of(llama, "ggml"));
  EXPECT_EQ(forward::model_claims(qkv, *forward::built_in_assets()).parameters,
            forward::model_claims(llama, *forward::built_in_assets()).parameters);

  const graph::MetaGraph experts =
      gguf_of(fmt::format(R"({{"model_type":"mixtral",{},"num_local_experts":4}})", kSmall), folder);
  const graph::MetaGraph gate_up = fused(experts, {"ffn_gate_exps", "ffn_up_exps"}, "ffn_gate_up_exps");
  expect_equal_passes(pass_of(gate_up, "ggml"), pass_of(experts, "ggml"));
  EXPECT_TRUE(forward::model_claims(gate_up, *forward::built_in_assets()).unclaimed.empty());
}

TEST(GgufModels, WhatDoesNotFitIsSaid) {
  const testing::TemporaryFolder folder;
  const graph::MetaGraph whole = gguf_of(fmt::format(R"({{"model_type":"llama",{}}})", kSmall), folder);
  const auto without = [&](std::string_view name) {
    graph::MetaGraph graph = whole;
    std::erase_if(graph.tensors, [&](const graph::Tensor& tensor) { return tensor.name.view() == name; });
    return graph;
  };
  const graph::MetaGraph lacking = without("blk.1.attn_k.weight");
  EXPECT_EQ(pass_of(lacking, "ggml").source, forward::ForwardSource::estimate);
  EXPECT_EQ(forward::model_claims(lacking, *forward::built_in_assets()).missing,
            std::vector<std::string>{"blk.1.attn_k.weight"});

  const auto with_key = [&](std::string_view key, graph::MetaValue value) {
    graph::MetaGraph graph = whole;
    for (graph::MetaEntry& entry : graph.metadata)
      if (entry.key == key) entry.value = std::move(value);
    return graph;
  };
  const forward::ForwardModel wider =
      pass_of(with_key("llama.feed_forward_length", std::uint32_t{128}), "ggml");
  EXPECT_NE(wider.source, forward::ForwardSource::architecture);
  EXPECT_NE(wider.remark.find("blk.0.ffn_gate.weight"), std::string::npos) << wider.remark;
  EXPECT_NE(wider.remark.find("[128,64]"), std::string::npos) << wider.remark;
  const forward::ForwardModel text = pass_of(with_key("llama.embedding_length", std::string("wide")), "ggml");
  EXPECT_EQ(testing::facts(text.remark), "model.gguf 'llama' usual.json 10 24 'hidden_size' 'wide'");
  const forward::ForwardModel huge =
      pass_of(with_key("llama.block_count", std::uint32_t{4'000'000'000u}), "ggml");
  EXPECT_NE(huge.source, forward::ForwardSource::architecture);
  const forward::ForwardModel none =
      pass_of(with_key("general.architecture", std::string("no-such")), "ggml");
  EXPECT_NE(none.remark.find("no-such"), std::string::npos) << none.remark;
  EXPECT_FALSE(forward::gguf_config(with_key("general.architecture", std::string("*"))));
}

TEST(GgufModels, KeysThatNobodyReadsMakeAnEstimate) {
  const testing::TemporaryFolder folder;
  graph::MetaGraph graph = gguf_of(fmt::format(R"({{"model_type":"qwen2",{}}})", kSmall), folder);
  EXPECT_TRUE(pass_of(graph, "ggml").bound->unaccounted.empty());
  const auto with = [&](std::string key, graph::MetaValue value) {
    graph::MetaGraph more = graph;
    more.metadata.push_back({std::move(key), std::move(value)});
    const forward::ForwardModel model = pass_of(more, "ggml");
    EXPECT_EQ(forward::settings_text(forward::model_claims(more, *forward::built_in_assets()).unaccounted),
              forward::settings_text(model.bound->unaccounted));
    return forward::settings_text(model.bound->unaccounted);
  };
  EXPECT_EQ(with("qwen2.of_nobody", std::uint32_t{7}), "'qwen2.of_nobody' is 7");
  EXPECT_EQ(with("qwen2.attention.sliding_window", std::uint32_t{4096}),
            "'qwen2.attention.sliding_window' is 4096");
  EXPECT_EQ(with("qwen2.of_nobody", std::uint32_t{0}), "");  // counts nothing
  EXPECT_EQ(with("qwen2.rope.of_nobody", 2.5f), "");
  EXPECT_EQ(with("other.of_nobody", std::uint32_t{7}), "");
  EXPECT_EQ(with("tokenizer.ggml.of_nobody", std::uint32_t{7}), "");
}

// An unknown architecture with the usual keys has a cache all the same.
TEST(GgufModels, UnknownArchitecturesAreEstimated) {
  const testing::TemporaryFolder folder;
  graph::MetaGraph graph = gguf_of(fmt::format(R"({{"model_type":"llama",{}}})", kSmall), folder);
  const std::uint64_t cache = *pass_of(graph, "fused").cache_bytes_per_token;
  for (graph::MetaEntry& entry : graph.metadata) {
    if (entry.key == "general.architecture") entry.value = std::string("other");
    if (entry.key.starts_with("llama.")) entry.key.replace(0, 5, "other");
  }
  const forward::ForwardModel model = pass_of(graph, "ggml");
  EXPECT_EQ(model.source, forward::ForwardSource::estimate);
  EXPECT_EQ(model.cache_bytes_per_token, cache);
}

// Each tensor that no rule explains is unclaimed.
TEST(GgufModels, OtherTensorsAreUnclaimed) {
  const testing::TemporaryFolder folder;
  graph::MetaGraph graph = gguf_of(fmt::format(R"({{"model_type":"llama",{}}})", kSmall), folder);
  graph::Tensor other = graph.tensors.front();
  other.name = graph::Name("my_adapter.weight");
  other.shape = {1, 4};
  other.storage = graph.add_storage(graph::shapes_only_storage(*graph::byte_size(other.dtype, 4)));
  graph.tensors.push_back(other);
  const forward::ModelClaims claims = forward::model_claims(graph, *forward::built_in_assets());
  ASSERT_EQ(claims.unclaimed.size(), 1u);
  EXPECT_EQ(graph.tensor(claims.unclaimed.front()).name.view(), "my_adapter.weight");
}

}  // namespace

// --- Models mapped to llama.cpp's names: every published configuration of a mapped family, and what is
// refused. That names, keys and bytes are right is for tests/interop/test_gguf_names.py to say.

namespace {

graph::MetaGraph llama(const std::string& more = "") {
  return forward::config_graph(
      R"({"model_type": "llama", "architectures": ["LlamaForCausalLM"], "hidden_size": 64,
    "intermediate_size": 96, "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2,
    "vocab_size": 320, "max_position_embeddings": 256, "rms_norm_eps": 1e-5, "torch_dtype": "bfloat16")" +
          more + "}",
      "config.json");
}

std::string refusal(const graph::MetaGraph& graph) {
  return testing::facts_of([&] { exporters::gguf_model(graph, exporters::ExportOptions()); });
}

// Numbers in the file are those of the model: nothing is lost and nothing is written twice.
TEST(GgufModel, PublishedModelsKeepTheirNumbers) {
  std::size_t families = 0;
  for (const forward::Preset& preset : forward::presets()) {
    const forward::ModelConfig config(preset.config_json, std::string(preset.id));
    const forward::GgufFamily* const family = forward::find_gguf_family(config);
    if (family == nullptr) continue;
    ++families;
    const graph::MetaGraph graph = forward::config_graph(preset.config_json, std::string(preset.id));
    exporters::ExportOptions options;
    options.ignored_settings = {"*"};
    const exporters::GgufModel model = exporters::gguf_model(graph, options);
    const forward::GgufMap map = forward::map_to_gguf(*family, config, graph);
    const std::set<std::string> dropped(map.dropped.begin(), map.dropped.end());
    std::uint64_t source = 0, file = 0;
    std::set<graph::StorageId> counted;
    const auto packed = graph::logical_positions(graph);
    for (std::size_t i = 0; i < graph.tensors.size(); ++i) {
      const graph::Tensor& tensor = graph.tensors[i];
      const bool companion = packed[i] && graph::index(graph.logical[*packed[i]].codes) != i;
      if (!companion && !dropped.contains(tensor.name.str()) && counted.insert(tensor.storage).second)
        source +=
            packed[i] ? graph::elements(graph.logical[*packed[i]]) : *graph::element_count(tensor.shape);
    }
    std::set<std::string> names;
    for (const exporters::SlotDraft& draft : model.drafts) {
      const exporters::Slot& slot = draft.floats;
      EXPECT_TRUE(names.insert(slot.name.str()).second) << preset.id << ' ' << slot.name.str();
      if (!slot.name.view().starts_with("rope_")) file += *graph::element_count(slot.shape);
    }
    EXPECT_EQ(source, file) << preset.id;
    EXPECT_EQ(model.keys.model.front().key, "general.architecture");
  }
  EXPECT_GE(families, 10u);
}

// Their down projections are square: the shape does not tell that the blocks are turned.
TEST(GgufModel, BlocksOfExpertsStayBlocks) {
  const exporters::GgufModel model = exporters::gguf_model(
      forward::config_graph(forward::find_preset("gpt-oss-20b")->config_json, "config.json"), {});
  std::size_t experts = 0;
  for (const exporters::SlotDraft& draft : model.drafts) {
    if (!draft.floats.name.view().ends_with("_exps.weight")) continue;
    ASSERT_TRUE(draft.blocks) << draft.floats.name.view();
    EXPECT_EQ(draft.blocks->dtype, graph::DType::mxfp4) << draft.floats.name.view();
    EXPECT_EQ(draft.blocks->shape, draft.floats.shape) << draft.floats.name.view();
    ++experts;
  }
  EXPECT_EQ(experts, 24u * 3);
}

TEST(GgufModel, TensorsThatTheConfigurationDoesNotDescribeAreErrors) {
  const auto with_config = [](graph::MetaGraph graph, std::string_view from, std::string_view to) {
    for (graph::MetaEntry& entry : graph.metadata)
      if (auto* const text = std::get_if<std::string>(&entry.value);
          text != nullptr && entry.key == graph::kConfigKey)
        text->replace(text->find(from), from.size(), to);
    return refusal(graph);
  };
  EXPECT_EQ(with_config(llama(), "\"num_hidden_layers\": 2", "\"num_hidden_layers\": 3"),
            "malformed config.json 'model.layers.2.input_layernorm.weight' 8");
  EXPECT_EQ(with_config(llama(), "\"intermediate_size\": 96", "\"intermediate_size\": 128"),
            "malformed config.json 'blk.0.ffn_gate.weight' 96 64 config.json 128 64 >names=keep");
  // a model without its head takes the embedding only where the two are tied
  const auto without_head = [](graph::MetaGraph graph) {
    std::erase_if(graph.tensors,
                  [](const graph::Tensor& tensor) { return tensor.name.view() == "lm_head.weight"; });
    return refusal(graph);
  };
  EXPECT_EQ(without_head(llama()), "malformed config.json 'lm_head.weight'");
  EXPECT_EQ(without_head(llama(R"(, "tie_word_embeddings": true)")), "");
}

TEST(GgufModel, ObeysTheRoundTripLaw) {
  const testing::TemporaryFolder folder;
  const graph::MetaGraphPtr demo = export_tests::plain_model(folder);
  EXPECT_THROW(export_tests::convert(demo, folder / "o.gguf", exporters::ExportOptions()),
               Error);  // a family without a map
  Progress progress;
  exporters::synthesize(llama(R"(, "rope_scaling": {"rope_type": "llama3", "factor": 8, "low_freq_factor": 1,
    "high_freq_factor": 4, "original_max_position_embeddings": 64})"),
                        folder / "m", {.seed = 1, .max_shard_bytes = 100'000, .overwrite = false}, progress);
  const graph::MetaGraphPtr model = export_tests::open(folder / "m");
  for (const std::optional<graph::DType> type :
       {std::optional<graph::DType>(), std::optional(graph::DType::f16)}) {
    exporters::ExportOptions options = exporters::ExportOptions();
    options.outtype = type;
    export_tests::convert(model, folder / "o.gguf", options, {.overwrite = true});
    const graph::MetaGraph read = *export_tests::open(folder / "o.gguf");
    EXPECT_EQ(read, exporters::find_exporter("gguf").layout(*model, options, folder / "o.gguf").result);
    EXPECT_EQ(export_tests::tensor_named(read, "blk.1.attn_q.weight").dtype,
              type.value_or(graph::DType::bf16));
    EXPECT_EQ(export_tests::tensor_named(read, "blk.1.attn_norm.weight").dtype, graph::DType::f32);
    EXPECT_EQ(export_tests::tensor_named(read, "rope_freqs.weight").shape, graph::Shape{8});
  }
}

TEST(GgufModel, RefusesWhatItCannotMap) {
  graph::MetaGraph graph = llama();
  EXPECT_EQ(refusal(graph), "");
  graph.tensors[3].name = "model.layers.0.self_attn.sinks";
  EXPECT_EQ(refusal(graph), "unsupported config.json 'model.layers.0.self_attn.sinks' 'llama' >names=keep");
  graph = llama();
  graph.metadata.clear();
  EXPECT_EQ(refusal(graph), "unsupported config.json llama.cpp >names=keep");
  EXPECT_EQ(refusal(llama(R"(, "hidden_act": "relu")")),
            "unsupported config.json 'hidden_act' llama.cpp 'llama' >ignore=hidden_act");
  graph = llama();
  // a setting is missing: the message names it, and not only the name that the asset gives it
  std::string config = *graph::find_text(graph, graph::kConfigKey);
  config.replace(config.find("num_attention_heads"), 19, "number_of_them_____");
  graph.metadata.front().value = config;
  EXPECT_EQ(refusal(graph),
            "malformed config.json 'H' llama.json 16 71 'model_type' 'hidden_size' 'head_dim' "
            "'num_attention_heads' >names=keep");
  graph = llama();
  for (graph::Tensor& tensor : graph.tensors)
    if (tensor.name.view().find(".mlp.") != std::string::npos) tensor.shape = {1u << 30, 1u << 29};
  EXPECT_EQ(
      refusal(graph),
      "malformed config.json 'blk.0.ffn_gate.weight' 1073741824 536870912 config.json 96 64 >names=keep");
  EXPECT_THROW(exporters::output_slots(graph, {}), Error);  // more than 2^62 bytes
  // a stack of experts that has a gap
  graph = forward::config_graph(forward::find_preset("mixtral-8x7b")->config_json, "mixtral");
  for (graph::Tensor& tensor : graph.tensors)
    if (tensor.name.view() == "model.layers.0.block_sparse_moe.experts.5.w1.weight")
      tensor.name = "elsewhere";
  EXPECT_EQ(refusal(graph),
            "malformed config.json 'model.layers.0.block_sparse_moe.experts.5.w1.weight' "
            "'model.layers.0.block_sparse_moe.experts.0.w1.weight' >names=keep");
}

// --- Settings are accounted for: followed, known to change nothing, or refused by name.

struct SmallModel {
  const char* type;
  const char* settings = "";  // beside the usual sizes, of which a null removes one
};
constexpr SmallModel kSmallModels[] = {
    {"llama"},
    {"mistral"},
    {"mixtral", R"("num_local_experts":4)"},
    {"qwen2"},
    {"qwen2_moe",
     R"("num_experts":4,"num_experts_per_tok":2,"moe_intermediate_size":48,"shared_expert_intermediate_size":80)"},
    {"qwen3", R"("head_dim":32)"},
    {"qwen3_moe",
     R"("head_dim":32,"num_experts":4,"num_experts_per_tok":2,"moe_intermediate_size":48,"norm_topk_prob":true)"},
    {"smollm3", R"("pad_token_id":0)"},
    {"gemma", R"("head_dim":16)"},
    {"gemma2", R"("head_dim":16,"query_pre_attn_scalar":16)"},
    {"gemma3_text", R"("head_dim":16,"query_pre_attn_scalar":16,"sliding_window":64)"},
    {"olmo2"},
    {"olmo3", R"("rope_theta":500000)"},
    {"phi", R"("num_key_value_heads":4)"},
    {"phi3"},
    {"falcon", R"("multi_query":true,"intermediate_size":null,"num_key_value_heads":null)"},
    {"gpt_neox", R"("num_key_value_heads":null)"},
    {"gpt2",
     R"("n_embd":64,"n_layer":2,"n_head":4,"n_positions":256,"hidden_size":null,"num_hidden_layers":null,)"
     R"("num_attention_heads":null,"num_key_value_heads":null,"intermediate_size":null,)"
     R"("max_position_embeddings":null)"},
    {"gpt_oss", R"("head_dim":16,"num_local_experts":4,"num_experts_per_tok":2,"sliding_window":64)"},
    {"deepseek_v3",
     R"("num_key_value_heads":4,"q_lora_rank":24,"kv_lora_rank":32,"qk_nope_head_dim":16,"qk_rope_head_dim":8,)"
     R"("v_head_dim":12,"n_routed_experts":4,"n_shared_experts":1,"num_experts_per_tok":2,)"
     R"("moe_intermediate_size":48,"first_k_dense_replace":1,"n_group":2,"topk_group":1)"},
    {"bert", R"("num_key_value_heads":null)"},
    {"t5", R"("d_model":64,"d_kv":16,"d_ff":96,"num_layers":2,"num_heads":4,"hidden_size":null,)"
           R"("num_hidden_layers":null,"num_attention_heads":null,"num_key_value_heads":null,)"
           R"("intermediate_size":null,"max_position_embeddings":null)"},
};

nlohmann::json small_config(const std::string& type, const std::string& more = "{}") {
  const auto* const row = std::ranges::find(kSmallModels, type, &SmallModel::type);
  nlohmann::json config =
      nlohmann::json::parse(fmt::format("{{{},\"max_position_embeddings\":256}}", kSmall));
  config["model_type"] = type;
  config.merge_patch(nlohmann::json::parse(fmt::format("{{{}}}", row->settings)));
  config.update(nlohmann::json::parse(more));
  return config;
}

exporters::GgufModel small_model(const std::string& type, const std::string& more,
                                 const exporters::ExportOptions& options = {}) {
  return exporters::gguf_model(forward::config_graph(small_config(type, more).dump(), "config.json"),
                               options);
}

// What --ignore would have to name; empty if the file can be written.
std::string unheeded(const std::string& type, const std::string& more) {
  try {
    (void)small_model(type, more);
  } catch (const Error& error) {
    if (!error.remedy() || error.remedy()->option != "ignore") throw;
    return error.remedy()->value;
  }
  return "";
}

struct UnheededSetting {
  const char* type;
  const char* settings;
  const char* names;
};
constexpr const char* kYarn =
    R"("rope_type":"yarn","rope_theta":10000,"factor":4,"original_max_position_embeddings":64)";
constexpr UnheededSetting kUnheeded[] = {
    {"llama", R"({"hidden_act":"gelu"})", "hidden_act"},
    {"llama", R"({"rope_parameters":{"rope_type":"dynamic","factor":4}})", "rope_parameters.rope_type"},
    {"llama", R"({"rope_scaling":{"type":"longrope","factor":4,"long_factor":[1,2]}})", "rope_scaling.type"},
    {"llama", R"({"rope_scaling":{"type":"linear","factor":4,"of_nobody":2}})", "rope_scaling.of_nobody"},
    {"llama", R"({"of_nobody":2})", "of_nobody"},
    {"llama", R"({"logit_scale":0.5,"clip_qkv":8})", "clip_qkv,logit_scale"},
    {"llama", R"({"is_causal":false,"use_rope":false,"qkv_bias":false})", "is_causal,use_rope"},
    {"llama", R"({"a,b":1})", "a?b"},
    {"mistral", R"({"sliding_window":16})", "sliding_window"},
    {"mixtral", R"({"sliding_window":16})", "sliding_window"},
    {"qwen2", R"({"use_sliding_window":true,"sliding_window":16,"max_window_layers":1})", "sliding_window"},
    {"qwen2", R"({"use_sliding_window":true,"sliding_window":16,"max_window_layers":28})", ""},
    {"qwen2", R"({"use_sliding_window":false,"sliding_window":16,"max_window_layers":1})", ""},
    {"qwen2",
     R"({"rope_scaling":{"type":"llama3","factor":8,"low_freq_factor":1,"high_freq_factor":4,"original_max_position_embeddings":64}})",
     "rope_scaling.type"},
    {"qwen2_moe", R"({"norm_topk_prob":true})", "norm_topk_prob"},
    {"qwen2_moe", R"({"mlp_only_layers":[0]})", "mlp_only_layers"},
    {"qwen3", R"({"attention_bias":true})", "attention_bias"},
    {"qwen3_moe", R"({"norm_topk_prob":false})", "norm_topk_prob"},
    {"qwen3_moe", R"({"decoder_sparse_step":2})", "decoder_sparse_step"},
    {"smollm3", R"({"no_rope_layers":[0,1]})", "no_rope_layers"},
    {"smollm3", R"({"no_rope_layer_interval":2})", "no_rope_layer_interval"},
    {"smollm3", R"({"mlp_bias":true})", "mlp_bias"},
    {"smollm3", R"({"use_sliding_window":true,"sliding_window":16})", "sliding_window"},
    {"gemma", R"({"hidden_act":"relu"})", "hidden_act"},
    {"gemma2", R"({"attn_logit_softcapping":null})", "attn_logit_softcapping"},
    // llama.cpp ends where there is a window and no layer has it
    {"gemma2", R"({"layer_types":["full_attention","full_attention"]})", "layer_types"},
    {"gpt_oss", R"({"layer_types":["full_attention","full_attention"]})", "layer_types"},
    {"gemma2", R"({"final_logit_softcapping":null})", "final_logit_softcapping"},
    {"gemma2", R"({"query_pre_attn_scalar":24})", "query_pre_attn_scalar"},
    {"gemma2", R"({"tie_word_embeddings":false})", "tie_word_embeddings"},
    {"gemma3_text", R"({"use_bidirectional_attention":true})", "use_bidirectional_attention"},
    {"gemma3_text",
     R"({"rope_parameters":{"sliding_attention":{"rope_type":"linear","factor":2},"full_attention":{"rope_type":"default"}}})",
     "rope_parameters.sliding_attention.rope_type,rope_parameters.sliding_attention.factor"},
    {"olmo2", R"({"hidden_act":"relu"})", "hidden_act"},
    {"olmo2", R"({"attention_bias":true})", "attention_bias"},
    {"olmo3", R"({"rope_parameters":{"full_attention":{"rope_type":"default","rope_theta":10000}}})",
     "rope.sliding_attention.rope_theta"},
    {"phi", R"({"hidden_act":"relu"})", "hidden_act"},
    {"phi3", R"({"hidden_act":"gelu"})", "hidden_act"},
    {"phi3", R"({"sliding_window":16})", "sliding_window"},
    {"phi3", R"({"sliding_window":256})", ""},
    {"falcon", R"({"activation":"relu"})", "activation"},
    {"gpt_neox", R"({"hidden_act":"relu"})", "hidden_act"},
    {"gpt_neox", R"({"attention_bias":false})", "attention_bias"},
    {"gpt2", R"({"activation_function":"relu"})", "activation_function"},
    {"gpt2", R"({"scale_attn_weights":false})", "scale_attn_weights"},
    {"gpt2", R"({"scale_attn_by_inverse_layer_idx":true})", "scale_attn_by_inverse_layer_idx"},
    {"gpt_oss", R"({"swiglu_limit":3.0})", "swiglu_limit"},
    {"gpt_oss",
     R"({"layer_types":["full_attention","sliding_attention","sliding_attention"],"num_hidden_layers":3})",
     "layer_types"},
    {"deepseek_v3", R"({"rope_interleave":false})", "rope_interleave"},
    {"deepseek_v3", R"({"scoring_func":"softmax"})", "scoring_func"},
    {"deepseek_v3", R"({"attention_bias":true})", "attention_bias"},
    {"deepseek_v3", R"({"rms_norm_eps":1e-5})", "rms_norm_eps"},
    {"bert", R"({"hidden_act":"relu"})", "hidden_act"},
    {"bert", R"({"is_decoder":true})", "is_decoder"},
    {"bert", R"({"position_embedding_type":"relative_key"})", "position_embedding_type"},
    {"t5", R"({"relative_attention_max_distance":256})", "relative_attention_max_distance"},
    {"t5", R"({"feed_forward_proj":"gated-silu"})", "feed_forward_proj"},
};

TEST(GgufModel, SettingsThatLlamaDoesNotFollowAreNamed) {
  for (const SmallModel& model : kSmallModels) EXPECT_EQ(unheeded(model.type, "{}"), "") << model.type;
  for (const UnheededSetting& row : kUnheeded)
    EXPECT_EQ(unheeded(row.type, row.settings), row.names) << row.type << ' ' << row.settings;
  // where every layer's positions are scaled alike
  for (const char* type : {"llama", "qwen2", "qwen3", "smollm3", "gemma", "gemma2", "olmo2", "phi", "falcon",
                           "gpt_neox", "gpt_oss"}) {
    const auto yarn = [&](const std::string& more) {
      return unheeded(type, fmt::format(R"({{"rope_scaling":{{{}{}}}}})", kYarn, more));
    };
    EXPECT_EQ(yarn(""), "") << type;
    EXPECT_EQ(yarn(R"(,"attention_factor":0.7)"), "") << type;
    EXPECT_EQ(yarn(R"(,"beta_fast":32,"beta_slow":1,"truncate":true)"), "") << type;
    EXPECT_EQ(yarn(R"(,"beta_fast":16)"), "rope_scaling.beta_fast") << type;
    EXPECT_EQ(yarn(R"(,"beta_slow":2)"), "rope_scaling.beta_slow") << type;
    EXPECT_EQ(yarn(R"(,"truncate":false)"), "rope_scaling.truncate") << type;
  }
}

// Numbers that no norm and no position can have, and packings that nothing has unpacked.
TEST(GgufModel, ImpossibleSettingsAreErrors) {
  for (const char* const settings :
       {R"({"rms_norm_eps":"NaN"})", R"({"rms_norm_eps":-1})", R"({"rms_norm_eps":true})",
        R"({"rms_norm_eps":1e300})", R"({"rope_theta":1e300})", R"({"rope_theta":false})",
        R"({"rope_scaling":{"type":"linear"}})", R"({"rope_scaling":{"type":"linear","factor":0}})",
        R"({"rope_scaling":{"type":"linear","factor":-4}})"})
    EXPECT_THROW((void)small_model("llama", settings, {}), Error) << settings;
  EXPECT_NO_THROW((void)small_model("llama", R"({"rms_norm_eps":1e-5})", {}));
  graph::MetaGraph graph = llama(R"(, "quantization_config": {"quant_method": "of nobody"})");
  EXPECT_EQ(refusal(graph), "");  // its weights are numbers as they are
  for (graph::Tensor& tensor : graph.tensors)
    if (tensor.name.view().ends_with("q_proj.weight")) tensor.dtype = graph::DType::i32;
  EXPECT_NE(refusal(graph).find("quant_method"), std::string::npos) << refusal(graph);
}

TEST(GgufModel, IgnoredSettingsAreNoted) {
  exporters::ExportOptions options;
  options.ignored_settings = {"sliding_*"};
  EXPECT_EQ(small_model("mistral", R"({"sliding_window":16})", options).notes.front(),
            "'sliding_window' is 16: ignored, so what it computes may differ from the model");
  EXPECT_THROW((void)small_model("mistral", R"({"sliding_window":16,"of_nobody":1})", options), Error);
  // what matches nothing is misspelled, or already followed
  options.ignored_settings = {"sliding_*", "sliding_windows", "*"};
  EXPECT_EQ(testing::facts_of([&] { (void)small_model("mistral", R"({"sliding_window":16})", options); }),
            "usage 'sliding_windows'");
  options.ignored_settings = {"*"};  // whatever there is
  EXPECT_NO_THROW((void)small_model("mistral", "{}", options));
  options.ignored_settings = {"sliding_window"};
  graph::MetaGraph named = llama();
  for (const char* const exporter : {"gguf", "safetensors"}) {
    options.keep_names = true;  // nothing is compared
    EXPECT_EQ(testing::facts_of([&] {
                (void)exporters::find_exporter(exporter).layout(
                    named, options, std::string(exporter) == "gguf" ? "o.gguf" : "o");
              }),
              "usage 'sliding_window'")
        << exporter;
  }
}

TEST(GgufModel, KeysThatCannotBeNameTheirSettings) {
  EXPECT_EQ(testing::facts_of([] { (void)small_model("llama", R"({"max_position_embeddings":-1})", {}); }),
            "malformed config.json 'llama.context_length' -1 'max_position_embeddings'");
  EXPECT_EQ(testing::facts_of([] { (void)small_model("llama", R"({"rms_norm_eps":-1})", {}); }),
            "malformed config.json 'llama.attention.layer_norm_rms_epsilon' -1 'rms_norm_eps'");
  graph::MetaGraph graph = llama();
  std::string config = *graph::find_text(graph, graph::kConfigKey);
  config.replace(config.find("\"model_type\": \"llama\","), 22, "");
  graph.metadata.front().value = config;
  // the class tells the family, whose rules ask for the type
  EXPECT_EQ(refusal(graph), "malformed config.json llama.json 2 20 'model_type' >names=keep");
  config.replace(config.find("LlamaForCausalLM"), 16, "OtherForCausalLM");
  graph.metadata.front().value = config;
  EXPECT_EQ(refusal(graph), "unsupported config.json 'model_type' llama.cpp >names=keep");
}

TEST(GgufModel, APointerIsNoTokenizer) {
  const testing::TemporaryFolder folder;
  Progress progress;
  exporters::synthesize(llama(), folder / "model", {}, progress);
  testing::write_file(folder / "model/tokenizer.json",
                      "version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 17082730\n");
  const graph::MetaGraph graph = importers::open_model(folder / "model", {});
  const std::string said = refusal(graph);
  EXPECT_NE(said.find("unsupported tokenizer.json"), std::string::npos) << said;
  EXPECT_NE(said.find("17082730"), std::string::npos) << said;
}

// Settings of a text model inside another one have the same names; what is beside it is not written.
TEST(GgufModel, NestedSettingsAreAccountedFor) {
  nlohmann::json config = {{"model_type", "gemma3"},
                           {"architectures", {"Gemma3ForConditionalGeneration"}},
                           {"text_config", small_config("gemma3_text")},
                           {"vision_config", {{"hidden_size", 32}}},
                           {"mm_tokens_per_image", 256},
                           {"tie_word_embeddings", true}};
  const auto left = [&] {
    const forward::ModelConfig model(config.dump(), "config.json");
    const forward::GgufMap map = forward::map_to_gguf(*forward::find_gguf_family(model), model,
                                                      forward::config_graph(config.dump(), "config.json"));
    return forward::settings_text(map.unaccounted);
  };
  EXPECT_EQ(left(), "");
  config["text_config"]["use_bidirectional_attention"] = true;
  config["of_nobody"] = "x";
  EXPECT_EQ(left(), R"('use_bidirectional_attention' is true, 'root.of_nobody' is "x")");
}

std::map<std::string, std::string> keys_of(const std::string& type, const std::string& more) {
  std::map<std::string, std::string> keys;
  const nlohmann::json json = small_config(type, more);
  const forward::ModelConfig config(json.dump(), "config.json");
  for (const forward::MappedKey& key : forward::map_to_gguf(*forward::find_gguf_family(config), config,
                                                            forward::config_graph(json.dump(), "config.json"))
                                           .keys)
    keys[key.name.substr(key.name.find('.') + 1)] = key.value.shown();
  return keys;
}

TEST(GgufModel, KeysSayHowPositionsAreScaled) {
  for (const char* type : {"gemma", "gemma2", "olmo2", "phi", "falcon", "gpt_neox", "gpt_oss", "llama"}) {
    SCOPED_TRACE(type);
    auto keys = keys_of(type, fmt::format(R"({{"rope_parameters":{{{}}}}})", kYarn));
    EXPECT_EQ(keys["rope.scaling.type"], "'yarn'");
    EXPECT_EQ(keys["rope.scaling.factor"], "4");
    EXPECT_EQ(keys["rope.scaling.original_context_length"], "64");
    EXPECT_FALSE(keys.contains("rope.scaling.attn_factor"));
    keys = keys_of(type, fmt::format(R"({{"rope_parameters":{{{},"mscale":1,"mscale_all_dim":1}}}})", kYarn));
    EXPECT_EQ(keys["rope.scaling.attn_factor"].substr(0, 6), "0.8782");  // 1 / (0.1 * log(4) + 1)
    keys = keys_of(type, R"({"rope_scaling":{"type":"linear","factor":8.0},"rope_theta":500})");
    EXPECT_EQ(keys["rope.scaling.type"], "'linear'");
    EXPECT_EQ(keys["rope.scaling.factor"], "8");
    EXPECT_EQ(keys["rope.freq_base"], "500");
  }
  // what transformers saves goes before, and beside, an older spelling
  EXPECT_EQ(keys_of("llama", R"({"rope_parameters":{"rope_type":"default","rope_theta":7},"rope_theta":9})")
                .at("rope.freq_base"),
            "7");
}

TEST(GgufModel, KeysSayWhichLayersHaveWindows) {
  const char* const first = R"({"num_hidden_layers":4,"layer_types":["sliding_attention","full_attention",)"
                            R"("sliding_attention","full_attention"]})";
  EXPECT_FALSE(keys_of("gemma2", first).contains("attention.sliding_window_pattern"));
  EXPECT_FALSE(keys_of("gpt_oss", first).contains("attention.sliding_window_pattern"));
  EXPECT_EQ(keys_of("gemma3_text", first).at("attention.sliding_window_pattern"), "2");
  const char* const sliding = R"({"layer_types":["sliding_attention","sliding_attention"]})";
  EXPECT_EQ(keys_of("gpt_oss", sliding).at("attention.sliding_window_pattern"), "0");
  EXPECT_FALSE(keys_of("gemma3_text", sliding).contains("attention.sliding_window_pattern"));
}

// Sizes in a configuration are bytes from a file like any other.
TEST(GgufModel, HostileConfigurationsAreErrors) {
  const auto with = [&](const std::string& key, const std::string& value) {
    graph::MetaGraph graph = llama();
    for (graph::MetaEntry& entry : graph.metadata)
      if (auto* const text = std::get_if<std::string>(&entry.value)) {
        const std::size_t at = text->find("\"" + key + "\": ");
        const std::size_t from = at + key.size() + 4;
        text->replace(from, text->find_first_of(",}", from) - from, value);
      }
    return refusal(graph);
  };
  EXPECT_EQ(with("vocab_size", "320"), "");
  for (const char* value : {"-1", "0", "3", "null", "\"x\"", "1e300", "9223372036854775807", "[]", "{}"})
    EXPECT_NE(with("num_attention_heads", value), "") << value;
  for (const char* value : {"-1", "1000000000000", "null", "\"x\""})
    EXPECT_NE(with("num_hidden_layers", value), "") << value;
  EXPECT_NE(with("max_position_embeddings", "5000000000"), "");  // more than a u32
  EXPECT_NE(with("rms_norm_eps", "\"x\""), "");
  for (const char* rope : {R"("factor": 0)", R"("factor": "x")", R"("factor": 8, "low_freq_factor": -1)"})
    EXPECT_NE(refusal(llama(fmt::format(R"(, "rope_scaling": {{"rope_type": "llama3", {}}})", rope))), "")
        << rope;
}

TEST(GgufModel, RulesThatDoNotFitAreErrorsAtTheirPlace) {
  const auto fault = [](const std::string& line) {
    return testing::facts_of([&] {
      const forward::GgufFamily family = forward::parse_gguf_family(
          R"({"architecture": "'x'", "keys": [], "tensors": [")" + line + R"("], "layer": ["a = b"]})",
          "x.json");
      forward::map_to_gguf(family, forward::ModelConfig("{}", "config.json"), graph::MetaGraph());
    });
  };
  EXPECT_EQ(fault("token_embd = embed"), "");
  EXPECT_EQ(fault("each i in 2: layer @ blk.{i} = l.{i} if 1 == 1"), "");
  for (const char* line :
       {"", "a", "a =", "a = b |", "a = b | fly", "a = b | permute", "a = b | permute(1, 2)",
        "a = b | part(0, 1", "each i in 2: layer @ blk.{i}", "each i in 2: nothing @ x = y", "a = stack e in",
        "a = join(b", "a = values(", "a = b if", "a = b c", "a = values(3)",
        "each i in -1: layer @ blk.{i} = l.{i}", "each i in 1000000: layer @ b.{i} = l.{i}"})
    EXPECT_NE(fault(line), "") << line;
}

}  // namespace

// --- GGUF files as Hugging Face folders. That transformers loads them is for
// tests/interop/test_gguf_back.py.

namespace {

using export_tests::convert;
using export_tests::open;
using testing::TemporaryFolder;

class HuggingFaceModels : public ::testing::Test {
 protected:
  void SetUp() override {
    Progress progress;
    exporters::synthesize(
        forward::config_graph(
            R"({"model_type": "llama", "architectures": ["LlamaForCausalLM"], "hidden_size": 64,
      "intermediate_size": 96, "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2,
      "vocab_size": 320, "max_position_embeddings": 256, "rms_norm_eps": 1e-5, "torch_dtype": "bfloat16",
      "tie_word_embeddings": false})",
            "config.json"),
        folder_ / "m", {.seed = 1, .max_shard_bytes = 0, .overwrite = false}, progress);
    model_ = open(folder_ / "m");
    convert(model_, folder_ / "m.gguf", {});
    gguf_ = open(folder_ / "m.gguf");
  }

  std::string refusal(const std::function<void(graph::MetaGraph&)>& change) const {
    graph::MetaGraph graph = *gguf_;
    change(graph);
    return testing::facts_of([&] { (void)exporters::hugging_face_model(graph, {}); });
  }

  TemporaryFolder folder_;
  graph::MetaGraphPtr model_, gguf_;
};

graph::Tensor& named(graph::MetaGraph& graph, std::string_view name) {
  return *std::ranges::find_if(graph.tensors,
                               [&](const graph::Tensor& tensor) { return tensor.name.view() == name; });
}

TEST_F(HuggingFaceModels, AreWhatTheFilesWereMadeOf) {
  convert(gguf_, folder_ / "back", {});
  const graph::MetaGraphPtr back = open(folder_ / "back");
  ASSERT_EQ(back->tensors.size(), model_->tensors.size());
  for (const graph::Tensor& tensor : model_->tensors) {
    const graph::Tensor& restored = export_tests::tensor_named(*back, tensor.name.str());
    EXPECT_EQ(restored.dtype, graph::DType::bf16);
    EXPECT_EQ(export_tests::tensor_content(back, restored), export_tests::tensor_content(model_, tensor))
        << tensor.name.view();
  }
  const forward::ModelConfig config(*graph::find_text(*back, graph::kConfigKey), "config.json");
  EXPECT_EQ(config.model_type(), "llama");
  EXPECT_EQ(config.get("num_key_value_heads"), assets::Datum(std::int64_t{2}));
  EXPECT_EQ(config.text("torch_dtype", ""), "bfloat16");
}

TEST_F(HuggingFaceModels, KeepWhatTheFileSaysOfItself) {
  graph::MetaGraph graph = *gguf_;
  graph.metadata.push_back({"general.license", std::string("apache-2.0")});
  graph.metadata.push_back({"llama.of_no_family", std::uint32_t{7}});
  const auto gguf = std::make_shared<const graph::MetaGraph>(std::move(graph));
  EXPECT_EQ(testing::facts_of([&] { (void)exporters::hugging_face_model(*gguf, {}); }),
            "unsupported m.gguf 'llama.of_no_family' 7 config.json >ignore=llama.of_no_family");
  exporters::ExportOptions options;
  options.ignored_settings = {"llama.of_no_family"};
  const exporters::Preflight planned =
      exporters::preflight({gguf, &exporters::find_exporter("safetensors"), folder_ / "back", options});
  ASSERT_EQ(planned.left_out.size(), 1u) << ::testing::PrintToString(planned.left_out);
  EXPECT_EQ(planned.left_out.front(),
            "1 metadata key is not written, safetensors has no place for it: 'llama.of_no_family'");
  convert(gguf, folder_ / "back", options);
  const graph::MetaGraphPtr back = open(folder_ / "back");
  EXPECT_EQ(*graph::find_text(*back, "general.license"), "apache-2.0");
  EXPECT_EQ(graph::find_metadata(*back, "general.architecture"), nullptr);
  convert(back, folder_ / "again.gguf", {});
  EXPECT_EQ(*graph::find_text(*open(folder_ / "again.gguf"), "general.license"), "apache-2.0");
}

TEST_F(HuggingFaceModels, KeepTheFilesNamesIfAsked) {
  exporters::ExportOptions options;
  options.keep_names = true;
  EXPECT_FALSE(exporters::hugging_face_model(*gguf_, options));
  convert(gguf_, folder_ / "kept", options);
  EXPECT_EQ(export_tests::tensor_named(*open(folder_ / "kept"), "blk.0.attn_q.weight").dtype,
            graph::DType::bf16);
}

TEST_F(HuggingFaceModels, TheModelsOwnNamesAreKept) {
  graph::MetaGraph graph = *gguf_;
  named(graph, "blk.1.ffn_up.weight").name = graph::Name("model.layers.1.mlp.up_proj.weight");
  EXPECT_FALSE(exporters::hugging_face_model(graph, {}));
}

TEST_F(HuggingFaceModels, FilesThatDoNotFitTheirKeysAreErrors) {
  EXPECT_EQ(refusal([](graph::MetaGraph&) {}), "");
  EXPECT_EQ(refusal([](graph::MetaGraph& graph) {
              named(graph, "blk.1.ffn_up.weight").name = graph::Name("elsewhere");
            }),
            "unsupported m.gguf 'model.layers.1.mlp.up_proj.weight'");
  EXPECT_EQ(refusal([](graph::MetaGraph& graph) {
              named(graph, "blk.1.ffn_up.weight").shape = {96, 63};
            }),
            "malformed m.gguf 'blk.1.ffn_up.weight' 96 63 96 64");
}

TEST_F(HuggingFaceModels, LayersThatTheKeysDoNotCountAreErrors) {
  EXPECT_EQ(refusal([](graph::MetaGraph& graph) {
              std::ranges::find(graph.metadata, "llama.block_count", &graph::MetaEntry::key)->value =
                  std::uint32_t{1};
            }),
            "malformed m.gguf 'blk.1.attn_norm.weight' 1 'llama.block_count' 1");
}

TEST_F(HuggingFaceModels, VectorsStayF32InEveryFloatType) {
  exporters::ExportOptions half;
  half.outtype = graph::DType::f16;
  convert(gguf_, folder_ / "half.gguf", half);
  const graph::MetaGraphPtr read = open(folder_ / "half.gguf");
  EXPECT_EQ(export_tests::tensor_named(*read, "blk.0.attn_norm.weight").dtype, graph::DType::f32);
  EXPECT_EQ(export_tests::tensor_named(*read, "blk.0.attn_q.weight").dtype, graph::DType::f16);
}

TEST_F(HuggingFaceModels, KeysAreComparedWithoutATokenizerToo) {
  testing::write_file(folder_ / "m/tokenizer.json",
                      R"({"pre_tokenizer": {"type": "ByteLevel"}, "model": {"type": "BPE", "vocab": {"a": 0},
                          "merges": []}})");
  const auto keys = exporters::counterpart_keys(*open(folder_ / "m"), *gguf_);
  ASSERT_TRUE(keys);
  EXPECT_NE(keys->problem.find("SHA-256"), std::string::npos) << keys->problem;
  EXPECT_TRUE(graph::find_metadata(keys->graph, "llama.block_count"));
  EXPECT_FALSE(graph::find_metadata(keys->graph, "tokenizer.ggml.model"));
}

TEST_F(HuggingFaceModels, TensorsWithoutAPlaceAreNamed) {
  graph::MetaGraph graph = *gguf_;
  graph.tensors.push_back(graph.tensors.front());
  graph.tensors.back().name = graph::Name("blk.0.another.weight");
  const std::vector<std::string> lost = exporters::hugging_face_model(graph, {}).value().lost;
  EXPECT_TRUE(std::ranges::any_of(lost, [](const std::string& sentence) {
    return sentence.find("blk.0.another.weight") != std::string::npos;
  }));
}

}  // namespace

// --- Recipes read backwards: random chains give their numbers back, and every published model of a mapped
// family can be restored from its GGUF tensors.

namespace {

graph::TensorId add(graph::MetaGraph& graph, const std::string& name, graph::DType dtype,
                    const graph::Shape& shape) {
  const graph::StorageId storage{static_cast<std::uint32_t>(graph.storages.size())};
  graph.storages.push_back(
      graph::shapes_only_storage(*graph::byte_size(dtype, *graph::element_count(shape))));
  graph.tensors.push_back({name, dtype, shape, {}, storage, 0});
  return graph::TensorId{static_cast<std::uint32_t>(graph.tensors.size() - 1)};
}

using Bytes = std::vector<std::vector<std::byte>>;  // by tensor

std::vector<std::byte> run(const graph::MetaGraph& graph, const Bytes& bytes, const convert::Recipe& recipe) {
  const io::ReadTensor read = [&](graph::TensorId id, std::uint64_t offset, std::span<std::byte> out) {
    std::memcpy(out.data(), bytes[graph::index(id)].data() + offset, out.size());
  };
  convert::RecipeReader reader(graph, read, recipe, convert::RecipeReader::kLeastMemory);
  std::vector<std::byte> result(static_cast<std::size_t>(reader.bytes()));
  reader.read(0, result);
  return result;
}

// A chain of moves of a tensor [4 x 6, 8], cut or joined on the way.
class Chain {
 public:
  explicit Chain(std::mt19937& random) : random_(random) {}

  convert::RecipeStep move(const convert::Form& form) {
    switch (random_() % 4) {
      case 0:
        return {.kind = convert::StepKind::permute_rows, .a = 2, .b = 3};
      case 1:
        return {.kind = convert::StepKind::add_constant, .value = 1};
      case 2:
        if (form.shape.size() > 1 && form.shape[form.shape.size() - 2] % 6 == 0)
          return {.kind = convert::StepKind::transpose};
        [[fallthrough]];
      default:
        return {.kind = convert::StepKind::reshape, .shape = {6, *graph::element_count(form.shape) / 6}};
    }
  }

 private:
  std::mt19937& random_;
};

TEST(InvertRecipe, RandomChainsGiveTheirNumbersBack) {
  std::mt19937 random(7);
  for (int turn = 0; turn < 200; ++turn) {
    graph::MetaGraph model;
    const graph::TensorId weight = add(model, "w", graph::DType::f32, {24, 8}),
                          other = add(model, "o", graph::DType::f32, {24, 8});
    Bytes bytes(2, std::vector<std::byte>(24 * 8 * 4));
    for (auto& tensor : bytes)
      for (std::size_t i = 0; i < tensor.size(); i += 4) {
        const auto value = static_cast<float>(random() % 1000);
        std::memcpy(&tensor[i], &value, 4);
      }
    // `w` is cut in three along its rows, each part goes a way of its own, and the first is joined with `o`
    std::vector<convert::Recipe> recipes;
    std::uint64_t first = 0;
    for (const std::uint64_t rows : {6u, 12u, 6u}) {
      convert::Recipe recipe = convert::take(weight);
      recipe.then({.kind = convert::StepKind::slice, .axis = 0, .first = first, .count = rows});
      first += rows;
      Chain chain(random);
      for (int i = 0; i < 3; ++i) {
        convert::Recipe longer = recipe;
        longer.then(chain.move(convert::recipe_forms(model, recipe).back()));
        try {
          (void)convert::recipe_forms(model, longer);
          recipe = std::move(longer);
        } catch (const Error&) {  // a move that does not fit this shape
        }
      }
      recipes.push_back(std::move(recipe));
    }
    convert::Recipe joined = recipes[0];
    const auto left = static_cast<std::uint32_t>(joined.steps.size() - 1);
    const std::uint32_t right = joined.append(convert::take(other));
    joined.steps.push_back({.kind = convert::StepKind::reshape, .inputs = {left}, .shape = {48}});
    joined.steps.push_back({.kind = convert::StepKind::reshape, .inputs = {right}, .shape = {192}});
    joined.steps.push_back(
        {.kind = convert::StepKind::concatenate, .inputs = {right + 2, right + 1}, .axis = 0});
    recipes[0] = std::move(joined);

    graph::MetaGraph converted;
    Bytes made;
    std::vector<convert::ConvertedTensor> tensors;
    for (const convert::Recipe& recipe : recipes) {
      const convert::Form form = convert::recipe_forms(model, recipe).back();
      tensors.push_back({add(converted, "c" + std::to_string(made.size()), form.dtype, form.shape), recipe});
      made.push_back(run(model, bytes, recipe));
    }
    const convert::RecipeInverter back(model, converted, tensors);
    for (const graph::TensorId id : {weight, other}) {
      const auto recipe = back.recipe_for(id);
      ASSERT_TRUE(recipe) << turn;
      EXPECT_EQ(convert::recipe_forms(converted, *recipe).back().shape, model.tensor(id).shape);
      EXPECT_EQ(run(converted, made, *recipe), bytes[graph::index(id)]) << turn;
    }
    tensors.pop_back();
    EXPECT_FALSE(convert::RecipeInverter(model, converted, tensors).recipe_for(weight))
        << "a third is missing";
  }
}

TEST(InvertRecipe, PublishedModelsCanBeRestored) {
  std::size_t families = 0;
  for (const forward::Preset& preset : forward::presets()) {
    const forward::ModelConfig config(preset.config_json, std::string(preset.id));
    const forward::GgufFamily* const family = forward::find_gguf_family(config);
    if (family == nullptr) continue;
    ++families;
    const graph::MetaGraph model = forward::config_graph(preset.config_json, std::string(preset.id));
    const std::vector<std::string> dropped = forward::map_to_gguf(*family, config, model).dropped;
    graph::MetaGraph gguf;
    std::vector<convert::ConvertedTensor> tensors;
    for (const exporters::Slot& slot : exporters::gguf_slots(model, {.outtype = graph::DType::f16}))
      tensors.push_back({add(gguf, slot.name.str(), slot.dtype, slot.shape), slot.recipe});
    const convert::RecipeInverter back(model, gguf, std::move(tensors));
    for (std::uint32_t i = 0; i < model.tensors.size(); ++i) {
      const auto recipe = back.recipe_for(graph::TensorId{i});
      const std::string name = model.tensors[i].name.str();
      const bool written = std::ranges::find(dropped, name) == dropped.end();
      if (model.logical.empty() && written) ASSERT_TRUE(recipe) << preset.id << ' ' << name;
      if (recipe)
        EXPECT_EQ(convert::recipe_forms(gguf, *recipe).back().shape, model.tensors[i].shape) << preset.id;
    }
  }
  EXPECT_GE(families, 10u);
}

}  // namespace

}  // namespace loadline::tests
