// Peaks of loads that others have measured and published.
#include "core/forward/model/known_models.h"
#include "core/load/answer/projection.h"

#include <gtest/gtest.h>

namespace loadline {
namespace {

constexpr double kGiB = 1024.0 * 1024.0 * 1024.0;

// A notebook that loads GPT-2 XL in six ways prints 6.4, 12.8, 6.7, 12.8, 6.4 and 6.4 "GB" (GiB) of
// torch.cuda.max_memory_allocated(), which counts blocks of the caching allocator.
TEST(PublishedLoads, SixWaysToLoadGpt2Xl) {
  const MetaGraph graph = config_graph(find_preset("gpt2-xl-notebook")->config_json, "config.json");
  EXPECT_NEAR(static_cast<double>(storage_bytes(graph)) / kGiB, 6.290, 0.0005);
  struct Row {
    const char* method;
    double allocated;  // GiB, as modelled; the notebook prints one digit
  };
  for (const Row& row :
       {Row{"to_device", 6.416}, Row{"state_dict", 12.832}, Row{"sequential", 6.715},
        Row{"meta_map_location", 12.832}, Row{"mmap_assign", 6.416}, Row{"per_tensor", 6.416}}) {
    const Timeline timeline = project(graph, find_method(row.method), find_order("file"),
                                      {.request = {.allocator = AllocatorModel::torch}})
                                  .timeline;
    ASSERT_TRUE(timeline.allocated_peak) << row.method;
    EXPECT_NEAR(static_cast<double>(*timeline.allocated_peak) / kGiB, row.allocated, 0.001) << row.method;
    EXPECT_GE((*timeline.reserved_peak)[index(Space::device)], *timeline.allocated_peak) << row.method;
    EXPECT_GE(*timeline.allocated_peak, timeline.peaks[index(Space::device)].bytes) << row.method;
  }
}

double gib(std::uint64_t bytes) { return static_cast<double>(bytes) / kGiB; }

MetaGraph preset(std::string_view id) { return config_graph(find_preset(id)->config_json, "config.json"); }
MetaGraph model(std::string_view config) { return config_graph(config, "config.json"); }

constexpr std::string_view kQwen72b = R"({"architectures": ["Qwen2ForCausalLM"], "model_type": "qwen2",
  "hidden_size": 8192, "intermediate_size": 29568, "num_attention_heads": 64, "num_hidden_layers": 80,
  "num_key_value_heads": 8, "vocab_size": 152064, "tie_word_embeddings": false, "torch_dtype": "bfloat16"})";
constexpr std::string_view kLlama405b = R"({"architectures": ["LlamaForCausalLM"], "model_type": "llama",
  "hidden_size": 16384, "intermediate_size": 53248, "num_attention_heads": 128, "num_hidden_layers": 126,
  "num_key_value_heads": 8, "vocab_size": 128256, "tie_word_embeddings": false, "torch_dtype": "bfloat16"})";
constexpr std::string_view kLlama3b = R"({"architectures": ["LlamaForCausalLM"], "model_type": "llama",
  "hidden_size": 3072, "intermediate_size": 8192, "num_attention_heads": 24, "num_hidden_layers": 28,
  "num_key_value_heads": 8, "head_dim": 128, "vocab_size": 128256, "tie_word_embeddings": true,
  "torch_dtype": "bfloat16"})";
constexpr std::string_view kT0 = R"({"architectures": ["T5ForConditionalGeneration"], "model_type": "t5",
  "d_model": 4096, "d_kv": 64, "d_ff": 10240, "num_layers": 24, "num_decoder_layers": 24, "num_heads": 64,
  "vocab_size": 32128, "feed_forward_proj": "gated-gelu", "is_gated_act": true, "tie_word_embeddings": false,
  "relative_attention_num_buckets": 32, "torch_dtype": "float32"})";

// Peaks in GiB of the same loads in different orders, worked out by hand from the shapes; 0: not told.
struct Ordered {
  const char* method;
  LoadInputs options;
  Space space;  // host stands for unified memory
  double weights, forward, name, heads_first, optimal;
};

void expect_orders(const MetaGraph& graph, const Ordered& row) {
  EXPECT_NEAR(gib(storage_bytes(graph)), row.weights, 0.0005) << row.method;
  const std::pair<const char*, double> columns[] = {{"forward", row.forward},
                                                    {"name", row.name},
                                                    {"heads_first", row.heads_first},
                                                    {"optimal", row.optimal}};
  LoadInputs options = row.options;
  options.spaces = row.space == Space::host ? kAllSpaces : space_bit(row.space);
  for (const auto& [order, expected] : columns) {
    if (expected == 0) continue;
    const Timeline timeline = project(graph, find_method(row.method), find_order(order), options).timeline;
    const Peak& peak = row.space == Space::host ? timeline.unified : timeline.peaks[index(row.space)];
    EXPECT_NEAR(gib(peak.bytes), expected, 0.0005) << row.method << " " << order;
  }
}

