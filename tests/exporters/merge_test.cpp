// LoRA adapters: what is merged, what is refused and why.
#include "core/base/error.h"
#include "exporters/exporter.h"
#include "exporters/merge/merge_lora.h"
#include "importers/importer.h"
#include "tests/support/builders.h"

#include <algorithm>
#include <cmath>

#include <gtest/gtest.h>

namespace loadline {
namespace {

using testing::SafetensorsHeader;

struct Given {
  std::string name, dtype, shape;
  std::uint64_t bytes;
};

MetaGraph model(const std::string& path, const std::vector<Given>& tensors) {
  SafetensorsHeader header;
  for (const Given& tensor : tensors) header.add(tensor.name, tensor.dtype, tensor.shape, tensor.bytes);
  return import_source(
      testing::memory_source(path, testing::safetensors_bytes(header.text(), header.data_bytes())));
}

const std::vector<Given> kBase = {
    {"model.layers.0.q_proj.weight", "BF16", "6,4", 48}, {"model.layers.0.o_proj.weight", "F32", "4,4", 64},
    {"model.layers.0.f8.weight", "F8_E4M3", "6,4", 24},  {"model.layers.0.ids.weight", "I32", "6,4", 96},
    {"model.embed_tokens.weight", "BF16", "10,4", 80},   {"model.norm.weight", "F32", "4", 16}};

std::string key(std::string_view module, std::string_view part) {
  return "base_model.model." + std::string(module) + "." + std::string(part);
}

class Merge : public ::testing::Test {
 protected:
  LoraMerge merge(const std::vector<Given>& adapter, std::optional<DType> outtype = {}) {
    return merge_lora(base, model("adapter_model.safetensors", adapter), config, outtype);
  }
  std::string fault(const std::vector<Given>& adapter, std::optional<DType> outtype = {}) {
    try {
      (void)merge(adapter, outtype);
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  }
  // The two factors of rank 2 of one module.
  static std::vector<Given> factors(std::string_view module, int rows, int columns,
                                    const std::string& dtype = "F32") {
    const auto number = [](int n) { return std::to_string(n); };
    const std::uint64_t size = dtype == "F32" ? 4 : 2;
    return {{key(module, "lora_A.weight"), dtype, "2," + number(columns),
             static_cast<std::uint64_t>(2 * columns) * size},
            {key(module, "lora_B.weight"), dtype, number(rows) + ",2",
             static_cast<std::uint64_t>(2 * rows) * size}};
  }
  static std::vector<Given> joined(std::vector<Given> a, const std::vector<Given>& b) {
    a.insert(a.end(), b.begin(), b.end());
    return a;
  }

  MetaGraph base = model("model.safetensors", kBase);
  LoraConfig config{2, 8, false, false, {}, {}};
};

bool says(const std::string& text, std::string_view words) { return text.find(words) != std::string::npos; }

TEST_F(Merge, OnlyTheBasesTensorsAreWritten) {
  const LoraMerge merged =
      merge(joined(factors("model.layers.0.q_proj", 6, 4), {{key("model.norm", "weight"), "BF16", "4", 8}}));
  EXPECT_EQ(merged.merged, 1u);
  EXPECT_EQ(merged.replaced, 1u);
  ExportOptions options;
  options.recipes = merged.recipes;
  const std::vector<Slot> slots = output_slots(*merged.graph, options);
  ASSERT_EQ(slots.size(), base.tensors.size());
  for (std::size_t i = 0; i < slots.size(); ++i) {
    EXPECT_EQ(slots[i].name, base.tensors[i].name);
    EXPECT_EQ(slots[i].dtype, base.tensors[i].dtype);
    EXPECT_EQ(slots[i].shape, base.tensors[i].shape);
  }
  const auto slot =
      std::ranges::find_if(slots, [](const Slot& s) { return s.name == "model.layers.0.q_proj.weight"; });
  EXPECT_EQ(slot->recipe.steps.back().kind, StepKind::add_product);
  EXPECT_EQ(slot->recipe.steps.back().value, 4);
}

TEST_F(Merge, OuttypesApplyToWhatIsMerged) {
  const LoraMerge merged =
      merge(joined(factors("model.layers.0.q_proj", 6, 4, "F16"), factors("model.layers.0.f8", 6, 4, "BF16")),
            DType::f16);
  ExportOptions options;
  options.outtype = DType::f16;
  options.recipes = merged.recipes;
  for (const Slot& slot : output_slots(*merged.graph, options))
    if (slot.name != "model.layers.0.ids.weight") EXPECT_EQ(slot.dtype, DType::f16) << slot.name.view();
}

TEST_F(Merge, WeightsOfInputsByOutputs) {
  EXPECT_EQ(merge(factors("model.layers.0.q_proj", 4, 6)).recipes->instead.begin()->second.steps.size(), 6u);
  // a square weight goes by the configuration
  EXPECT_EQ(merge(factors("model.layers.0.o_proj", 4, 4)).recipes->instead.begin()->second.steps.size(), 4u);
  config.fan_in_fan_out = true;
  EXPECT_EQ(merge(factors("model.layers.0.o_proj", 4, 4)).recipes->instead.begin()->second.steps.size(), 6u);
}

TEST_F(Merge, NamesOfTheInnerModelAreFound) {
  EXPECT_EQ(merge(factors("layers.0.q_proj", 6, 4)).merged, 1u);
  EXPECT_EQ(merge(factors("outer.model.layers.0.q_proj", 6, 4)).merged, 1u);
  EXPECT_TRUE(
      says(fault(factors("layers.9.q_proj", 6, 4)), "the base has no weight 'layers.9.q_proj.weight'"));
}

TEST_F(Merge, EmbeddingsAndTheirOwnCopy) {
  const std::vector<Given> embedding = {{key("model.embed_tokens", "lora_embedding_A"), "F32", "2,10", 80},
                                        {key("model.embed_tokens", "lora_embedding_B"), "F32", "4,2", 32}};
  EXPECT_EQ(merge(embedding).merged, 1u);
  const LoraMerge both =
      merge(joined(embedding, {{key("model.embed_tokens", "base_layer.weight"), "F32", "10,4", 160}}));
  EXPECT_EQ(both.merged, 1u);
  EXPECT_EQ(both.replaced, 0u);
  const Recipe& recipe = both.recipes->instead.begin()->second;
  EXPECT_EQ(both.graph->tensor(recipe.steps.front().tensor).name,
            "base_model.model.model.embed_tokens.base_layer.weight");
  EXPECT_EQ(recipe_forms(*both.graph, recipe).back().dtype, DType::bf16);
}

TEST_F(Merge, RefusesWithTheReason) {
  const auto of = [](std::string_view module, std::string_view part) {
    return std::vector<Given>{{key(module, part), "F32", "4", 16}};
  };
  EXPECT_TRUE(says(fault(of("model.layers.0.q_proj", "lora_magnitude_vector")), "belongs to DoRA"));
  EXPECT_TRUE(says(fault(of("model.layers.0.q_proj", "lora_B.bias")), "no part of a plain LoRA"));
  EXPECT_TRUE(says(fault({{"model.norm.weight", "F32", "4", 16}}), "is not named as PEFT names tensors"));
  EXPECT_TRUE(says(fault({}), "holds no factors"));
  EXPECT_TRUE(says(fault({{key("model.embed_tokens", "weight"), "F32", "11,4", 176}}),
                   "is [11, 4], the base's weight [10, 4]: config.json would not fit"));
  EXPECT_TRUE(says(fault(factors("model.layers.0.ids", 6, 4)), "the base's weight is I32, not floats"));
  EXPECT_TRUE(says(fault(factors("model.layers.0.f8", 6, 4)), "needs a type to be written in"));
  EXPECT_TRUE(
      says(fault(factors("model.layers.0.q_proj", 6, 5)), "gives [6, 5], the base's weight is [6, 4]"));
  EXPECT_TRUE(
      says(fault({factors("model.layers.0.q_proj", 6, 4)[0]}), "its other factor, lora_B, is missing"));
  EXPECT_TRUE(says(fault(joined(factors("model.layers.0.q_proj", 6, 4), factors("layers.0.q_proj", 6, 4))),
                   "two tensors are for the same weight"));
  EXPECT_TRUE(says(fault({{key("model.layers.0.q_proj", "lora_A.weight"), "F32", "2,4,1,1", 32},
                          {key("model.layers.0.q_proj", "lora_B.weight"), "F32", "6,2,1,1", 48}}),
                   "only matrices can be merged"));
  EXPECT_TRUE(says(fault(factors("model.layers.0.q_proj", 6, 4, "I16")), "is I16, not F32, F16 or BF16"));
  config.rank = 3;
  EXPECT_TRUE(
      says(fault(factors("model.layers.0.q_proj", 6, 4)), "has rank 2, lora_B 2, the configuration says 3"));
}

TEST_F(Merge, TiedWeightsAreRefused) {
  Tensor head = base.tensors[0];
  for (const Tensor& tensor : base.tensors)
    if (tensor.name == "model.embed_tokens.weight") head = tensor;
  head.name = "lm_head.weight";
  base.tensors.push_back(head);
  EXPECT_TRUE(says(fault({{key("lm_head", "weight"), "F32", "10,4", 160}}),
                   "the base ties 'lm_head.weight' to 'model.embed_tokens.weight'"));
  base.tensors.pop_back();
  base.metadata.push_back({std::string(kConfigKey), std::string(R"({"tie_word_embeddings": true})")});
  EXPECT_TRUE(
      says(fault({{key("model.embed_tokens", "weight"), "F32", "10,4", 160}}), "output head is tied"));
}

// --- adapter_config.json

std::string config_fault(std::string_view text) {
  try {
    (void)parse_lora_config(text, "adapter_config.json");
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(LoraConfig, ScalesAndPatterns) {
  const LoraConfig config = parse_lora_config(
      R"({"peft_type": "LORA", "r": 8, "lora_alpha": 16, "rank_pattern": {"v_proj": 4, "layers\\.1\\.o_proj": 2},
          "alpha_pattern": {"layers.1.v_proj": 32, "v_proj": 4}, "use_dora": false, "layer_replication": null,
          "target_parameters": [], "init_lora_weights": true, "bias": "none"})",
      "adapter_config.json");
  EXPECT_EQ(config.scale_of("model.layers.0.q_proj"), 2);
  EXPECT_EQ(config.scale_of("model.layers.0.v_proj"), 1);
  EXPECT_EQ(config.scale_of("model.layers.1.v_proj"), 8);
  EXPECT_EQ(config.scale_of("model.layers.11.v_proj"), 1);
  EXPECT_EQ(config.rank_of("model.layers.1.o_proj"), 2u);
  EXPECT_EQ(config.rank_of("model.layers.11.o_proj"), 8u);
  EXPECT_EQ(config.rank_of("model.layers.0.kv_proj"), 8u);
  LoraConfig stabilised = config;
  stabilised.rank_stabilised = true;
  EXPECT_EQ(stabilised.scale_of("q_proj"), 16 / std::sqrt(8.0));
}

TEST(LoraConfig, RefusesWhatIsNoPlainSum) {
  const auto with = [](const std::string& more) {
    return config_fault(R"({"peft_type": "LORA", "r": 8, "lora_alpha": 16, )" + more + "}");
  };
  EXPECT_TRUE(says(with(R"("use_dora": true)"), "use_dora: DoRA scales each row"));
  EXPECT_TRUE(says(with(R"("lora_bias": true)"), "it trains biases"));
  EXPECT_TRUE(says(with(R"("bias": "all")"), "bias is 'all'"));
  EXPECT_TRUE(says(with(R"("layer_replication": [[0, 4]])"), "it repeats layers"));
  EXPECT_TRUE(says(with(R"("init_lora_weights": "pissa")"), "was changed before training"));
  EXPECT_EQ(with(R"("init_lora_weights": "gaussian")"), "");
  EXPECT_TRUE(says(with(R"("alpha_pattern": {"(q|v)_proj": 3})"), "the regular expression '(q|v)_proj'"));
  EXPECT_TRUE(says(with(R"("alpha_pattern": [1])"), "'alpha_pattern' is no object"));
  EXPECT_TRUE(says(with(R"("rank_pattern": {"q": 0.5})"), "no whole number"));
}

TEST(LoraConfig, HostileTexts) {
  EXPECT_TRUE(says(config_fault(""), "is no JSON object"));
  EXPECT_TRUE(says(config_fault("[1]"), "is no JSON object"));
  EXPECT_TRUE(says(config_fault(std::string(200'000, '[')), "is no JSON object"));
  EXPECT_TRUE(says(config_fault(std::string(5 << 20, ' ')), "the limit is"));
  EXPECT_TRUE(says(config_fault("{}"), "has no text 'peft_type'"));
  EXPECT_TRUE(says(config_fault(R"({"peft_type": "IA3"})"), "only LORA"));
  EXPECT_TRUE(
      says(config_fault(R"({"peft_type": "LORA", "r": 0, "lora_alpha": 1})"), "'r' is no whole number"));
  EXPECT_TRUE(says(config_fault(R"({"peft_type": "LORA", "r": 8})"), "'lora_alpha' is no number"));
  EXPECT_TRUE(says(config_fault(R"({"peft_type": "LORA", "r": 8, "lora_alpha": "1"})"), "is no number"));
}

}  // namespace
}  // namespace loadline
