// What others and this machine measured.

#include "core/base/error.h"
#include "core/forward/model/known_models.h"
#include "core/io/system_memory.h"
#include "core/load/answer/projection.h"
#include "core/load/measure/evidence.h"
#include "core/load/measure/rehearse.h"
#include "core/load/request/method.h"
#include "core/load/request/rates.h"
#include "tests/support/builders.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace loadline::tests {

// --- Peaks of loads that others have measured and published.

namespace {

constexpr double kGiB = 1024.0 * 1024.0 * 1024.0;

// A notebook that loads GPT-2 XL in six ways prints 6.4, 12.8, 6.7, 12.8, 6.4 and 6.4 "GB" (GiB) of
// torch.cuda.max_memory_allocated(), which counts blocks of the caching allocator.
TEST(PublishedLoads, SixWaysToLoadGpt2Xl) {
  const graph::MetaGraph graph =
      forward::config_graph(forward::find_preset("gpt2-xl-notebook")->config_json, "config.json");
  EXPECT_NEAR(static_cast<double>(graph::storage_bytes(graph)) / kGiB, 6.290, 0.0005);
  struct Row {
    const char* method;
    double allocated;  // GiB, as modeled; the notebook prints one digit
  };
  for (const Row& row :
       {Row{"to_device", 6.416}, Row{"state_dict", 12.832}, Row{"sequential", 6.715},
        Row{"meta_map_location", 12.832}, Row{"mmap_assign", 6.416}, Row{"per_tensor", 6.416}}) {
    const plan::Timeline timeline =
        load::project(graph, load::find_method(row.method), load::find_order("file"),
                      {.request = {.allocator = allocators::AllocatorModel::torch}})
            .timeline;
    ASSERT_TRUE(timeline.allocated_peak) << row.method;
    EXPECT_NEAR(static_cast<double>(*timeline.allocated_peak) / kGiB, row.allocated, 0.001) << row.method;
    EXPECT_GE((*timeline.reserved_peak)[plan::index(plan::Space::device)], *timeline.allocated_peak)
        << row.method;
    EXPECT_GE(*timeline.allocated_peak, timeline.peaks[plan::index(plan::Space::device)].bytes) << row.method;
  }
}

double gib(std::uint64_t bytes) { return static_cast<double>(bytes) / kGiB; }

graph::MetaGraph preset(std::string_view id) {
  return forward::config_graph(forward::find_preset(id)->config_json, "config.json");
}
graph::MetaGraph model(std::string_view config) { return forward::config_graph(config, "config.json"); }

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
  load::BoundRequest options;
  plan::Space space;  // host stands for unified memory
  double weights, forward, name, heads_first, optimal;
};

void expect_orders(const graph::MetaGraph& graph, const Ordered& row) {
  EXPECT_NEAR(gib(graph::storage_bytes(graph)), row.weights, 0.0005) << row.method;
  const std::pair<const char*, double> columns[] = {{"forward", row.forward},
                                                    {"name", row.name},
                                                    {"heads_first", row.heads_first},
                                                    {"optimal", row.optimal}};
  load::BoundRequest options = row.options;
  options.spaces = row.space == plan::Space::host ? plan::kAllSpaces : plan::space_bit(row.space);
  for (const auto& [order, expected] : columns) {
    if (expected == 0) continue;
    const plan::Timeline timeline =
        load::project(graph, load::find_method(row.method), load::find_order(order), options).timeline;
    const plan::Peak& peak =
        row.space == plan::Space::host ? timeline.unified : timeline.peaks[plan::index(row.space)];
    EXPECT_NEAR(gib(peak.bytes), expected, 0.0005) << row.method << " " << order;
  }
}

