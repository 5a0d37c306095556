// What plan says of a forward pass whose operators nobody knows.
#include "app/cli/forward_options.h"
#include "core/base/error.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace loadline::cli {
namespace {

MetaGraph foreign(std::string_view config) {
  MetaGraph graph;
  graph.format = "safetensors";
  graph.files = {{"m.safetensors", 1 << 20}};
  graph.storages = {plain_storage(FileId{0}, 0, 96 * 64 * 2)};
  graph.tensors = {{"layers.0.up.weight", DType::bf16, {96, 64}, {}, StorageId{0}, 0}};
  if (!config.empty()) graph.metadata = {{std::string(kConfigKey), std::string(config)}};
  return graph;
}

Context context() {
  Context context;
  context.assets = built_in_assets;
  return context;
}

TEST(ForwardAnswer, AnUnknownFamilyGetsBoundsAndNoPass) {
  const MetaGraph graph =
      foreign(R"({"architectures":["NewForCausalLM"],"num_hidden_layers":2,"hidden_size":64,
                                      "num_attention_heads":4,"torch_dtype":"bfloat16"})");
  const ForwardAnswer answer(context(), graph, {.batch = 2, .sequence = 16, .past = 4});
  EXPECT_EQ(answer.pass(), nullptr);
  const Json json = answer.json();
  EXPECT_EQ(json["source"], "estimate");
  EXPECT_EQ(json["activation_lower_bound"], 2 * 16 * 96 * 2);
  EXPECT_EQ(json["kv_bytes"], 2 * 20 * 2 * 2 * 64 * 2);
  EXPECT_FALSE(json.contains("activation_peak"));
  const std::string text = answer.text();
  EXPECT_NE(text.find("which the load above does not include"), std::string::npos) << text;
  EXPECT_NE(text.find("activations at least 6.00 KiB, if every linear layer sees all tokens"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("README tells how to add one"), std::string::npos) << text;
}

TEST(ForwardAnswer, WithoutAConfigurationThereIsNothingToSay) {
  const MetaGraph graph = foreign("");
  EXPECT_THROW(ForwardAnswer(context(), graph, {.batch = 1, .sequence = 16}), Error);
  const ForwardAnswer unasked(context(), graph, {});
  EXPECT_EQ(unasked.pass(), nullptr);
}

}  // namespace
}  // namespace loadline::cli
