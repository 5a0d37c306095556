// GGUF files open as models: their keys give back the configuration, their tensors the operators' weights.
#include "core/forward/gguf/gguf_map.h"
#include "core/forward/model/expected_tensors.h"
#include "core/forward/model/forward_model.h"
#include "core/forward/model/known_models.h"
#include "exporters/synth.h"
#include "importers/resolve.h"
#include "tests/support/builders.h"

#include <algorithm>
#include <map>
#include <set>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace loadline {
namespace {

// A sparse file of llama.cpp's names and keys.
MetaGraph gguf_of(const MetaGraph& shapes, const testing::TemporaryFolder& folder, const std::string& name) {
  Progress progress;
  const std::string path = folder / (name + ".gguf");
  synthesize(shapes, path, {.seed = {}, .max_shard_bytes = 0, .overwrite = true, .to = "gguf"}, progress);
  return open_model(path, {});
}
MetaGraph gguf_of(const std::string& config, const testing::TemporaryFolder& folder) {
  return gguf_of(config_graph(config, "config.json"), folder, "model");
}

ForwardModel pass_of(const MetaGraph& graph, const char* profile) {
  return forward_model(graph, *built_in_assets(), built_in_assets()->profile(profile));
}

void expect_equal_passes(const ForwardModel& file, const ForwardModel& model) {
  ASSERT_EQ(file.source, ForwardSource::architecture) << file.remark;
  ASSERT_TRUE(file.graph && model.graph);
  EXPECT_EQ(file.cache_bytes_per_token, model.cache_bytes_per_token);
  EXPECT_EQ(file.graph->symbols, model.graph->symbols);
  EXPECT_TRUE(file.graph->values == model.graph->values);
  ASSERT_EQ(file.graph->ops.size(), model.graph->ops.size());
  for (std::size_t i = 0; i < file.graph->ops.size(); ++i) {
    Op ours = file.graph->ops[i], theirs = model.graph->ops[i];
    ours.weights = theirs.weights = {};
    EXPECT_TRUE(ours == theirs) << ours.name;
  }
}

// What a file of llama.cpp cannot say: Mistral's sliding window, and how weights were packed.
std::string without_lost_settings(const Preset& preset) {
  nlohmann::json config = nlohmann::json::parse(preset.config_json);
  if (config["model_type"] == "mistral") config["sliding_window"] = nullptr;
  config.erase("quantization_config");  // of gpt-oss: its file has MXFP4 blocks as one tensor
  return config.dump();
}

TEST(GgufModels, PublishedModelsComeBackAsTheyWere) {
  const testing::TemporaryFolder folder;
  std::size_t mapped = 0;
  for (const Preset& preset : presets()) {
    const std::string config = without_lost_settings(preset);
    if (find_gguf_family(ModelConfig(config, "config.json")) == nullptr) continue;
    SCOPED_TRACE(preset.id);
    ++mapped;
    const MetaGraph shapes = config_graph(config, "config.json");
    const MetaGraph file = gguf_of(shapes, folder, "model");
    const bool pooled = preset.id == "bert-base-uncased";  // llama.cpp's files lack its pooler
    for (const char* profile : {"fused", "ggml"})
      if (pooled)
        EXPECT_EQ(pass_of(file, profile).source, ForwardSource::architecture);
      else
        expect_equal_passes(pass_of(file, profile), pass_of(shapes, profile));
    const ModelClaims claims = model_claims(file, *built_in_assets());
    EXPECT_TRUE(claims.missing.empty());
    EXPECT_TRUE(claims.unclaimed.empty());
    if (!pooled) EXPECT_EQ(claims.parameters, model_claims(shapes, *built_in_assets()).parameters);
  }
  EXPECT_GE(mapped, 20u);
}

TEST(GgufModels, EveryTensorIsTheWeightOfSomeOperator) {
  const testing::TemporaryFolder folder;
  for (const char* id : {"mixtral-8x7b", "deepseek-v2-lite", "falcon-40b", "gpt2"}) {
    SCOPED_TRACE(id);
    const MetaGraph file = gguf_of(config_graph(find_preset(id)->config_json, id), folder, id);
    const ForwardModel model = pass_of(file, "ggml");
    ASSERT_TRUE(model.graph) << model.remark;
    std::set<TensorId> used;
    for (const Op& op : model.graph->ops) {
      EXPECT_EQ(std::set<TensorId>(op.weights.begin(), op.weights.end()).size(), op.weights.size())
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
  return nlohmann::json::parse(gguf_config(gguf_of(config, folder))->json);
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

  EXPECT_EQ(
      keys_back(fmt::format(R"({{"model_type":"mixtral",{},"num_local_experts":4}})", kSmall))["model_type"],
      "mixtral");
}

// Puts parts of every layer together, as the converter's options do.
MetaGraph fused(MetaGraph graph, const std::vector<std::string>& parts, const std::string& whole) {
  std::map<std::string, std::uint64_t> rows;
  std::vector<Tensor> kept;
  for (Tensor& tensor : graph.tensors) {
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
    tensor.name = Name(to);
    tensor.shape = Shape(sides);
    tensor.storage =
        graph.add_storage(shapes_only_storage(*byte_size(tensor.dtype, *element_count(tensor.shape))));
    kept.push_back(tensor);
  }
  graph.tensors = kept;
  return graph;
}

TEST(GgufModels, FusedTensorsAreLegal) {
  const testing::TemporaryFolder folder;
  const MetaGraph llama = gguf_of(fmt::format(R"({{"model_type":"llama",{}}})", kSmall), folder);
  const MetaGraph qkv = fused(llama, {"attn_q", "attn_k", "attn_v"}, "attn_qkv");
  EXPECT_EQ(qkv.tensors.size(), llama.tensors.size() - 4);
  expect_equal_passes(pass_of(qkv, "ggml"), pass_of(llama, "ggml"));
  EXPECT_EQ(model_claims(qkv, *built_in_assets()).parameters,
            model_claims(llama, *built_in_assets()).parameters);

  const MetaGraph experts =
      gguf_of(fmt::format(R"({{"model_type":"mixtral",{},"num_local_experts":4}})", kSmall), folder);
  const MetaGraph gate_up = fused(experts, {"ffn_gate_exps", "ffn_up_exps"}, "ffn_gate_up_exps");
  expect_equal_passes(pass_of(gate_up, "ggml"), pass_of(experts, "ggml"));
  EXPECT_TRUE(model_claims(gate_up, *built_in_assets()).unclaimed.empty());
}

TEST(GgufModels, WhatDoesNotFitIsSaid) {
  const testing::TemporaryFolder folder;
  const MetaGraph whole = gguf_of(fmt::format(R"({{"model_type":"llama",{}}})", kSmall), folder);
  const auto without = [&](std::string_view name) {
    MetaGraph graph = whole;
    std::erase_if(graph.tensors, [&](const Tensor& tensor) { return tensor.name.view() == name; });
    return graph;
  };
  const MetaGraph lacking = without("blk.1.attn_k.weight");
  EXPECT_EQ(pass_of(lacking, "ggml").source, ForwardSource::estimate);
  EXPECT_EQ(model_claims(lacking, *built_in_assets()).missing,
            std::vector<std::string>{"blk.1.attn_k.weight"});

  const auto with_key = [&](std::string_view key, MetaValue value) {
    MetaGraph graph = whole;
    for (MetaEntry& entry : graph.metadata)
      if (entry.key == key) entry.value = std::move(value);
    return graph;
  };
  const ForwardModel wider = pass_of(with_key("llama.feed_forward_length", std::uint32_t{128}), "ggml");
  EXPECT_NE(wider.source, ForwardSource::architecture);
  EXPECT_NE(wider.remark.find("blk.0.ffn_gate.weight"), std::string::npos) << wider.remark;
  EXPECT_NE(wider.remark.find("[128,64]"), std::string::npos) << wider.remark;
  const ForwardModel text = pass_of(with_key("llama.embedding_length", std::string("wide")), "ggml");
  EXPECT_NE(text.remark.find("'hidden_size' is 'wide': a whole number expected"), std::string::npos)
      << text.remark;
  const ForwardModel huge = pass_of(with_key("llama.block_count", std::uint32_t{4'000'000'000u}), "ggml");
  EXPECT_NE(huge.source, ForwardSource::architecture);
  const ForwardModel none = pass_of(with_key("general.architecture", std::string("no-such")), "ggml");
  EXPECT_NE(none.remark.find("no-such"), std::string::npos) << none.remark;
  EXPECT_FALSE(gguf_config(with_key("general.architecture", std::string("*"))));
}

// An unknown architecture with the usual keys has a cache all the same.
TEST(GgufModels, UnknownArchitecturesAreEstimated) {
  const testing::TemporaryFolder folder;
  MetaGraph graph = gguf_of(fmt::format(R"({{"model_type":"llama",{}}})", kSmall), folder);
  const std::uint64_t cache = *pass_of(graph, "fused").cache_bytes_per_token;
  for (MetaEntry& entry : graph.metadata) {
    if (entry.key == "general.architecture") entry.value = std::string("other");
    if (entry.key.starts_with("llama.")) entry.key.replace(0, 5, "other");
  }
  const ForwardModel model = pass_of(graph, "ggml");
  EXPECT_EQ(model.source, ForwardSource::estimate);
  EXPECT_EQ(model.cache_bytes_per_token, cache);
}

// Each tensor that no rule explains is unclaimed.
TEST(GgufModels, OtherTensorsAreUnclaimed) {
  const testing::TemporaryFolder folder;
  MetaGraph graph = gguf_of(fmt::format(R"({{"model_type":"llama",{}}})", kSmall), folder);
  Tensor other = graph.tensors.front();
  other.name = Name("my_adapter.weight");
  other.shape = {1, 4};
  other.storage = graph.add_storage(shapes_only_storage(*byte_size(other.dtype, 4)));
  graph.tensors.push_back(other);
  const ModelClaims claims = model_claims(graph, *built_in_assets());
  ASSERT_EQ(claims.unclaimed.size(), 1u);
  EXPECT_EQ(graph.tensor(claims.unclaimed.front()).name.view(), "my_adapter.weight");
}

}  // namespace
}  // namespace loadline