TEST(PublishedLoads, OrdersOfLoadsWithATemporary) {
  const auto device = [](double w, double forward, double name, double heads, double optimal) {
    return Ordered{"cast_on_device", {}, plan::Space::device, w, forward, name, heads, optimal};
  };
  expect_orders(preset("llama-3-8b"), device(14.958, 15.936, 14.989, 15.067, 14.965));
  expect_orders(model(kQwen72b), device(135.426, 137.746, 0, 135.877, 135.438));
  expect_orders(preset("gemma-2-9b"), device(17.214, 17.310, 17.228, 17.310, 17.227));
  expect_orders(preset("mixtral-8x7b"), device(86.991, 87.235, 0, 87.100, 86.996));
}

TEST(PublishedLoads, OrdersOfCastsOnUnifiedMemory) {
  const graph::MetaGraph llama = preset("llama-3-8b");
  expect_orders(llama, {"cast_on_host",
                        {.request = {.cast = graph::DType::q4_0}},
                        plan::Space::host,
                        14.958,
                        15.233,
                        15.233,
                        0,
                        14.960});
  expect_orders(llama, {"cast_on_host",
                        {.request = {.cast = graph::DType::f32}},
                        plan::Space::host,
                        14.958,
                        30.894,
                        29.946,
                        0,
                        29.922});
  expect_orders(llama, {"executorch_after", {}, plan::Space::host, 14.958, 16.915, 16.915, 16.915, 16.915});
}

// The largest unit is often no layer.
TEST(PublishedLoads, LayerStreaming) {
  struct Row {
    graph::MetaGraph graph;
    double layer, embedding;
  };
  for (const Row& row : {Row{preset("llama-3-8b"), 0.406, 0.979}, Row{preset("llama-3.1-70b"), 1.594, 1.957},
                         Row{model(kLlama405b), 5.938, 3.914}}) {
    const plan::Timeline timeline =
        load::project(row.graph, load::find_method("layer_streaming"), load::find_order("file"), {}).timeline;
    EXPECT_NEAR(gib(timeline.peaks[plan::index(plan::Space::device)].bytes),
                std::max(row.layer, row.embedding), 0.0005);
  }
}

// A phone's delegate, before and after device tensors were allocated one by one: the device memory and the
// activations once beside two copies of the weights, or beside one.
TEST(PublishedLoads, ExecutorchOnLlama32) {
  for (const graph::MetaGraph& graph : {preset("llama-3.2-1b"), model(kLlama3b)}) {
    const std::uint64_t weights = graph::storage_bytes(graph);
    std::uint64_t most = 0;
    for (const graph::Storage& storage : graph.storages) most = std::max(most, storage.bytes);
    const std::uint64_t activations = 400ull << 20;
    const load::BoundRequest options{.request = {.activation_bytes = activations}};
    const auto peak = [&](const char* method) {
      return load::project(graph, load::find_method(method), load::find_order("forward"), options)
          .timeline.unified.bytes;
    };
    // the embedding, which is the largest, goes first
    EXPECT_EQ(peak("executorch_before"), 2 * weights + activations + most);
    EXPECT_EQ(peak("executorch_after"), std::max(weights + activations, weights + 2 * most));
  }
}