TEST(PublishedLoads, OrdersOfLoadsWithATemporary) {
  const auto device = [](double w, double forward, double name, double heads, double optimal) {
    return Ordered{"cast_on_device", {}, Space::device, w, forward, name, heads, optimal};
  };
  expect_orders(preset("llama-3-8b"), device(14.958, 15.936, 14.989, 15.067, 14.965));
  expect_orders(model(kQwen72b), device(135.426, 137.746, 0, 135.877, 135.438));
  expect_orders(preset("gemma-2-9b"), device(17.214, 17.310, 17.228, 17.310, 17.227));
  expect_orders(preset("mixtral-8x7b"), device(86.991, 87.235, 0, 87.100, 86.996));
}

TEST(PublishedLoads, OrdersOfCastsOnUnifiedMemory) {
  const MetaGraph llama = preset("llama-3-8b");
  expect_orders(
      llama,
      {"cast_on_host", {.request = {.cast = DType::q4_0}}, Space::host, 14.958, 15.233, 15.233, 0, 14.960});
  expect_orders(
      llama,
      {"cast_on_host", {.request = {.cast = DType::f32}}, Space::host, 14.958, 30.894, 29.946, 0, 29.922});
  expect_orders(llama, {"executorch_after", {}, Space::host, 14.958, 16.915, 16.915, 16.915, 16.915});
}

// The largest unit is often no layer.
TEST(PublishedLoads, LayerStreaming) {
  struct Row {
    MetaGraph graph;
    double layer, embedding;
  };
  for (const Row& row : {Row{preset("llama-3-8b"), 0.406, 0.979}, Row{preset("llama-3.1-70b"), 1.594, 1.957},
                         Row{model(kLlama405b), 5.938, 3.914}}) {
    const Timeline timeline =
        project(row.graph, find_method("layer_streaming"), find_order("file"), {}).timeline;
    EXPECT_NEAR(gib(timeline.peaks[index(Space::device)].bytes), std::max(row.layer, row.embedding), 0.0005);
  }
}

// A phone's delegate, before and after device tensors were allocated one by one: the device memory and the
// activations once beside two copies of the weights, or beside one.
TEST(PublishedLoads, ExecutorchOnLlama32) {
  for (const MetaGraph& graph : {preset("llama-3.2-1b"), model(kLlama3b)}) {
    const std::uint64_t weights = storage_bytes(graph);
    std::uint64_t most = 0;
    for (const Storage& storage : graph.storages) most = std::max(most, storage.bytes);
    const std::uint64_t activations = 400ull << 20;
    const LoadInputs options{.request = {.activation_bytes = activations}};
    const auto peak = [&](const char* method) {
      return project(graph, find_method(method), find_order("forward"), options).timeline.unified.bytes;
    };
    // the embedding, which is the largest, goes first
    EXPECT_EQ(peak("executorch_before"), 2 * weights + activations + most);
    EXPECT_EQ(peak("executorch_after"), std::max(weights + activations, weights + 2 * most));
  }
}

// 89.6 MB became 57.3 MB of a model of 42 MB when staging was sent after 10 MB instead of 500 MB.
TEST(PublishedLoads, ExecutorchFlushesStaging) {
  MetaGraph graph;
  for (std::uint32_t i = 0; i < 84; ++i) {
    graph.storages.push_back(shapes_only_storage(500'000));
    graph.tensors.push_back({Name("t" + std::to_string(i)), DType::i8, {500'000}, {}, StorageId{i}, 0});
  }
  const auto peak = [&](std::uint64_t flush) {
    const Timeline timeline = project(graph, find_method("executorch_after"), find_order("file"),
                                      {.request = {.flush_bytes = flush}})
                                  .timeline;
    return static_cast<double>(timeline.unified.bytes) / 1e6;
  };
  EXPECT_NEAR(peak(500'000'000), 89.6, 6);
  EXPECT_NEAR(peak(10'000'000), 57.3, 6);
  EXPECT_NEAR(peak(500'000'000) - peak(10'000'000), 89.6 - 57.3, 0.6);
}

// transformers#16844 measured the load of T0 (42 GB): 87 GB from one file, 53 GB from shards of 10 GB.
TEST(PublishedLoads, ShardsOfT0) {
  const MetaGraph graph = model(kT0);
  const double gb = 1e9;
  EXPECT_NEAR(static_cast<double>(storage_bytes(graph)) / gb, 44.5, 0.5);
  const auto host = [&](std::uint64_t shard) {
    const Timeline timeline =
        project(graph, find_method("shard_by_shard"), find_order("file"), {.request = {.shard_bytes = shard}})
            .timeline;
    return gib(timeline.peaks[index(Space::host)].bytes);
  };
  EXPECT_NEAR(gib(storage_bytes(graph)), 42, 0.6);
  EXPECT_NEAR(host(0), 87, 5);
  EXPECT_NEAR(host(10'000'000'000), 53, 2.5);
}

}  // namespace
}  // namespace loadline
