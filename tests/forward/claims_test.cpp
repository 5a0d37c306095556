// What an architecture says of a model's tensors, and how many parameters there are.
#include "core/forward/model/expected_tensors.h"
#include "core/forward/model/known_models.h"
#include "core/graph/packed/quantization.h"

#include <algorithm>

#include <gtest/gtest.h>

namespace loadline {
namespace {

MetaGraph preset_graph(std::string_view id) {
  return config_graph(find_preset(id)->config_json, "config.json");
}

TEST(Claims, ParametersAreThoseThatPeopleCount) {
  const auto count = [](std::string_view id) {
    return model_claims(preset_graph(id), *built_in_assets()).parameters;
  };
  EXPECT_EQ(count("gpt2"), 124'439'808u);             // without the masks that its file holds
  EXPECT_EQ(count("gpt-oss-20b"), 20'914'757'184u);   // two numbers in each byte
  EXPECT_EQ(count("deepseek-v3"), 671'026'419'200u);  // without scales and what predicts further tokens
  EXPECT_EQ(count("llama-2-7b"), 6'738'415'616u);     // without rotations
}

TEST(Claims, ListsWhatIsMissingAndWhatNothingAsksFor) {
  MetaGraph graph = preset_graph("demo");
  EXPECT_TRUE(model_claims(graph, *built_in_assets()).missing.empty());
  graph.missing = {"promised"};
  graph.tensors[3].name = Name("model.layers.0.other.weight");
  graph.tensors[5].shape = Shape{7, 7};
  const ModelClaims claims = model_claims(graph, *built_in_assets());
  EXPECT_EQ(claims.family, "llama");
  ASSERT_EQ(claims.missing.size(), 2u);
  EXPECT_EQ(claims.missing[0], "promised");
  EXPECT_TRUE(claims.missing[1].starts_with("model.layers.0.")) << claims.missing[1];
  EXPECT_EQ(claims.unclaimed, std::vector<TensorId>{TensorId{3}});
  ASSERT_EQ(claims.notes.size(), 1u);
  EXPECT_NE(claims.notes[0].text.find("the file [7,7]"), std::string::npos);
  EXPECT_EQ(claims.parameters, parameter_count(graph));  // an asset that does not fit counts nothing
}

TEST(Claims, PartsThatAnAssetLeavesOutCountAsTheyLie) {
  MetaGraph graph = preset_graph("demo");
  const std::uint64_t before = model_claims(graph, *built_in_assets()).parameters;
  graph.storages.push_back(shapes_only_storage(2 * 1'000));
  const StorageId last{static_cast<std::uint32_t>(graph.storages.size() - 1)};
  graph.tensors.push_back({Name("vision_tower.w"), DType::bf16, Shape{1'000}, {}, last, 0});
  graph.tensors.push_back({Name("vision_tower.tied"), DType::bf16, Shape{1'000}, {}, last, 0});
  EXPECT_EQ(model_claims(graph, *built_in_assets()).parameters, before + 1'000);
}

TEST(Claims, AHeadOnItsEmbeddingsStorageCountsOnce) {
  MetaGraph graph = preset_graph("demo");
  const std::uint64_t before = model_claims(graph, *built_in_assets()).parameters;
  const auto tensor = [&](std::string_view name) -> Tensor& {
    return *std::find_if(graph.tensors.begin(), graph.tensors.end(),
                         [&](const Tensor& one) { return one.name == name; });
  };
  Tensor& head = tensor("lm_head.weight");
  head.storage = tensor("model.embed_tokens.weight").storage;
  EXPECT_EQ(model_claims(graph, *built_in_assets()).parameters, before - elements(head));
}

MetaGraph without(MetaGraph graph, std::string_view part) {
  std::erase_if(graph.tensors,
                [&](const Tensor& one) { return one.name.view().find(part) != std::string_view::npos; });
  graph.logical = find_logical_tensors(graph, {}).tensors;
  return graph;
}

TEST(Claims, WhatIsOnlyStoredMayBeLeftOut) {
  const MetaGraph whole = preset_graph("deepseek-v3");
  const MetaGraph graph = without(whole, "model.layers.61.");
  ASSERT_LT(graph.tensors.size(), whole.tensors.size());
  const ModelClaims claims = model_claims(graph, *built_in_assets());
  EXPECT_TRUE(claims.missing.empty()) << claims.missing.front();
  EXPECT_EQ(claims.parameters, model_claims(whole, *built_in_assets()).parameters);
}

TEST(Claims, AHeadIsMissedUnlessItMayBeTied) {
  MetaGraph graph = without(preset_graph("llama-3-8b"), "lm_head");
  EXPECT_EQ(model_claims(graph, *built_in_assets()).missing, std::vector<std::string>{"lm_head.weight"});
  std::string& config = std::get<std::string>(graph.metadata[0].value);
  const std::size_t at = config.find("\"tie_word_embeddings\": false");
  ASSERT_NE(at, std::string::npos) << config;
  config.replace(at, 28, "\"tie_word_embeddings\": true ");
  EXPECT_TRUE(model_claims(graph, *built_in_assets()).missing.empty());
}

TEST(Claims, NeverStopAnInspection) {
  MetaGraph graph = preset_graph("demo");
  graph.metadata[0].value = std::string(R"({"model_type":"llama","hidden_size":"wide"})");
  ModelClaims claims = model_claims(graph, *built_in_assets());
  ASSERT_EQ(claims.notes.size(), 1u);
  EXPECT_NE(claims.notes[0].text.find("does not fit the architecture"), std::string::npos);
  EXPECT_EQ(claims.parameters, parameter_count(graph));
  graph.metadata.clear();
  claims = model_claims(graph, *built_in_assets());
  EXPECT_TRUE(claims.family.empty() && claims.notes.empty());
  EXPECT_EQ(claims.parameters, parameter_count(graph));
}

}  // namespace
}  // namespace loadline
