// Models mapped to llama.cpp's names: every published configuration of a mapped family, and what is refused.
// That names, keys and bytes are right is for tests/interop/test_gguf_names.py to say.
#include "core/base/error.h"
#include "core/forward/gguf/gguf_map.h"
#include "core/forward/model/known_models.h"
#include "core/graph/packed/quantization.h"
#include "exporters/gguf/gguf.h"
#include "exporters/synth.h"
#include "tests/exporters/export_support.h"

#include <map>
#include <set>

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace loadline {
namespace {

MetaGraph llama(const std::string& more = "") {
  return config_graph(R"({"model_type": "llama", "architectures": ["LlamaForCausalLM"], "hidden_size": 64,
    "intermediate_size": 96, "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2,
    "vocab_size": 320, "max_position_embeddings": 256, "rms_norm_eps": 1e-5, "torch_dtype": "bfloat16")" +
                          more + "}",
                      "config.json");
}

std::string refusal(const MetaGraph& graph) {
  try {
    gguf_model(graph, ExportOptions());
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

// Numbers in the file are those of the model: nothing is lost and nothing is written twice.
TEST(GgufModel, PublishedModelsKeepTheirNumbers) {
  std::size_t families = 0;
  for (const Preset& preset : presets()) {
    const ModelConfig config(preset.config_json, std::string(preset.id));
    const GgufFamily* const family = find_gguf_family(config);
    if (family == nullptr) continue;
    ++families;
    const MetaGraph graph = config_graph(preset.config_json, std::string(preset.id));
    const GgufModel model = gguf_model(graph, ExportOptions());
    const GgufMap map = map_to_gguf(*family, config, graph);
    const std::set<std::string> dropped(map.dropped.begin(), map.dropped.end());
    std::uint64_t source = 0, file = 0;
    std::set<StorageId> counted;
    const auto packed = logical_positions(graph);
    for (std::size_t i = 0; i < graph.tensors.size(); ++i) {
      const Tensor& tensor = graph.tensors[i];
      const bool companion = packed[i] && index(graph.logical[*packed[i]].codes) != i;
      if (!companion && !dropped.contains(tensor.name.str()) && counted.insert(tensor.storage).second)
        source += packed[i] ? elements(graph.logical[*packed[i]]) : *element_count(tensor.shape);
    }
    std::set<std::string> names;
    for (const Slot& slot : model.slots) {
      EXPECT_TRUE(names.insert(slot.name.str()).second) << preset.id << ' ' << slot.name.str();
      if (!slot.name.view().starts_with("rope_")) file += *element_count(slot.shape);
    }
    EXPECT_EQ(source, file) << preset.id;
    EXPECT_EQ(model.keys.model.front().key, "general.architecture");
  }
  EXPECT_GE(families, 10u);
}

// Their down projections are square: the shape does not tell that the blocks are turned.
TEST(GgufModel, BlocksOfExpertsStayBlocks) {
  const GgufModel model =
      gguf_model(config_graph(find_preset("gpt-oss-20b")->config_json, "config.json"), ExportOptions());
  std::size_t experts = 0;
  for (const Slot& slot : model.slots) {
    if (!slot.name.view().ends_with("_exps.weight")) continue;
    EXPECT_EQ(slot.dtype, DType::mxfp4) << slot.name.view();
    ++experts;
  }
  EXPECT_EQ(experts, 24u * 3);
}

TEST(GgufModel, TensorsThatTheConfigurationDoesNotDescribeAreErrors) {
  const auto with_config = [](MetaGraph graph, std::string_view from, std::string_view to) {
    for (MetaEntry& entry : graph.metadata)
      if (auto* const text = std::get_if<std::string>(&entry.value);
          text != nullptr && entry.key == kConfigKey)
        text->replace(text->find(from), from.size(), to);
    return refusal(graph);
  };
  EXPECT_NE(with_config(llama(), "\"num_hidden_layers\": 2", "\"num_hidden_layers\": 3")
                .find("'blk.2.attn_norm.weight': config.json describes a model with this tensor "
                      "('model.layers.2.input_layernorm.weight'), and the files hold none"),
            std::string::npos);
  EXPECT_NE(with_config(llama(), "\"intermediate_size\": 96", "\"intermediate_size\": 128")
                .find("has the shape [96, 64], config.json says [128, 64]"),
            std::string::npos);
  MetaGraph without = llama();
  std::erase_if(without.tensors, [](const Tensor& tensor) { return tensor.name.view() == "lm_head.weight"; });
  EXPECT_EQ(refusal(without), "") << "a model without its head takes the embedding";
}

TEST(GgufModel, ObeysTheRoundTripLaw) {
  const testing::TemporaryFolder folder;
  const MetaGraphPtr demo = export_tests::plain_model(folder);
  EXPECT_THROW(export_tests::convert(demo, folder / "o.gguf", ExportOptions()),
               Error);  // a family without a map
  Progress progress;
  synthesize(llama(R"(, "rope_scaling": {"rope_type": "llama3", "factor": 8, "low_freq_factor": 1,
    "high_freq_factor": 4, "original_max_position_embeddings": 64})"),
             folder / "m", {.seed = 1, .max_shard_bytes = 100'000, .overwrite = false}, progress);
  const MetaGraphPtr model = export_tests::open(folder / "m");
  for (const std::optional<DType> type : {std::optional<DType>(), std::optional(DType::f16)}) {
    ExportOptions options = ExportOptions();
    options.outtype = type;
    export_tests::convert(model, folder / "o.gguf", options, {.overwrite = true});
    const MetaGraph read = *export_tests::open(folder / "o.gguf");
    EXPECT_EQ(read, find_exporter("gguf").layout(*model, options, folder / "o.gguf").result);
    EXPECT_EQ(export_tests::tensor_named(read, "blk.1.attn_q.weight").dtype, type.value_or(DType::bf16));
    EXPECT_EQ(export_tests::tensor_named(read, "blk.1.attn_norm.weight").dtype, DType::f32);
    EXPECT_EQ(export_tests::tensor_named(read, "rope_freqs.weight").shape, Shape{8});
  }
}

TEST(GgufModel, RefusesWhatItCannotMap) {
  MetaGraph graph = llama();
  EXPECT_EQ(refusal(graph), "");
  graph.tensors[3].name = "model.layers.0.self_attn.sinks";
  EXPECT_NE(refusal(graph).find("sinks': has no place in a GGUF file of 'llama'"), std::string::npos)
      << refusal(graph);
  graph = llama();
  graph.metadata.clear();
  EXPECT_NE(refusal(graph).find("config.json"), std::string::npos);
  EXPECT_NE(refusal(llama(R"(, "hidden_act": "relu")")).find("hidden_act 'silu'"), std::string::npos);
  graph = llama();
  // a setting is missing: the message names it, and not only the name that the asset gives it
  std::string config = *find_text(graph, kConfigKey);
  config.replace(config.find("num_attention_heads"), 19, "number_of_them_____");
  graph.metadata.front().value = config;
  EXPECT_TRUE(refusal(graph).starts_with("config.json: does not fit the architecture: 'H' is missing"))
      << refusal(graph);
  EXPECT_NE(refusal(graph).find("not set: 'head_dim', 'num_attention_heads'"), std::string::npos);
  graph = llama();
  for (Tensor& tensor : graph.tensors)
    if (tensor.name.view().find(".mlp.") != std::string::npos) tensor.shape = {1u << 30, 1u << 29};
  EXPECT_NE(refusal(graph).find("add up to more than 2^62 bytes"), std::string::npos) << refusal(graph);
  // a stack of experts that has a gap
  graph = config_graph(find_preset("mixtral-8x7b")->config_json, "mixtral");
  for (Tensor& tensor : graph.tensors)
    if (tensor.name.view() == "model.layers.0.block_sparse_moe.experts.5.w1.weight")
      tensor.name = "elsewhere";
  EXPECT_NE(refusal(graph).find("experts.5.w1.weight': is missing"), std::string::npos) << refusal(graph);
}

// Sizes in a configuration are bytes from a file like any other.
TEST(GgufModel, HostileConfigurationsAreErrors) {
  const auto with = [&](const std::string& key, const std::string& value) {
    MetaGraph graph = llama();
    for (MetaEntry& entry : graph.metadata)
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
    try {
      const GgufFamily family = parse_gguf_family(
          R"({"architecture": "'x'", "keys": [], "tensors": [")" + line + R"("], "layer": ["a = b"]})",
          "x.json");
      map_to_gguf(family, ModelConfig("{}", "config.json"), MetaGraph());
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string();
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
}  // namespace loadline