// 89.6 MB became 57.3 MB of a model of 42 MB when staging was sent after 10 MB instead of 500 MB.
TEST(PublishedLoads, ExecutorchFlushesStaging) {
  graph::MetaGraph graph;
  for (std::uint32_t i = 0; i < 84; ++i) {
    graph.storages.push_back(graph::shapes_only_storage(500'000));
    graph.tensors.push_back(
        {graph::Name("t" + std::to_string(i)), graph::DType::i8, {500'000}, {}, graph::StorageId{i}, 0});
  }
  const auto peak = [&](std::uint64_t flush) {
    const plan::Timeline timeline =
        load::project(graph, load::find_method("executorch_after"), load::find_order("file"),
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
  const graph::MetaGraph graph = model(kT0);
  const double gb = 1e9;
  EXPECT_NEAR(static_cast<double>(graph::storage_bytes(graph)) / gb, 44.5, 0.5);
  const auto host = [&](std::uint64_t shard) {
    const plan::Timeline timeline =
        load::project(graph, load::find_method("shard_by_shard"), load::find_order("file"),
                      {.request = {.shard_bytes = shard}})
            .timeline;
    return gib(timeline.peaks[plan::index(plan::Space::host)].bytes);
  };
  EXPECT_NEAR(gib(graph::storage_bytes(graph)), 42, 0.6);
  EXPECT_NEAR(host(0), 87, 5);
  EXPECT_NEAR(host(10'000'000'000), 53, 2.5);
}

}  // namespace

// --- What frameworks measured: the runs are read, belong to today's methods, and are summed up by method.

namespace {

constexpr std::string_view kRuns = R"({"schema_version": 1, "date": "2026-11-23",
  "tolerance": {"bytes": 16777216, "percent": 2}, "versions": {}, "rows": [
  {"recipe": "plain", "about": "", "framework": "torch", "version": "2.13.0", "model": "a.bin", "model_bytes": 9,
   "method": "to_device", "options": ["--cast", "f32"], "law": "device: device_weights", "counters":
   {"anonymous": {"projected": 10, "measured": 12, "runs": [12]}}, "error_percent": 1.5, "range": false, "ok": true,
   "reason": ""},
  {"recipe": "plain", "about": "", "framework": "torch", "version": "2.13.0", "model": "b.bin", "model_bytes": 9,
   "method": "to_device", "options": [], "law": "device: device_weights", "counters":
   {"anonymous": {"projected": 10, "low": 10, "high": 18, "measured": 16, "runs": [16]}}, "error_percent": 0.0,
   "range": true, "ok": true, "reason": ""},
  {"recipe": "bytes", "about": "", "framework": "safetensors", "version": "0.8.0", "model": "a", "model_bytes": 9,
   "method": "to_device", "options": [], "law": "device: device_weights", "counters": {"file": {"measured": 16, "runs": [16]}},
   "error_percent": null, "range": false, "ok": false, "reason": "of the allocator"}]})";

TEST(Evidence, IsSummedUpByMethod) {
  const load::Truth truth = load::parse_truth(kRuns);
  ASSERT_EQ(truth.rows.size(), 3u);
  EXPECT_EQ(truth.rows[0].options, (std::vector<std::string>{"--cast", "f32"}));
  EXPECT_EQ(truth.rows[1].counters[0].high, 18u);
  EXPECT_EQ(truth.rows[2].counters[0].projected, std::nullopt);
  const auto evidence = load::evidence_of("to_device", truth);
  ASSERT_TRUE(evidence);
  EXPECT_EQ(evidence->frameworks, (std::vector<std::string>{"torch 2.13.0", "safetensors 0.8.0"}));
  EXPECT_EQ(evidence->pairs, 3u);
  EXPECT_EQ(evidence->ranged, 1u);
  EXPECT_EQ(evidence->error_percent, 1.5);
  ASSERT_EQ(evidence->beyond.size(), 1u);
  EXPECT_EQ(evidence->beyond[0]->reason, "of the allocator");
  EXPECT_EQ(load::evidence_of("direct", truth), std::nullopt);
}

TEST(Evidence, OfADamagedFileIsAnError) {
  for (const char* text : {"", "{}", "[]", R"({"date": 3})", R"({"date": "", "tolerance": {}, "rows": []})"})
    EXPECT_THROW(load::parse_truth(text), Error) << text;
}

// A method that changes has to be held against its frameworks again: ./dev truth --write.
TEST(Evidence, IsOfTheMethodsAsTheyAreToday) {
  const load::Truth& truth = load::built_in_truth();
  ASSERT_GE(truth.rows.size(), 45u);
  std::size_t good = 0;
  for (const load::TruthRow& row : truth.rows) {
    SCOPED_TRACE(row.recipe + " " + row.model);
    good += row.ok ? 1 : 0;
    if (!row.method.empty()) EXPECT_EQ(row.law, load::law_text(load::find_method(row.method)));
  }
  EXPECT_GE(good * 100, truth.rows.size() * 95);
  for (const char* id :
       {"to_device", "mmap_assign", "transformers_v5", "accelerate", "llama_cpp_mmap", "runai"})
    EXPECT_TRUE(load::evidence_of(id)) << id;
  EXPECT_EQ(load::evidence_text("executorch_after"), "By construction, not measured.");
  EXPECT_EQ(load::evidence_brief("executorch_after"), "by construction");
}

}  // namespace

// --- Rates: their file, whoever wrote it, and how they are measured.

namespace {

load::MeasuredRates sample_rates() {
  load::MeasuredRates rates;
  rates.measured = "2025-03-01T12:00Z";
  rates.device = "A \"card\"";
  for (const load::RateRow& row : load::rate_rows())
    rates.values[std::string(row.key)] = row.of_device ? 1.0 / 3.0 * 1e10 : 0.0125 * row.most;
  rates.how["disk_read"] = "O_DIRECT";
  rates.queues = {{"0 draws and computes", 1.9e10}, {"2 only copies", 2.4e10 / 7}};
  return rates;
}

TEST(Rates, TheFileGivesBackEveryBit) {
  const load::MeasuredRates rates = sample_rates();
  const load::MeasuredRates back = load::parse_rates(load::rates_text(rates), "rates.json");
  EXPECT_EQ(back.measured, rates.measured);
  EXPECT_EQ(back.values, rates.values);
  EXPECT_EQ(back.how, rates.how);
  EXPECT_EQ(back.queues, rates.queues);
  EXPECT_NE(back.device.find("card"), std::string::npos);
}

TEST(Rates, WhatWasNotMeasuredStaysAssumed) {
  const load::MeasuredRates rates =
      load::parse_rates(R"({"measured": "today", "disk_read": 5e8})", "rates.json");
  const plan::CostModel assumed, costs = rates.costs();
  EXPECT_EQ(costs.disk_read, 5e8);
  EXPECT_EQ(costs.link, assumed.link);
  EXPECT_EQ(costs.seek_seconds, assumed.seek_seconds);
  for (const load::RateRow& row : load::rate_rows())
    EXPECT_EQ(sample_rates().costs().*row.member, sample_rates().values.at(std::string(row.key)));
}

TEST(Rates, HostileFilesAreErrorsThatNameThePlace) {
  const auto fault = [](const std::string& json) {
    return testing::facts_of([&] { load::parse_rates(json, "rates.json"); });
  };
  EXPECT_EQ(fault(""), "malformed rates.json 1 1 '[' '{'");
  EXPECT_EQ(fault("[]"), "malformed rates.json 1 1");
  EXPECT_EQ(fault(R"({"disk_read": 1e9})"), "malformed rates.json 1 1 'measured'");
  EXPECT_EQ(fault(R"({"measured": "", "disk_read": 1e9})"), "malformed rates.json 1 15 'measured'");
  EXPECT_EQ(fault(R"({"measured": "x"})"), "malformed rates.json 1 1");
  EXPECT_EQ(fault(R"({"measured": "x", "disk_read": 0})"),
            "malformed rates.json 1 32 'disk_read' 0 1000 1e+16");
  EXPECT_EQ(fault(R"({"measured": "x", "disk_read": -1e9})"),
            "malformed rates.json 1 32 'disk_read' -1000000000 1000 1e+16");
  EXPECT_EQ(fault(R"({"measured": "x", "disk_read": 1e999})"),
            "malformed rates.json 1 32 'disk_read' '1e999'");
  EXPECT_EQ(fault(R"({"measured": "x", "disk_read": "nan"})"), "malformed rates.json 1 33 'disk_read' 'nan'");
  EXPECT_EQ(fault(R"({"measured": "x", "disk_read": "1e9 "})"),
            "malformed rates.json 1 33 'disk_read' '1e9 '");
  EXPECT_EQ(fault(R"({"measured": "x", "link": 1e17})"), "malformed rates.json 1 27 'link' 1e+17 1000 1e+16");
  EXPECT_EQ(fault(R"({"measured": "x", "seek_seconds": 1e9})"),
            "malformed rates.json 1 35 'seek_seconds' 1000000000 1e-09 100");
  EXPECT_EQ(fault(R"({"measured": "x", "disk_read": {}})"), "malformed rates.json 1 32 'disk_read'");
  EXPECT_EQ(fault(R"({"measured": "x", "disk_read": 1e9, "disc": 1})"), "malformed rates.json 1 45 'disc'");
  EXPECT_EQ(fault(R"({"measured": "x", "disk_read": 1e9, "queues": 3})"),
            "malformed rates.json 1 47 'queues'");
  EXPECT_EQ(fault(R"({"measured": "x", "disk_read": 1e9, "queues": {"0": 1}})"),
            "malformed rates.json 1 53 '0' 1 1000 1e+16");
  EXPECT_EQ(fault(R"({"measured": ")" + std::string(1000, 'x') + R"(", "disk_read": 1e9})"),
            "malformed rates.json 1 15 'measured' 1000 300");
  EXPECT_EQ(fault(R"({"measured": "x", "disk_read": 1e9, "how": {"a": ")" + std::string(1000, 'x') + "\"}}"),
            "malformed rates.json 1 51 'how' 1000 300");
  EXPECT_EQ(fault(std::string(2 << 20, ' ')), "limit rates.json 2097152 1048576");
  EXPECT_THROW(load::read_rates("/nonexistent/rates.json"), Error);
}

TEST(Rates, TheMedianIsTheMiddle) {
  EXPECT_EQ(load::median({3}), 3);
  EXPECT_EQ(load::median({9, 1, 5}), 5);
  EXPECT_EQ(load::median({4, 1, 9, 2}), 3);
}

TEST(Rates, MeasuringGivesWhatTheFileTakesAndLeavesNothing) {
  const std::filesystem::path folder = ::testing::TempDir() + "loadline_rates_test";
  std::filesystem::create_directories(folder);
  load::MeasuredRates rates;
  rates.measured = "now";
  Progress progress;
  load::measure_disk(folder.string(), 8 << 20, rates, progress);
  load::measure_memory(1 << 20, rates, progress);
  EXPECT_TRUE(std::filesystem::is_empty(folder));
  std::filesystem::remove(folder);
  EXPECT_EQ(load::parse_rates(load::rates_text(rates), "rates.json").values, rates.values);
  for (const load::RateRow& row : load::rate_rows())
    EXPECT_EQ(rates.values.contains(std::string(row.key)), !row.of_device) << row.key;
  for (const auto& [key, value] : rates.values) EXPECT_TRUE(std::isfinite(value) && value > 0) << key;
  EXPECT_NE(rates.how.at("disk_read").find("8.00 MiB"), std::string::npos);
}

TEST(Rates, MeasuringEndsWhenAskedAndNamesAFolderThatIsNotThere) {
  std::stop_source source;
  source.request_stop();
  Progress stopped(source.get_token()), progress;
  load::MeasuredRates rates;
  const auto code = [&](const std::string& folder, Progress& with) {
    try {
      load::measure_disk(folder, 8 << 20, rates, with);
    } catch (const Error& error) {
      EXPECT_TRUE(error.code() == ErrorCode::canceled ||
                  std::string(error.what()).find(folder) != std::string::npos);
      return error.code();
    }
    return ErrorCode::no_fit;
  };
  EXPECT_EQ(code(::testing::TempDir(), stopped), ErrorCode::canceled);
  EXPECT_EQ(code("/nonexistent/folder", progress), ErrorCode::io);
  EXPECT_TRUE(rates.values.empty());
}

}  // namespace

// --- What a log of samples keeps, and that a long one takes no memory while it is filled.

namespace {

plan::MemorySample sample(std::size_t at) {
  const std::uint64_t peak = at == 777 ? 1000 : 0;
  return {static_cast<double>(at), {.rss_anon = at, .rss_file = peak, .rss_shmem = 7}};
}

TEST(SampleLog, KeepsAllWhileThereIsRoom) {
  load::SampleLog log(4);
  for (std::size_t i = 0; i < 4; ++i) log.add(sample(i), 10 * i);
  const auto [samples, steps] = log.take();
  EXPECT_EQ(steps, (std::vector<std::size_t>{0, 10, 20, 30}));
  ASSERT_EQ(samples.size(), 4u);
  EXPECT_EQ(samples[3].memory.rss_anon, 3u);
  EXPECT_EQ(samples[3].seconds, 3);
}

TEST(SampleLog, ShowsWhatItHoldsWithoutLosingIt) {
  load::SampleLog log(4);
  for (std::size_t i = 0; i < 6; ++i) {
    plan::MemorySample with_count = sample(i);
    with_count.device_counted = i == 3 ? 50 : 0;
    log.add(with_count, i);
  }
  const auto [samples, steps] = log.entries();
  EXPECT_EQ(steps, (std::vector<std::size_t>{0, 2, 4}));
  ASSERT_EQ(samples.size(), 3u);
  EXPECT_EQ(samples[1].device_counted, 50u);
  EXPECT_EQ(log.take().steps, steps);
}

// Also of one that had halved what it holds: a new one stands for single samples again.
TEST(SampleLog, IsAsNewWhenItWasEmptied) {
  load::SampleLog log(4);
  for (std::size_t i = 0; i < 6; ++i) log.add(sample(i), i);
  EXPECT_EQ(log.take().steps, (std::vector<std::size_t>{0, 2, 4}));
  EXPECT_TRUE(log.take().steps.empty());
  for (std::size_t i = 7; i < 11; ++i) log.add(sample(i), i);
  const auto [samples, steps] = log.take();
  EXPECT_EQ(steps, (std::vector<std::size_t>{7, 8, 9, 10}));
  EXPECT_EQ(samples.front().memory.rss_anon, 7u);
}

TEST(SampleLog, LosesNoPeakAndKeepsTheOrderWhenItIsFull) {
  for (const std::size_t count : {5u, 9u, 64u, 1000u, 1023u}) {
    load::SampleLog log(4);
    for (std::size_t i = 0; i < count; ++i) log.add(sample(i), i / 3);
    const auto [samples, steps] = log.take();
    ASSERT_EQ(samples.size(), steps.size());
    EXPECT_LE(samples.size(), 4u);
    EXPECT_TRUE(std::is_sorted(steps.begin(), steps.end()));
    EXPECT_EQ(steps.front(), 0u);
    EXPECT_EQ(samples.back().memory.rss_anon, count - 1);
    std::uint64_t most = 0;
    for (const plan::MemorySample& kept : samples) most = std::max(most, kept.memory.rss_file);
    EXPECT_EQ(most, count > 777 ? 1000u : 0u);
  }
}

// Twenty minutes at a thousand a second would be 46 MiB if each were kept.
TEST(SampleLog, DoesNotGrowWhileItIsFilled) {
  load::SampleLog log;
  const std::uint64_t before = io::read_process_memory().rss_anon;
  if (before == 0) GTEST_SKIP() << "the system does not say";
  for (std::size_t i = 0; i < 1'200'000; ++i) log.add(sample(i), i);
  const std::uint64_t after = io::read_process_memory().rss_anon;
  EXPECT_LE(after, before + (1 << 20));
}

}  // namespace

}  // namespace loadline::tests
