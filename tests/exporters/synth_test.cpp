// Synthetic checkpoints: real files of the right shape, sparse or seeded.
#include "exporters/synth.h"

#include "core/base/error.h"
#include "core/convert/numbers/elements.h"
#include "core/forward/model/known_models.h"
#include "core/io/graph_reader.h"
#include "importers/resolve.h"
#include "tests/support/builders.h"

#include <cmath>
#include <cstring>
#include <filesystem>
#include <map>

#include <gtest/gtest.h>
#include <sys/stat.h>

namespace loadline {
namespace {

constexpr const char* kTiny =
    R"({"model_type":"llama","hidden_size":64,"num_hidden_layers":3,"num_attention_heads":4,"num_key_value_heads":2,)"
    R"("intermediate_size":96,"vocab_size":200,"torch_dtype":"bfloat16"})";

WriteReport synth(const MetaGraph& shapes, const std::string& out, std::optional<std::uint64_t> seed,
                  std::uint64_t shard = 0) {
  Progress progress;
  return synthesize(shapes, out, {.seed = seed, .max_shard_bytes = shard, .overwrite = false}, progress);
}

TEST(Synth, OpensAsTheModelItWasMadeFrom) {
  const testing::TemporaryFolder folder;
  const MetaGraph shapes = config_graph(kTiny, "tiny");
  synth(shapes, folder / "m", 7, 40'000);
  const MetaGraph back = open_model(folder / "m", {});
  EXPECT_EQ(parameter_count(back), parameter_count(shapes));
  EXPECT_EQ(storage_bytes(back), storage_bytes(shapes));
  EXPECT_GT(back.files.size(), 3u);
  EXPECT_TRUE(back.notes.empty());
  EXPECT_EQ(*find_metadata(back, kConfigKey), MetaValue(std::string(kTiny)));
}

TEST(Synth, TheSameSeedGivesTheSameBytes) {
  const testing::TemporaryFolder folder;
  const MetaGraph shapes = config_graph(kTiny, "tiny");
  const auto hash = [&](const char* name, std::uint64_t seed) {
    return synth(shapes, folder / name, seed).files.back().xxh3;
  };
  const std::uint64_t first = hash("a", 7);
  EXPECT_EQ(hash("b", 7), first);
  EXPECT_NE(hash("c", 8), first);
}

TEST(Synth, ValuesLookLikeWeights) {
  const testing::TemporaryFolder folder;
  synth(config_graph(kTiny, "tiny"), folder / "m", 1);
  const auto graph = std::make_shared<const MetaGraph>(open_model(folder / "m", {}));
  const StorageReader reader(graph);
  for (const Tensor& tensor : graph->tensors) {
    std::vector<std::byte> bytes(tensor_bytes(*graph, tensor));
    reader.read(tensor.storage, 0, bytes);
    std::vector<float> values(elements(tensor));
    cast(DType::bf16, bytes, DType::f32, std::as_writable_bytes(std::span(values)));
    double sum = 0, squares = 0;
    for (const float value : values) sum += value, squares += value * value;
    const double mean = sum / static_cast<double>(values.size());
    const bool norm = tensor.name.view().find("norm") != std::string_view::npos;
    EXPECT_NEAR(mean, norm ? 1.0 : 0.0, 0.01) << tensor.name.view();
    EXPECT_NEAR(std::sqrt(squares / static_cast<double>(values.size()) - mean * mean), 0.02, 0.006)
        << tensor.name.view();
  }
}

TEST(Synth, SparseTakesNoDisk) {
  const testing::TemporaryFolder folder;
  synth(config_graph(find_preset("llama-3.1-70b")->config_json, "p"), folder / "m", std::nullopt,
        5'000'000'000);
  std::uint64_t logical = 0, blocks = 0, shards = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder / "m")) {
    struct stat status = {};
    ::stat(entry.path().c_str(), &status);
    logical += static_cast<std::uint64_t>(status.st_size);
    blocks += static_cast<std::uint64_t>(status.st_blocks) * 512;
    shards += entry.path().extension() == ".safetensors" ? 1 : 0;
  }
  EXPECT_EQ(shards, 30u);
  EXPECT_GT(logical, 141'107'412'992u);
  EXPECT_LT(blocks, 2u << 20);
  EXPECT_EQ(storage_bytes(open_model(folder / "m", {})), 141'107'412'992u);
}

// Counts and sizes as published; the scales make the difference to the parameters.
TEST(Synth, DeepSeekV3IsWhatItsShardsSay) {
  const MetaGraph graph = config_graph(find_preset("deepseek-v3")->config_json, "p");
  EXPECT_EQ(graph.tensors.size(), 91'991u);
  EXPECT_EQ(storage_bytes(graph), 688'574'839'360u);
  std::map<DType, std::uint64_t> counts;
  for (const Tensor& tensor : graph.tensors) counts[tensor.dtype] += elements(tensor);
  EXPECT_EQ(counts[DType::f8_e4m3], 680'571'043'840u);
  EXPECT_EQ(counts[DType::bf16], 3'918'786'560u);
  EXPECT_EQ(counts[DType::f32], 41'555'600u);

  const testing::TemporaryFolder folder;
  synth(graph, folder / "m", std::nullopt, find_preset("deepseek-v3")->max_shard_bytes);
  EXPECT_TRUE(std::filesystem::exists(folder / "m/model-00163-of-00163.safetensors"));
  const MetaGraph back = open_model(folder / "m", {});
  EXPECT_EQ(back.tensors.size(), graph.tensors.size());
  EXPECT_EQ(storage_bytes(back), storage_bytes(graph));
  EXPECT_TRUE(back.notes.empty());
}

TEST(Synth, EmbedsTheDemoInThreeShards) {
  const Preset* demo = find_preset("demo");
  ASSERT_NE(demo, nullptr);
  const testing::TemporaryFolder folder;
  synth(config_graph(demo->config_json, "demo"), folder / "m", std::nullopt, demo->max_shard_bytes);
  EXPECT_TRUE(std::filesystem::exists(folder / "m/model-00003-of-00003.safetensors"));
}

TEST(Synth, WantsAFolder) {
  const testing::TemporaryFolder folder;
  EXPECT_THROW(synth(config_graph(kTiny, "tiny"), folder / "m.safetensors", 1), Error);
}

}  // namespace
}  // namespace loadline
