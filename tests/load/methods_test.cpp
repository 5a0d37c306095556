// Load methods: closed forms, laws, and what stays needed.

#include "core/base/error.h"
#include "core/load/answer/projection.h"
#include "core/load/answer/rows.h"
#include "core/load/methods/framework_sizes.h"
#include "core/load/request/bind_request.h"
#include "core/load/request/casts.h"
#include "core/load/request/load_options.h"
#include "core/load/request/method.h"
#include "core/load/request/model_parts.h"
#include "core/plan/block_contents.h"
#include "core/plan/reserved_memory.h"
#include "tests/support/plan_models.h"
#include "tests/support/random_placement.h"

#include <algorithm>
#include <cctype>
#include <map>
#include <random>
#include <set>
#include <string_view>
#include <tuple>
#include <vector>

#include <fmt/core.h>
#include <gtest/gtest.h>

namespace loadline::tests {

// --- Methods and the files that they open.

namespace {

std::vector<std::string_view> ids_for(std::string_view format) {
  graph::MetaGraph graph = testing::model_of({{"w", 100}});
  graph.format = format;
  std::vector<std::string_view> ids;
  for (const load::Method* const method : load::find_methods({}, graph)) ids.push_back(method->id);
  return ids;
}

}  // namespace

TEST(OpenedFiles, DecideWhichMethodsAreShown) {
  using Ids = std::vector<std::string_view>;
  EXPECT_EQ(ids_for("safetensors"),
            (Ids{"to_device", "sequential", "mmap_assign", "staged_ring", "accelerate", "transformers_v5"}));
  EXPECT_EQ(ids_for("gguf"), (Ids{"staged_ring", "llama_cpp_mmap"}));
  EXPECT_EQ(ids_for("pte"), (Ids{"staged_ring", "executorch_after"}));
  EXPECT_EQ(ids_for("a format of tomorrow"), Ids{"staged_ring"});
}

// The operators of torch.load(mmap=True) refuse what torch wrote before 1.6.
TEST(OpenedFiles, AreMappedOnlyWhereTheirFormatCanBe) {
  graph::MetaGraph graph = testing::model_of({{"w", 100}});
  graph.format = "torch";
  EXPECT_TRUE(load::can_open(load::find_method("mmap_assign"), graph));
  EXPECT_FALSE(load::can_open(load::find_method("runai"), graph));
  graph.format = "torch_legacy";
  EXPECT_FALSE(load::can_open(load::find_method("mmap_assign"), graph));
  EXPECT_TRUE(load::can_open(load::find_method("to_device"), graph));
}

TEST(OpenedFiles, OfAnotherFormatAreRefusedByName) {
  graph::MetaGraph graph = testing::model_of({{"w", 100}});
  graph.format = "onnx";
  try {
    (void)load::bind_request(graph, {.methods = {"llama_cpp_mmap"}}, {});
    FAIL() << "llama.cpp opens no ONNX files";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::unsupported);
    EXPECT_EQ(std::string_view(error.what()),
              "the method llama_cpp_mmap opens GGUF files, not this model's format: onnx");
  }
  // "all" leaves out what a name asks for
  const auto all = load::find_methods({"all"}, graph);
  EXPECT_EQ(all, load::methods_for(graph));
  EXPECT_THROW(load::find_methods({"all", "runai"}, graph), Error);
  EXPECT_EQ(load::unopened_text(graph),
            fmt::format("{} methods cannot open ONNX files", load::methods().size() - all.size()));
}

// --- Load methods with casts, homes, shards and ties: closed forms, and what every plan must leave behind.

namespace {

using testing::model_of;
using testing::tie;
using testing::Weight;

plan::Timeline project_with(const graph::MetaGraph& graph, std::string_view method,
                            const load::BoundRequest& options, std::string_view order = "file") {
  return load::project(graph, load::find_method(method), load::find_order(order), options).timeline;
}
// The model in a format that the method opens: in its own, if that is one.
graph::MetaGraph opened_by(const load::Method& method, graph::MetaGraph graph) {
  for (const char* const format : {"safetensors", "gguf", "onnx", "tflite", "npz", "pt2", "pte"}) {
    if (load::can_open(method, graph)) break;
    graph.format = format;
  }
  return graph;
}
std::uint64_t peak(const plan::Timeline& timeline, plan::Space space) {
  return timeline.peaks[plan::index(space)].bytes;
}

std::vector<Weight> random_weights(std::mt19937_64& random) {
  std::vector<Weight> weights = {{"model.embed_tokens.weight", 1 + random() % 40}};
  const std::uint64_t layers = 1 + random() % 3, experts = random() % 4;
  for (std::uint64_t layer = 0; layer < layers; ++layer) {
    const std::string prefix = fmt::format("model.layers.{}.", layer);
    weights.push_back({prefix + "self_attn.q_proj.weight", 1 + random() % 20});
    const std::uint64_t gate = 1 + random() % 9, down = 1 + random() % 9;
    for (std::uint64_t e = 0; e < experts; ++e) {
      const std::string expert = fmt::format("{}mlp.experts.{}.", prefix, e);
      weights.push_back({expert + "gate_proj.weight", gate});
      weights.push_back({expert + "up_proj.weight", gate});
      weights.push_back({expert + "down_proj.weight", down});
    }
  }
  weights.push_back({"model.norm.weight", 1});
  if (random() % 2 == 0) weights.push_back({"lm_head.weight", 1 + random() % 40});
  return weights;
}

// Which bytes of which storages a plan leaves in which spaces, each counted once.
struct Held {
  std::vector<std::uint64_t> device, host, mapped;  // bytes of each storage
  bool overlaps = false;
};
Held held_at_end(const graph::MetaGraph& graph, const plan::Plan& plan) {
  const std::vector<std::uint64_t> none(graph.storages.size());
  Held held{none, none, none};
  std::vector<std::vector<std::pair<std::uint64_t, std::uint64_t>>> ranges(graph.storages.size());
  const auto contents = plan::final_contents(plan);
  for (std::size_t i = 0; i < contents.size(); ++i)
    for (const plan::Extent& extent : contents[i]) {
      const std::size_t at = graph::index(extent.storage);
      const bool device = plan.blocks[i].space == plan::Space::device;
      const bool mapped = plan.blocks[i].space == plan::Space::page_cache;
      (device ? held.device : mapped ? held.mapped : held.host)[at] += extent.storage_bytes();
      if (device)
        ranges[at].emplace_back(extent.storage_offset, extent.storage_offset + extent.storage_bytes());
    }
  for (auto& list : ranges) {
    std::sort(list.begin(), list.end());
    for (std::size_t i = 1; i < list.size(); ++i) held.overlaps |= list[i].first < list[i - 1].second;
  }
  return held;
}

TEST(LoadMethods, EveryPlanLeavesEveryWeightOnceWhereItBelongs) {
  std::mt19937_64 random(7);
  std::size_t plans = 0, fused = 0;
  for (int round = 0; round < 120; ++round) {
    graph::MetaGraph any_format = model_of(random_weights(random));
    if (random() % 2 == 0) any_format.format = random() % 2 == 0 ? "torch" : "safetensors";
    if (random() % 3 == 0) tie(any_format, "lm_head.tied", 0);
    load::BoundRequest options{
        .request = {.staging_bytes = 16384, .slots = 4, .activation_bytes = random() % 5000}};
    options.request.shard_bytes = random() % 3 == 0 ? 1 + random() % 4000 : 0;
    options.request.flush_bytes = random() % 3 == 0 ? random() % 4000 : 0;
    for (const load::Method& method : load::methods()) {
      const graph::MetaGraph graph = opened_by(method, any_format);
      load::BoundRequest chosen = options;
      constexpr graph::DType kCasts[] = {graph::DType::f32, graph::DType::f16, graph::DType::q4_0};
      const graph::DType cast = kCasts[random() % 3];
      if (load::can_cast_to(method, cast) && random() % 2 == 0) chosen.request.cast = cast;
      if (method.traits.offloads && random() % 2 == 0)
        chosen.placement = testing::random_placement(random, graph, method);
      if (method.traits.host_only) chosen.placement.homes.assign(graph.storages.size(), load::Home::host);
      const std::uint64_t copies = method.id == "onnxruntime_bytes" ? 2 : 1;  // Python keeps what it read
      for (const load::Order& order : load::orders()) {
        SCOPED_TRACE(fmt::format("{} {} round {}", method.id, order.id, round));
        const load::Projection projection = load::project(graph, method, order, chosen);
        ASSERT_EQ(plan::check_plan(projection.plan, graph), std::nullopt);
        const Held held = held_at_end(graph, projection.plan);
        EXPECT_FALSE(held.overlaps);
        for (std::size_t i = 0; i < graph.storages.size(); ++i) {
          const load::Home home = chosen.placement.of(graph::StorageId{static_cast<std::uint32_t>(i)});
          const bool device = home == load::Home::device && !method.traits.streams;
          EXPECT_EQ(held.device[i], device ? graph.storages[i].bytes : 0);
          const bool llama = method.id.starts_with("llama_cpp");  // it leaves no weights on disk
          const bool read =
              llama || method.id.starts_with("executorch");  // pages are read as they are mapped
          if (home == load::Home::host || (home == load::Home::disk && llama)) {
            // views are touched when something uses the weights
            const bool view = held.host[i] == 0 && method.id != "to_device";
            EXPECT_EQ(
                view ? held.mapped[i] : held.host[i],
                view && !load::uses_weights(chosen.request) && !read ? 0 : copies * graph.storages[i].bytes);
          } else {
            EXPECT_EQ(held.host[i], 0u);
            if (chosen.placement.all_on_device()) EXPECT_EQ(held.mapped[i], 0u);
          }
        }
        if (!method.traits.streams)
          EXPECT_GE(peak(projection.timeline, plan::Space::device), load::device_lower_bound(graph, chosen));
        ++plans;
      }
      fused += method.id == "transformers_v5" &&
               !load::expert_groups(graph, load::find_order("file").make(graph)).empty();
    }
  }
  EXPECT_GT(plans, 10'000u);
  EXPECT_GT(fused, 20u);
}

// What one token reads: all weights, but of an embedding that is no head one row with its neighbors.
std::uint64_t touched(const graph::MetaGraph& graph) {
  std::uint64_t sum = 0;
  const auto shared = load::shared_embedding(graph);
  for (const graph::Tensor& tensor : graph.tensors)
    if (load::phase_of(tensor.name) != load::Phase::embedding || tensor.storage == shared)
      sum += graph.storage(tensor.storage).bytes;
    else
      sum += std::min<std::uint64_t>(graph.storage(tensor.storage).bytes, 64 << 10);
  return sum;
}

TEST(LoadMethods, AcceleratesLaw) {
  std::mt19937_64 random(3);
  for (int round = 0; round < 100; ++round) {
    graph::MetaGraph graph = model_of(random_weights(random));
    // shards of consecutive tensors
    std::vector<std::uint64_t> shard(1, 0);
    graph.files.clear();
    std::uint64_t offset = 0;
    for (graph::Storage& storage : graph.storages) {
      if (random() % 3 == 0 && shard.back() > 0) shard.push_back(0), offset = 0;
      storage.file = graph::FileId{static_cast<std::uint32_t>(shard.size() - 1)};
      storage.offset = offset;
      offset += storage.bytes;
      shard.back() += storage.bytes;
    }
    graph.files.resize(shard.size());
    const std::uint64_t weights = graph::storage_bytes(graph);
    const std::uint64_t largest = *std::max_element(shard.begin(), shard.end());
    // of a pickled shard the last tensor stays until the next shard is loaded
    std::vector<std::uint64_t> last(shard.size());
    for (const graph::Storage& storage : graph.storages) last[graph::index(storage.file)] = storage.bytes;
    std::uint64_t with_last = 0;
    for (std::size_t k = 0; k < shard.size(); ++k)
      with_last = std::max(with_last, shard[k] + (k > 0 ? last[k - 1] : 0));
    for (const char* format : {"safetensors", "torch"}) {
      graph.format = format;
      const bool pickled = graph.format == "torch";
      const plan::Timeline plain = project_with(graph, "accelerate", {});
      EXPECT_EQ(peak(plain, plan::Space::device), weights);
      EXPECT_EQ(peak(plain, plan::Space::page_cache), pickled ? 0 : largest);
      EXPECT_EQ(peak(plain, plan::Space::host), pickled ? with_last : 0);
      // cast to twice the size: safetensors on the device, max_k(sum_{j<k} V_j + S_k + V_k)
      std::uint64_t expected = 0, before = 0;
      for (const std::uint64_t bytes : shard) {
        expected = std::max(expected, before + bytes + 2 * bytes);
        before += 2 * bytes;
      }
      EXPECT_EQ(peak(project_with(graph, "accelerate", {.request = {.cast = graph::DType::f32}}),
                     plan::Space::device),
                pickled ? 2 * weights : expected);
      // all on the host: views of safetensors, or the tensors of pickled shards themselves
      load::BoundRequest host;
      host.placement.homes.assign(graph.storages.size(), load::Home::host);
      const plan::Timeline kept = project_with(graph, "accelerate", host);
      EXPECT_EQ(peak(kept, plan::Space::host), graph.format == "torch" ? weights : 0u);
      EXPECT_EQ(peak(kept, plan::Space::page_cache), 0u);
      EXPECT_EQ(peak(kept, plan::Space::device), 0u);
      host.request.sequence = 1;
      EXPECT_EQ(peak(project_with(graph, "accelerate", host), plan::Space::page_cache),
                graph.format == "torch" ? 0u : touched(graph));
      host.request.cast = graph::DType::f32;
      const std::uint64_t cast = peak(project_with(graph, "accelerate", host), plan::Space::host);
      EXPECT_GE(cast, pickled ? expected : 2 * weights);
      EXPECT_LE(cast, pickled ? expected + *std::ranges::max_element(last) : 2 * weights);
    }
  }
}

// As measured with executorch 1.5: a delegate packs what was lowered for it, and the arenas are there at
// once.
TEST(LoadMethods, ExecuTorchPacksForItsDelegate) {
  graph::MetaGraph graph = model_of({{"constant.1", 40}, {"packed", 100}});
  graph.format = "pte";
  graph.tensors[1].dtype = graph::DType::opaque;
  graph.metadata = {{"execution_plan.0.planned", std::uint64_t{777}}};
  constexpr std::uint64_t kRow = 32 * 2;
  const auto peaks = [&](std::string_view method) {
    const plan::Timeline timeline = project_with(graph, method, {});
    return std::pair(peak(timeline, plan::Space::host), peak(timeline, plan::Space::page_cache));
  };
  EXPECT_EQ(peaks("executorch_mapped"), (std::pair{std::uint64_t{777}, 140 * kRow}));
  EXPECT_EQ(peaks("executorch_bytes"), (std::pair{140 * kRow + 777, std::uint64_t{0}}));
  EXPECT_EQ(peaks("executorch_xnnpack"), (std::pair{100 * kRow + 777, 140 * kRow}));
  const plan::Timeline packed = project_with(graph, "executorch_xnnpack", {});
  EXPECT_EQ(packed.final_bytes[plan::index(plan::Space::page_cache)], 40 * kRow);
}

// As measured with openvino 2026.4 where the processor computes in BF16.
TEST(LoadMethods, OpenVinoPacksMatricesInHalf) {
  graph::MetaGraph graph = model_of({{"a", 100}, {"b", 20}}, graph::DType::f32);
  graph.format = "onnx";
  graph.tensors[1].shape = {20 * 32};  // no matrix
  constexpr std::uint64_t kRow = 32 * 4;
  const plan::Timeline inside = project_with(graph, "openvino", {});
  EXPECT_EQ(peak(inside, plan::Space::host), 240 * kRow);
  EXPECT_EQ(inside.final_bytes[plan::index(plan::Space::host)], (120 + 50) * kRow);
  graph.files.push_back({"model.onnx.data", 120 * kRow});
  for (graph::Storage& storage : graph.storages) storage.file = graph::FileId{1};
  const plan::Timeline outside = project_with(graph, "openvino", {});
  EXPECT_EQ(peak(outside, plan::Space::host), 50 * kRow);
  EXPECT_EQ(peak(outside, plan::Space::page_cache), 120 * kRow);
  const plan::Timeline run = project_with(graph, "openvino", {.request = {.activation_bytes = 7}});
  EXPECT_EQ(peak(run, plan::Space::host), 100 * kRow + 7);
}

// Blocks become F32, and a copy of them the parameter.
TEST(LoadMethods, TransformersUnpacksGguf) {
  graph::MetaGraph graph = model_of({{"a", 4}, {"b", 10}}, graph::DType::q8_0);
  graph.format = "gguf";
  constexpr std::uint64_t kRow = 32 * 4;
  const plan::Timeline f32 = project_with(graph, "transformers_gguf", {});
  EXPECT_EQ(peak(f32, plan::Space::host), 24 * kRow);
  EXPECT_EQ(f32.final_bytes[plan::index(plan::Space::host)], 14 * kRow);
  EXPECT_EQ(peak(f32, plan::Space::page_cache), graph::storage_bytes(graph));
  const plan::Timeline bf16 =
      project_with(graph, "transformers_gguf", {.request = {.cast = graph::DType::bf16}});
  EXPECT_EQ(peak(bf16, plan::Space::host), (2 + 20 + 5) * kRow);
  EXPECT_EQ(bf16.final_bytes[plan::index(plan::Space::host)], 7 * kRow);
}

// A mapped weight that a merge writes becomes host memory of its own.
TEST(LoadMethods, PeftCopiesWhatItMerges) {
  const graph::MetaGraph graph = model_of({{"model.embed_tokens.weight", 50},
                                           {"model.layers.0.self_attn.q_proj.weight", 10},
                                           {"model.layers.0.mlp.up_proj.weight", 40},
                                           {"model.layers.0.mlp.gate.weight", 30},
                                           {"lm_head.weight", 50}});
  constexpr std::uint64_t kRow = 32 * 2;
  load::BoundRequest request;
  request.request.forward.training.rank = 2;
  const std::uint64_t both = 2 * 4 * (10 + 32) + 2 * 4 * (40 + 32), one = 2 * 4 * (10 + 32);
  EXPECT_EQ(peak(project_with(graph, "peft_attach", request), plan::Space::host), both);
  // the last product: its matrix, and weight and sum, in F32
  const plan::Timeline merged = project_with(graph, "peft_merge", request);
  EXPECT_EQ(peak(merged, plan::Space::host), both + 50 * kRow + 3 * 40 * 32 * 4);
  EXPECT_EQ(peak(merged, plan::Space::page_cache), 40 * kRow);
  EXPECT_EQ(merged.final_bytes[plan::index(plan::Space::host)], 50 * kRow);
  request.request.forward.training.targets = {"q_proj"};
  EXPECT_EQ(peak(project_with(graph, "peft_attach", request), plan::Space::host), one);
  EXPECT_EQ(peak(project_with(graph, "peft_merge", request), plan::Space::host),
            one + 10 * kRow + 3 * 10 * 32 * 4);
}

// The options of adapters need a training step, or a method that attaches them.
TEST(LoadMethods, PeftTakesTheOptionsOfAdapters) {
  load::LoadRequest request;
  request.forward.training.rank = 4;
  const load::Method* const merge = &load::find_method("peft_merge");
  const load::Method* const plain = &load::find_method("to_device");
  EXPECT_TRUE(load::unused_options(request, std::span(&merge, 1), {}).empty());
  EXPECT_EQ(load::unused_options(request, std::span(&plain, 1), {}).size(), 1u);
}

TEST(LoadMethods, FusionNeedsItsSourcesAndStacks) {
  std::vector<Weight> weights;
  for (int e = 0; e < 8; ++e)
    for (const char* part : {"w1", "w2", "w3"})
      weights.push_back({fmt::format("model.layers.0.block_sparse_moe.experts.{}.{}.weight", e, part), 10});
  const graph::MetaGraph graph = model_of(weights);
  const std::uint64_t each = 10 * 32 * 2, all = graph::storage_bytes(graph);
  const auto groups = load::expert_groups(graph, load::find_order("file").make(graph));
  ASSERT_EQ(groups.size(), 2u);
  EXPECT_EQ(groups[0].label, "model.layers.0.block_sparse_moe.experts.gate_up_proj");
  EXPECT_EQ(groups[0].bytes, 16 * each);
  EXPECT_EQ(groups[1].bytes, 8 * each);
  // threads bring all sources ahead; two stacks and their concatenation replace those of the larger group
  EXPECT_EQ(peak(project_with(graph, "transformers_v5", {}), plan::Space::device), all + groups[0].bytes);
  // on the host the sources are the mapping
  EXPECT_EQ(peak(project_with(graph, "transformers_v5_to", {}), plan::Space::host), 2 * groups[0].bytes);
  const plan::Timeline better = project_with(graph, "fused_in_place", {});
  EXPECT_EQ(peak(better, plan::Space::device), all);
  EXPECT_EQ(peak(better, plan::Space::host), each);
}

// Names are compared once for all orders: each order must get what a search in it finds.
TEST(LoadMethods, NamedPartsFollowEveryOrder) {
  for (const bool twice : {false, true}) {
    std::vector<Weight> weights = {{"model.embed_tokens.weight", 9}, {"lm_head.weight", 9}};
    for (int layer = 0; layer < 3; ++layer)
      for (int e = 0; e < 4; ++e)
        for (const char* part : {"w1", "w2", "w3"})
          weights.push_back({fmt::format("model.layers.{}.mlp.experts.{}.{}.weight", layer, e, part), 10});
    // a second gate of an expert does not match the others: whether they fuse depends on which comes first
    if (twice) weights.push_back({"model.layers.1.mlp.experts.2.gate_proj.weight", 11});
    const graph::MetaGraph graph = model_of(weights);
    const load::NamedParts parts(graph);
    load::StorageOrder order = load::find_order("file").make(graph);
    std::mt19937_64 random(7);
    std::set<std::size_t> counts;
    for (int i = 0; i < 50; ++i) {
      std::ranges::shuffle(order, random);
      const auto groups = parts.expert_groups(order), expected = load::expert_groups(graph, order);
      ASSERT_EQ(groups.size(), expected.size());
      counts.insert(groups.size());
      for (std::size_t g = 0; g < groups.size(); ++g) {
        EXPECT_EQ(groups[g].label, expected[g].label);
        EXPECT_EQ(groups[g].storages, expected[g].storages);
      }
      const load::StorageOrder some(order.begin(), order.begin() + i % 10);
      const auto units = parts.units(some), searched = load::load_units(graph, some);
      ASSERT_EQ(units.size(), searched.size());
      for (std::size_t u = 0; u < units.size(); ++u) {
        EXPECT_EQ(units[u].label, searched[u].label);
        EXPECT_EQ(units[u].storages, searched[u].storages);
        EXPECT_EQ(units[u].bytes, searched[u].bytes);
      }
    }
    EXPECT_EQ(counts, twice ? std::set<std::size_t>({5, 6}) : std::set<std::size_t>({6}));
  }
}

// Experts that do not match each other are loaded one by one.
TEST(LoadMethods, OnlyCompleteExpertsFuse) {
  const auto groups = [](const std::vector<Weight>& weights) {
    const graph::MetaGraph graph = model_of(weights);
    return load::expert_groups(graph, load::find_order("file").make(graph)).size();
  };
  EXPECT_EQ(groups({{"a.experts.0.w2.weight", 3}, {"a.experts.1.w2.weight", 3}}), 1u);
  EXPECT_EQ(groups({{"a.experts.0.w2.weight", 3}, {"a.experts.1.w2.weight", 4}}), 0u);
  EXPECT_EQ(groups({{"a.experts.0.w2.weight", 3}, {"a.experts.2.w2.weight", 3}}), 0u);
  EXPECT_EQ(groups({{"a.experts.0.w1.weight", 3}, {"a.experts.1.w1.weight", 3}}), 0u);  // gates without ups
  EXPECT_EQ(groups({{"a.experts.0.w2.weight", 3}, {"b.experts.1.w2.weight", 3}}), 0u);
  EXPECT_EQ(groups({{"a.experts.99999999999999999999.w2.weight", 3}, {"a.experts.1.w2.weight", 3}}), 0u);
}

TEST(LoadMethods, LayerStreamingHoldsTheLargestUnit) {
  graph::MetaGraph graph = model_of({{"model.embed_tokens.weight", 50},
                                     {"model.layers.0.a", 10},
                                     {"model.layers.0.b", 20},
                                     {"model.layers.1.a", 35},
                                     {"model.norm.weight", 1},
                                     {"lm_head.weight", 40}});
  const std::uint64_t row = 32 * 2;
  const load::BoundRequest options{.request = {.activation_bytes = 777}};
  EXPECT_EQ(peak(project_with(graph, "layer_streaming", options), plan::Space::device), 50 * row + 777);
  EXPECT_EQ(peak(project_with(graph, "layer_streaming", options), plan::Space::host), 50 * row);
  const plan::Timeline ahead = project_with(graph, "layer_streaming_prefetch", options);
  EXPECT_EQ(peak(ahead, plan::Space::device), 50 * row + 777);
  EXPECT_EQ(peak(ahead, plan::Space::host), (50 + 30) * row);
  // a head that is the embedding comes again at the end
  graph = model_of({{"model.embed_tokens.weight", 50}, {"model.layers.0.a", 10}, {"model.norm.weight", 1}});
  tie(graph, "lm_head.weight", 0);
  // the same where the head's name comes first
  graph::MetaGraph turned =
      model_of({{"lm_head.weight", 50}, {"model.layers.0.a", 10}, {"model.norm.weight", 1}});
  tie(turned, "model.embed_tokens.weight", 0);
  EXPECT_EQ(peak(project_with(turned, "layer_streaming_prefetch", {}), plan::Space::host), (50 + 10) * row);
  std::uint64_t read = 0;
  for (const plan::Step& step :
       load::project(graph, load::find_method("layer_streaming"), load::find_order("file"), {}).plan.steps)
    if (std::holds_alternative<graph::StorageId>(step.from) && step.verb == plan::Verb::copy)
      read += step.bytes;
  EXPECT_EQ(read, (50 + 10 + 1 + 50) * row);
}

TEST(LoadMethods, StagingWaitsForTheFlush) {
  std::mt19937_64 random(5);
  for (int round = 0; round < 100; ++round) {
    const graph::MetaGraph graph = model_of(random_weights(random));
    std::uint64_t most = 0;
    for (const graph::Storage& storage : graph.storages) most = std::max(most, storage.bytes);
    const std::uint64_t all = graph::storage_bytes(graph), threshold = 1 + random() % (2 * all);
    const std::uint64_t staging =
        peak(project_with(graph, "executorch_after", {.request = {.flush_bytes = threshold}}),
             plan::Space::staging);
    EXPECT_LE(staging, std::min(threshold + most, all));
    EXPECT_GE(staging, std::min(threshold, all));
    EXPECT_EQ(peak(project_with(graph, "executorch_after", {}), plan::Space::staging), most);
  }
}

TEST(LoadMethods, TiedWeightsWaitForTheirLastUser) {
  graph::MetaGraph graph = model_of({{"embed", 50}, {"layers.0.w", 10}, {"layers.1.w", 10}});
  tie(graph, "lm_head", 0);
  const std::uint64_t row = 32 * 2, all = 70 * row;
  // the embedding's host copy is still there when the layers are packed
  const plan::Timeline shared = project_with(graph, "executorch_after", {});
  EXPECT_EQ(plan::usage_at(shared, shared.usage.back().step - 1, plan::space_bit(plan::Space::host)),
            50 * row);
  EXPECT_EQ(shared.final_bytes[plan::index(plan::Space::device)], all);
  const plan::Timeline doubled = project_with(graph, "executorch_after", {.request = {.doubled_ties = true}});
  EXPECT_EQ(doubled.final_bytes[plan::index(plan::Space::device)], all + 50 * row);
  EXPECT_EQ(project_with(graph, "executorch_before", {.request = {.doubled_ties = true}})
                .final_bytes[plan::index(plan::Space::device)],
            all + 50 * row);
}

TEST(LoadMethods, WhatAMethodCannotDoItRefuses) {
  const graph::MetaGraph graph = model_of({{"a", 1}});
  load::BoundRequest offload;
  offload.placement.homes = {load::Home::host};
  for (const load::Method& method : load::methods()) {
    const auto made = [&](const load::BoundRequest& options) {
      try {
        load::make_plan(graph, method, load::find_order("file").make(graph), options);
        return true;
      } catch (const Error& error) {
        EXPECT_EQ(error.code(), ErrorCode::unsupported) << method.id;
        return false;
      }
    };
    EXPECT_EQ(made({.request = {.cast = graph::DType::f32}}), method.traits.casts) << method.id;
    EXPECT_EQ(made({.request = {.cast = graph::DType::q4_0}}),
              method.traits.casts && method.traits.runtime != load::Runtime::torch)
        << method.id;
    EXPECT_EQ(made(offload), method.traits.offloads || method.traits.host_only) << method.id;
  }
}

TEST(StorageCast, OnlyWholeTensorsOfNumbers) {
  graph::MetaGraph graph = model_of({{"matrix", 4}, {"other", 4}});
  graph.tensors[1].dtype = graph::DType::i8;
  auto casts = load::storage_casts(graph, graph::DType::f32);
  EXPECT_EQ(casts[0], (plan::Cast{graph::DType::bf16, graph::DType::f32}));
  EXPECT_EQ(casts[1], std::nullopt);
  EXPECT_EQ(load::storage_casts(graph, graph::DType::bf16)[0], std::nullopt);  // is that already
  EXPECT_EQ(load::storage_casts(graph, graph::DType::q4_0)[0],
            (plan::Cast{graph::DType::bf16, graph::DType::q4_0}));
  EXPECT_EQ(load::storage_casts(graph, graph::DType::q4_k)[0],
            std::nullopt);  // rows of 32 are no blocks of 256
  graph.tensors[0].shape = {128};
  EXPECT_EQ(load::storage_casts(graph, graph::DType::q4_0)[0], std::nullopt);  // one dimension: a norm
  tie(graph, "view", 0);
  graph.tensors.back().dtype = graph::DType::f16;
  EXPECT_EQ(load::storage_casts(graph, graph::DType::f32)[0], std::nullopt);  // two types share the bytes
  EXPECT_EQ(load::find_cast("bf16"), graph::DType::bf16);
  EXPECT_EQ(load::find_cast("q4_K"), graph::DType::q4_k);
  EXPECT_EQ(load::find_cast("torch.bfloat16"), graph::DType::bf16);
  EXPECT_EQ(load::find_cast("float16"), graph::DType::f16);
  for (const char* wrong : {"", "i8", "int8", "opaque", "f128"})
    EXPECT_THROW(load::find_cast(wrong), Error) << wrong;
}

// Device, host, disk, or both: on the device with a twin on the host.
std::string letters(const load::Placement& placement) {
  std::string text;
  for (std::uint32_t i = 0; i < placement.homes.size(); ++i)
    text += placement.has_twin(graph::StorageId{i}) ? 'B' : "Dhd"[static_cast<int>(placement.homes[i])];
  return text;
}

// What f8 weights of 2^62 bytes become as f32 has no size: a sum that wraps would fit everywhere.
TEST(StorageCast, SumsThatWrapAreRefused) {
  graph::MetaGraph graph = model_of({{"layers.0.a", 1}, {"layers.0.b", 1}}, graph::DType::f8_e4m3);
  for (graph::Storage& storage : graph.storages) storage.bytes = std::uint64_t{1} << 61;
  const auto is_refused = [](const auto& call) {
    try {
      call();
    } catch (const Error& error) {
      return error.code() == ErrorCode::limit;
    }
    return false;
  };
  EXPECT_TRUE(is_refused([&] { load::device_lower_bound(graph, {.request = {.cast = graph::DType::f32}}); }));
  EXPECT_TRUE(is_refused([&] { load::place_automatically(graph, 1, {}, graph::DType::f32); }));
  EXPECT_TRUE(is_refused([&] { load::cast_summary(graph, graph::DType::f32); }));
  EXPECT_EQ(load::device_lower_bound(graph, {.request = {.cast = graph::DType::bf16}}),
            std::uint64_t{1} << 63);
  // in modules of their own only what is added up is refused
  graph.tensors[1].name = graph::Name("layers.1.b");
  EXPECT_EQ(letters(load::place_automatically(graph, 1, 1, graph::DType::f32)), "dd");
}

// A tensor over the limit is saved by itself, and the shard before it goes on being filled.
TEST(Shards, AreCutAsSavePretrainedDoes) {
  const auto shards = [](const std::vector<std::uint64_t>& rows) {
    std::vector<Weight> weights;
    for (std::size_t i = 0; i < rows.size(); ++i) weights.push_back({fmt::format("t{}", i), rows[i]});
    return load::shards_of(model_of(weights), 100 * 32 * 2);
  };
  using Numbers = std::vector<std::uint32_t>;
  EXPECT_EQ(shards({60, 200, 40}), (Numbers{0, 1, 0}));
  EXPECT_EQ(shards({60, 50, 101, 40, 10, 1}), (Numbers{0, 1, 2, 1, 1, 3}));
  EXPECT_EQ(shards({200, 100, 300, 1}), (Numbers{1, 0, 2, 3}));
}

// An embedding, three layers, norm and head.
graph::MetaGraph six_units() {
  return model_of({{"embed", 50},
                   {"layers.0.w", 10},
                   {"layers.1.w", 10},
                   {"layers.2.w", 10},
                   {"norm", 1},
                   {"lm_head", 40}});
}

TEST(Placement, LayersCountFromTheEnd) {
  const graph::MetaGraph graph = six_units();
  const auto on_device = [&](std::uint64_t layers) { return letters(load::place_gpu_layers(graph, layers)); };
  EXPECT_EQ(on_device(0), "hhhhhh");
  EXPECT_EQ(on_device(1), "hhhhDD");
  EXPECT_EQ(on_device(3), "hhDDDD");
  EXPECT_EQ(on_device(99), "hDDDDD");
}

TEST(Placement, AutomaticFillsInTurn) {
  const graph::MetaGraph graph = six_units();
  const std::uint64_t row = 32 * 2;
  const auto map = [&](std::uint64_t device, std::optional<std::uint64_t> host) {
    return letters(load::place_automatically(graph, device * row, host ? *host * row : host));
  };
  // the head is the largest behind every other: 40 stay free until it is placed itself, with none behind it
  EXPECT_EQ(map(121, 0), "DDDDDD");
  EXPECT_EQ(map(120, {}), "DDDDhh");
  EXPECT_EQ(map(110, {}), "DDDhhh");
  EXPECT_EQ(map(90, 49), "Dddddd");  // the host keeps 40 free, too
  EXPECT_EQ(map(90, 50), "Dhdddd");
  EXPECT_EQ(map(89, 90), "hddddd");
  EXPECT_EQ(map(0, {}), "hhhhhh");
}

// As f32 the bf16 weights, and the room that is kept free, are twice as large.
TEST(Placement, AutomaticCountsBytesAsTheyLand) {
  const graph::MetaGraph graph = six_units();
  const std::uint64_t row = 32 * 2;
  EXPECT_EQ(letters(load::place_automatically(graph, 200 * row, 0)), "DDDDDD");
  EXPECT_EQ(letters(load::place_automatically(graph, 200 * row, {}, graph::DType::f32)), "DDhhhh");
  EXPECT_EQ(letters(load::place_automatically(graph, 242 * row, 0, graph::DType::f32)), "DDDDDD");
  load::BoundRequest options = {.request = {.cast = graph::DType::f32}};
  options.placement = load::place_automatically(graph, 242 * row - 1, {}, graph::DType::f32);
  EXPECT_EQ(letters(options.placement), "DDDDhh");
  EXPECT_LE(load::device_lower_bound(graph, options), 242 * row - 1);
}

// A head with a bias of its own that shares the embedding's weight is placed with it, the weight counted
// once.
TEST(Placement, AutomaticKeepsTiedModulesTogether) {
  graph::MetaGraph graph =
      model_of({{"embed.weight", 50}, {"layers.0.w", 10}, {"layers.1.w", 10}, {"lm_head.bias", 5}});
  tie(graph, "lm_head.weight", 0);
  const std::uint64_t row = 32 * 2;
  // the embedding and the bias with a layer free, then the layers
  EXPECT_EQ(letters(load::place_automatically(graph, 75 * row, {})), "DDDD");
  EXPECT_EQ(letters(load::place_automatically(graph, 74 * row, {})), "DhhD");
  EXPECT_EQ(letters(load::place_automatically(graph, 65 * row, {})), "DhhD");
  EXPECT_EQ(letters(load::place_automatically(graph, 64 * row, 75 * row)), "hhhh");
  EXPECT_EQ(letters(load::place_automatically(graph, 64 * row, 64 * row)), "dddd");
}

// Links over a third module, and names of which the storage's first is none.
TEST(Placement, AutomaticFollowsTiesThroughOthers) {
  graph::MetaGraph graph = model_of({{"a.x", 10}, {"b.x", 10}, {"c.x", 10}, {"d.x", 10}, {"b.y", 10}});
  tie(graph, "b.tied", 0);
  tie(graph, "d.tied", 4);
  graph.tensors.push_back(graph.tensors[2]);  // of a part of c.x, under two names
  graph.tensors.back().name = graph::Name("e.part");
  graph.tensors.back().shape = {5, 32};
  tie(graph, "f.part", static_cast<std::uint32_t>(graph.tensors.size() - 1));
  const std::uint64_t row = 32 * 2;
  // a, b with both of its tensors, and d: 40 in one piece; b of 20 is the largest that comes behind a
  EXPECT_EQ(letters(load::place_automatically(graph, 60 * row, {})), "DDDDD");
  EXPECT_EQ(letters(load::place_automatically(graph, 59 * row, {})), "hhhhh");
}

// llama.cpp makes the head of the embedding, which stays on the host for looking up: it is there twice.
TEST(Placement, ASharedEmbeddingIsOnHostAndDevice) {
  const std::vector<Weight> weights = {
      {"token_embd.weight", 50}, {"blk.0.w", 10}, {"blk.1.w", 10}, {"output_norm.weight", 1}};
  const graph::MetaGraph headless = model_of(weights);
  EXPECT_EQ(letters(load::place_gpu_layers(headless, 0)), "hhhh");
  EXPECT_EQ(letters(load::place_gpu_layers(headless, 1)), "BhhD");
  EXPECT_EQ(letters(load::place_gpu_layers(headless, 2)), "BhDD");
  graph::MetaGraph tied =
      model_of({{"lm_head.weight", 50}, {"model.layers.0.w", 10}, {"model.norm.weight", 1}});
  tie(tied, "model.embed_tokens.weight", 0);
  EXPECT_EQ(letters(load::place_gpu_layers(tied, 1)), "BhD");
  const std::uint64_t row = 32 * 2;
  load::BoundRequest options;
  options.placement = load::place_gpu_layers(headless, 3);
  const plan::Timeline ring = project_with(headless, "llama_cpp_ring", options);
  EXPECT_EQ(ring.final_bytes[plan::index(plan::Space::device)], 71 * row);
  EXPECT_EQ(ring.final_bytes[plan::index(plan::Space::host)], 50 * row);
  const plan::Timeline mapped = project_with(headless, "llama_cpp_mmap", options);
  EXPECT_EQ(mapped.final_bytes[plan::index(plan::Space::device)], 71 * row);
  EXPECT_EQ(mapped.final_bytes[plan::index(plan::Space::page_cache)], 50 * row);
  // other loaders keep one
  const plan::Timeline one = project_with(headless, "accelerate", options);
  EXPECT_EQ(one.final_bytes[plan::index(plan::Space::device)], 71 * row);
  EXPECT_EQ(one.final_bytes[plan::index(plan::Space::host)], 0u);
}

// Of embeddings of layers above 4 GiB llama.cpp reads only the rows that it looks up, where they are mapped.
TEST(Placement, LargeEmbeddingsOfLayersAreReadByRows) {
  using Case = std::pair<const char*, std::uint64_t>;
  constexpr std::uint64_t kRow = 32 * 2, kRows = (std::uint64_t{4} << 30) / kRow;
  for (const auto& [architecture, more] : {Case("gemma4", 0), Case("gemma4", 1), Case("gemma3n", 1)}) {
    graph::MetaGraph graph =
        model_of({{"token_embd.weight", 50}, {"per_layer_token_embd.weight", kRows + more}, {"blk.0.w", 10}});
    graph.metadata = {{"general.architecture", architecture}};
    const bool by_rows = architecture == std::string_view("gemma4") && more == 1;
    load::BoundRequest bound;
    bound.placement = load::place_gpu_layers(graph, 0);
    const plan::Timeline mapped = project_with(graph, "llama_cpp_mmap", bound);
    const auto pages = mapped.peaks[plan::index(plan::Space::page_cache)].bytes;
    EXPECT_EQ(pages, (60 + (by_rows ? 0 : kRows + more)) * kRow);
    const load::LawSizes sizes = load::law_sizes(graph, bound, 0);
    EXPECT_EQ(sizes.by_rows.holds, by_rows);
    EXPECT_EQ(load::law_peaks(load::find_method("llama_cpp_mmap"), sizes)
                  .spaces[plan::index(plan::Space::page_cache)],
              pages);
    for (const char* const method : {"llama_cpp_ring", "llama_cpp_direct"}) {
      const auto host = project_with(graph, method, bound).peaks[plan::index(plan::Space::host)].bytes;
      if (method == std::string_view("llama_cpp_ring")) EXPECT_EQ(host, pages);
      const auto law = load::law_peaks(load::find_method(method), sizes);
      EXPECT_LE(host, law.spaces[plan::index(plan::Space::host)]) << method;
      EXPECT_GE(host, pages) << method;
    }
  }
}

// With --gpu-layers 0 nothing goes through the pinned buffers: there are none.
TEST(Placement, WithoutLayersOnTheDeviceNothingIsPinned) {
  const graph::MetaGraph graph = six_units();
  const auto staging = [&](std::uint64_t layers) {
    load::BoundRequest options;
    options.placement = load::place_gpu_layers(graph, layers);
    return project_with(graph, "llama_cpp_ring", options).peaks[plan::index(plan::Space::staging)].bytes;
  };
  EXPECT_EQ(staging(0), 0u);
  EXPECT_EQ(staging(1), 4u << 20);
}

// llama.cpp asks for no head of an encoder.
TEST(Placement, AnEncoderNeedsNoHead) {
  graph::MetaGraph graph = model_of({{"token_embd.weight", 50}, {"blk.0.w", 10}, {"blk.1.w", 10}});
  const auto placed_as = [&](const std::string& architecture) {
    graph.metadata = {{"general.architecture", architecture}};
    return letters(load::place_gpu_layers(graph, 2));
  };
  EXPECT_EQ(placed_as("llama"), "BhD");
  EXPECT_EQ(placed_as("bert"), "hhD");
  EXPECT_EQ(placed_as("nomic-bert-moe"), "hhD");
}

TEST(Placement, RulesInTheirOrder) {
  const graph::MetaGraph graph = model_of({{"a.experts.w", 1}, {"a.attn.w", 1}, {"b", 1}});
  const load::Placement placement =
      load::place_by_rules(graph, {{"name:*experts*", load::Home::disk}, {"name:a.*", load::Home::host}});
  EXPECT_EQ(placement.homes,
            (std::vector<load::Home>{load::Home::disk, load::Home::host, load::Home::device}));
  EXPECT_THROW(load::place_by_rules(graph, {{"name:nothing", load::Home::host}}), Error);
  EXPECT_THROW(load::find_home("moon"), Error);
}

}  // namespace

// --- The laws of the table of methods, evaluated on random models, against the projected peaks.

namespace {

// Layers with experts, in up to four files; of every third the embedding is the head.
graph::MetaGraph random_model(std::mt19937_64& random) {
  std::vector<testing::Weight> weights = {{"model.embed_tokens.weight", 1 + random() % 40}};
  const std::uint64_t layers = 1 + random() % 3, experts = random() % 4;
  for (std::uint64_t layer = 0; layer < layers; ++layer) {
    const std::string prefix = fmt::format("model.layers.{}.", layer);
    weights.push_back({prefix + "self_attn.q_proj.weight", 1 + random() % 20});
    const std::uint64_t gate = 1 + random() % 9, down = 1 + random() % 9;
    for (std::uint64_t e = 0; e < experts; ++e) {
      weights.push_back({fmt::format("{}mlp.experts.{}.gate_proj.weight", prefix, e), gate});
      weights.push_back({fmt::format("{}mlp.experts.{}.up_proj.weight", prefix, e), gate});
      weights.push_back({fmt::format("{}mlp.experts.{}.down_proj.weight", prefix, e), down});
    }
  }
  weights.push_back({"model.norm.weight", 1});
  const bool tied = random() % 3 == 0;
  if (!tied) weights.push_back({"lm_head.weight", 1 + random() % 40});
  graph::MetaGraph graph = testing::model_of(weights);
  if (tied) testing::tie(graph, "lm_head.weight", 0);
  graph.format = random() % 2 == 0 ? "torch" : "safetensors";
  graph.files.resize(1 + random() % 4);
  for (graph::Storage& storage : graph.storages)
    storage.file = graph::FileId{static_cast<std::uint32_t>(random() % graph.files.size())};
  return graph;
}

load::BoundRequest random_options(std::mt19937_64& random, const load::Method& method,
                                  const graph::MetaGraph& graph) {
  constexpr graph::DType kCasts[] = {graph::DType::f32, graph::DType::q4_0};
  load::BoundRequest options = {.request = {.staging_bytes = 4096 * (4 + random() % 9),
                                            .slots = 1 + static_cast<std::uint32_t>(random() % 4)}};
  options.request.activation_bytes = random() % 2 == 0 ? 0 : random() % 9000;
  options.request.runai_buffer = random() % 9000;
  if (random() % 3 == 0) options.request.shard_bytes = 1 + random() % 4000;
  if (random() % 2 == 0) options.request.flush_bytes = random() % 4000;
  const graph::DType cast = kCasts[random() % 2];
  if (load::can_cast_to(method, cast) && random() % 2 == 0) options.request.cast = cast;
  if (method.traits.offloads && random() % 2 == 0)
    options.placement = testing::random_placement(random, graph, method);
  options.request.workers = 1 + static_cast<std::uint32_t>(random() % 4);
  if (random() % 3 == 0) options.request.repack = load::CpuRepack::arm;
  options.request.doubled_ties = random() % 2 == 0;
  if (method.id.starts_with("llama_cpp") && random() % 2 == 0)
    for (std::uint32_t i = 0; i < graph.storages.size(); ++i)
      if (options.placement.of(graph::StorageId{i}) == load::Home::device && random() % 4 == 0)
        options.placement.twins.push_back(graph::StorageId{i});
  return options;
}

// How near to a law the peaks came.
struct Seen {
  int tight = 0, tried = 0;
};

TEST(PeakLaws, HoldInEveryOrderAndAreReached) {
  std::map<std::string_view, Seen> seen;
  for (std::uint64_t seed = 0; seed < 3200; ++seed) {
    std::mt19937_64 random(seed);
    const load::Method& method = load::methods()[seed % load::methods().size()];
    const graph::MetaGraph graph = opened_by(method, random_model(random));
    const load::BoundRequest options = random_options(random, method, graph);
    const auto own = load::as_called(graph, method, options);
    const load::LawPeaks law = load::law_peaks(method, load::law_sizes(graph, own ? *own : options));
    for (const load::Order& order : load::orders()) {
      SCOPED_TRACE(fmt::format("{} {} seed {}: {}", method.id, order.id, seed, load::law_text(method)));
      const plan::Timeline timeline = load::project(graph, method, order, options).timeline;
      const auto peak = [&](plan::Space space) { return timeline.peaks[plan::index(space)].bytes; };
      Seen& known = seen[method.id];
      ++known.tried;
      if (law.unified) {
        EXPECT_LE(timeline.unified.bytes, *law.unified);
        known.tight += timeline.unified.bytes == *law.unified;
        continue;
      }
      EXPECT_LE(peak(plan::Space::device), law.spaces[plan::index(plan::Space::device)]);
      EXPECT_LE(peak(plan::Space::host), law.spaces[plan::index(plan::Space::host)]);
      EXPECT_LE(peak(plan::Space::page_cache), law.spaces[plan::index(plan::Space::page_cache)]);
      EXPECT_LE(peak(plan::Space::staging), law.spaces[plan::index(plan::Space::staging)]);
      known.tight += peak(plan::Space::device) == law.spaces[plan::index(plan::Space::device)] &&
                     peak(plan::Space::host) == law.spaces[plan::index(plan::Space::host)] &&
                     peak(plan::Space::page_cache) == law.spaces[plan::index(plan::Space::page_cache)] &&
                     peak(plan::Space::staging) == law.spaces[plan::index(plan::Space::staging)];
    }
  }
  // a bound that nothing reaches would be no law
  for (const auto& [id, known] : seen) EXPECT_GT(known.tight * 20, known.tried) << id;
  for (const char* id : {"state_dict", "sequential", "per_tensor", "staged_ring", "shard_by_shard",
                         "fused_in_place", "cast_on_host", "layer_streaming", "layer_streaming_prefetch",
                         "direct", "host_import", "pinned_pool"})
    EXPECT_EQ(seen.at(id).tight, seen.at(id).tried) << id;
}

std::uint64_t peak(std::string_view method, const load::LawSizes& sizes, plan::Space space) {
  return load::law_peaks(load::find_method(method), sizes).spaces[plan::index(space)];
}

TEST(PeakLaws, AreEvaluatedAsTheyArePrinted) {
  load::LawSizes sizes;
  sizes.weights.bytes = 10;
  sizes.largest_weight.bytes = 4;
  sizes.pass.bytes = 9;
  EXPECT_EQ(load::law_text(load::find_method("state_dict")),
            "device: max(2 * weights, weights + pass); host: weights + untied_head");
  EXPECT_EQ(peak("state_dict", sizes, plan::Space::device), 20u);
  EXPECT_EQ(peak("state_dict", sizes, plan::Space::host), 10u);
  EXPECT_EQ(peak("state_dict", sizes, plan::Space::page_cache), 0u);
  sizes.pass.bytes = 90;
  EXPECT_EQ(peak("state_dict", sizes, plan::Space::device), 100u);
  sizes.host_pass = 3;
  EXPECT_EQ(peak("state_dict", sizes, plan::Space::host), 13u);
  EXPECT_EQ(load::law_text(load::find_method("executorch_before")),
            "unified: 2 * weights + pass + largest_weight + tied_copies");
  EXPECT_EQ(load::law_peaks(load::find_method("executorch_before"), sizes).unified, 114u);

  const load::Method& direct = load::find_method("llama_cpp_direct");
  EXPECT_EQ(load::law_text(direct, plan::Space::host),
            "vocabulary + host_weights + disk_weights + min(largest_off_device, 64 MiB)");
  EXPECT_EQ(load::law_text(direct, plan::Space::page_cache), "");
  EXPECT_EQ(load::law_text(direct, std::nullopt), "");
  sizes = {};
  sizes.largest_off_device.bytes = 7;
  EXPECT_EQ(peak(direct.id, sizes, plan::Space::host), 7u);
  sizes.largest_off_device.bytes = std::uint64_t{65} << 20;
  EXPECT_EQ(peak(direct.id, sizes, plan::Space::host), std::uint64_t{64} << 20);
  EXPECT_EQ(peak(direct.id, sizes, plan::Space::staging), std::uint64_t{256} << 20);
  sizes.weights.bytes = UINT64_MAX;
  EXPECT_THROW((void)peak("state_dict", sizes, plan::Space::device), Error);
}

TEST(PeakLaws, CasesReplaceOrAdd) {
  EXPECT_NE(load::law_text(load::find_method("accelerate"))
                .find("page cache: largest_shard (if used: max(largest_shard, host_weights); if pickled: 0; "
                      "if disk: + largest_weight)"),
            std::string::npos);
  load::LawSizes sizes;
  sizes.largest_shard.bytes = 10;
  sizes.largest_weight.bytes = 4;
  sizes.host_weights.bytes = 30;
  const auto cache = [&] { return peak("accelerate", sizes, plan::Space::page_cache); };
  EXPECT_EQ(cache(), 10u);
  sizes.disk.holds = true;
  EXPECT_EQ(cache(), 14u);
  sizes.used.holds = true;
  EXPECT_EQ(cache(), 34u);
  sizes.pickled.holds = true;
  EXPECT_EQ(cache(), 4u);
}

TEST(PeakLaws, CountAPassWhereItRuns) {
  const graph::MetaGraph graph = testing::model_of({{"a.weight", 3}, {"b.weight", 2}});
  load::BoundRequest inputs;
  inputs.request.activation_bytes = 5;
  EXPECT_EQ(load::law_sizes(graph, inputs, 100).pass.bytes, 105u);
  EXPECT_EQ(load::law_sizes(graph, inputs, 100).host_pass, 0u);
  inputs.placement.homes.assign(graph.storages.size(), load::Home::host);
  EXPECT_EQ(load::law_sizes(graph, inputs, 100).pass.bytes, 0u);
  EXPECT_EQ(load::law_sizes(graph, inputs, 100).host_pass, 105u);
}

}  // namespace

// --- What stays needed after a load, what cannot be dropped, and what llama.cpp holds besides the tensors.

namespace {

constexpr std::uint64_t kRow = 32 * 2;  // bytes

graph::MetaGraph small_model() {
  return testing::model_of({{"token_embd.weight", 50},
                            {"blk.0.ffn_up.weight", 10},
                            {"blk.1.ffn_up.weight", 20},
                            {"output_norm.weight", 1},
                            {"output.weight", 40}});
}

constexpr std::uint64_t kMiB = 1 << 20;

load::LoadRow row_of(const graph::MetaGraph& graph, load::LoadRequest request) {
  const load::BoundRequest bound = load::bind_request(graph, request, {});
  Progress progress;
  const load::Projection projection =
      load::project(graph, *bound.methods.front(), load::find_order("file"), bound, progress);
  return load::make_row(projection, bound, load::Labels(graph), 0);
}

TEST(WorkingSet, MappedWeightsCountOnceTheyAreUsed) {
  const graph::MetaGraph graph = small_model();
  load::LoadRequest request = {
      .methods = {"llama_cpp_mmap"}, .gpu_layers = 1, .memory = plan::MemoryKind::unified};
  const std::uint64_t device = 41 * kRow, host = 80 * kRow;
  request.device_budget = device + 100;
  EXPECT_TRUE(row_of(graph, request).fits());  // nothing uses the weights yet
  request.activation_bytes = 100;
  const load::LoadRow row = row_of(graph, request);
  EXPECT_EQ(row.pass_reads.mapped, host);
  EXPECT_EQ(row.verdict.unified_over, host);
  EXPECT_EQ(row.reread, host);
  request.device_budget = device + 100 + host;
  EXPECT_TRUE(row_of(graph, request).fits());
  EXPECT_EQ(row_of(graph, request).reread, 0u);
  request.page_cache_budget = host - 1;
  EXPECT_EQ(row_of(graph, request).reread, host);
}

TEST(WorkingSet, ATokenReadsItsRowOfAnEmbedding) {
  graph::MetaGraph graph = small_model();
  graph.tensors[0].shape = {100'000, 32};
  graph.storages[0].bytes = 100'000 * kRow;
  const load::LoadRequest request = {.sequence = 3};
  EXPECT_EQ(load::WeightReads(graph, {.request = request}, false).of(graph::StorageId{0}), 3u * (64 << 10));
  EXPECT_EQ(load::WeightReads(graph, {.request = request}, false).of(graph::StorageId{1}), 10 * kRow);
  graph.tensors.pop_back();  // the embedding is the head as well
  EXPECT_EQ(load::WeightReads(graph, {.request = request}, false).of(graph::StorageId{0}), 100'000 * kRow);
}

TEST(WorkingSet, WeightsOnDiskAreReadAgain) {
  const graph::MetaGraph graph = small_model();
  load::LoadRequest request = {.methods = {"accelerate"}, .activation_bytes = 10};
  request.place = {{"name:blk*", load::Home::disk}};
  const load::LoadRow row = row_of(graph, request);
  EXPECT_EQ(row.pass_reads.disk, 30 * kRow);
  // the pass brings the largest of them to the device
  EXPECT_EQ(row.peaks[plan::index(plan::Space::device)].bytes, 91 * kRow + 20 * kRow + 10);
}

TEST(MappedPages, ThatMayStayMakeARange) {
  const graph::MetaGraph graph = testing::graph_of({100, 300});
  load::LoadRequest request = {.methods = {"mmap_assign"},
                               .memory = plan::MemoryKind::unified,
                               .device_budget = 500,
                               .mapped_pages = load::MappedPages::anonymous};
  load::LoadRow row = row_of(graph, request);
  EXPECT_EQ(row.verdict.unified_peak, 400u);
  EXPECT_EQ(row.verdict.unified_high, 800u);
  EXPECT_EQ(row.verdict.at_risk, 300u);
  EXPECT_TRUE(row.verdict.unified_fits);
  EXPECT_FALSE(row.fits());
  request.device_budget = 800;
  EXPECT_TRUE(row_of(graph, request).fits());
  request.device_budget = 500;
  request.mapped_pages = load::MappedPages::droppable;
  EXPECT_TRUE(row_of(graph, request).fits());
  // the data sheet of such a machine says so
  const load::LoadRequest spark = {.methods = {"mmap_assign"}, .target = "dgx-spark-128gb"};
  EXPECT_TRUE(load::bind_request(graph, spark, {}).memory.budget.pages_may_stay);
}

TEST(MallocRange, KeepsWhatIsBelowTheLargestThreshold) {
  const graph::MetaGraph graph = testing::graph_of({10 * kMiB, 40 * kMiB, 20 * kMiB});
  load::LoadRequest request = {.methods = {"per_tensor"}, .allocator = allocators::AllocatorModel::malloc};
  const load::LoadRow row = row_of(graph, request);
  ASSERT_TRUE(row.host_range);
  EXPECT_GE(row.host_range->high, 50 * kMiB);  // 10 kept when 40 are mapped
  EXPECT_LT(row.host_range->high, 51 * kMiB);
  EXPECT_EQ(row.host_range->low, row.peaks[plan::index(plan::Space::host)].bytes);
  request.host_budget = 45 * kMiB;
  EXPECT_GT(row_of(graph, request).verdict.at_risk, 0u);
}

// Weights of 9 MiB in two files.
graph::MetaGraph graph_in_files(std::size_t weights) {
  graph::MetaGraph graph = testing::graph_of(std::vector<std::uint64_t>(weights, 9 * kMiB));
  graph.format = "safetensors";
  const std::size_t half = weights / 2;
  graph.files = {{"1.safetensors", half * 9 * kMiB}, {"2.safetensors", (weights - half) * 9 * kMiB}};
  for (std::size_t i = 0; i < weights; ++i)
    graph.storages[i] = graph::plain_storage(graph::FileId{i < half ? 0u : 1u},
                                             (i < half ? i : i - half) * 9 * kMiB, 9 * kMiB);
  return graph;
}

// A tensor at a time goes through the host. What is freed is kept, as tests/allocators shows of the real
// malloc: from the second on, as the threshold has risen to the first.
TEST(DefaultHeap, IsARangeWhereALoadFreesTensors) {
  const graph::MetaGraph graph = graph_in_files(40);
  load::LoadRequest request = {.methods = {"meta_map_location"}};
  const load::LoadRow row = row_of(graph, request);
  EXPECT_EQ(row.peaks[plan::index(plan::Space::host)].bytes, 9 * kMiB);
  ASSERT_TRUE(row.host_range);
  EXPECT_GT(row.host_range->high, 39 * 9 * kMiB);
  EXPECT_LT(row.host_range->high, 41 * 9 * kMiB);
  EXPECT_GE(3 * row.host_range->low, 2 * row.host_range->high - 3);  // at most 1.5 times wide
  request.host_budget = 300 * kMiB;                                  // enough for the lower end
  EXPECT_GT(row_of(graph, request).verdict.at_risk, 40 * kMiB);
  EXPECT_FALSE(row_of(graph, request).fits());
  request.host_budget = 100 * kMiB;
  EXPECT_EQ(row_of(graph, request).verdict.at_risk, 0u);
  EXPECT_EQ(row_of(graph, request).verdict.host_over, row.host_range->low - 100 * kMiB);
  request.host_budget = 400 * kMiB;
  EXPECT_TRUE(row_of(graph, request).fits());
  request.host_budget = 100 * kMiB;
  request.allocator = allocators::AllocatorModel::exact;
  EXPECT_TRUE(row_of(graph, request).fits());
  EXPECT_FALSE(row_of(graph, request).host_range);
}

TEST(DefaultHeap, IsOneFigureWhereNothingIsFreedBeforeThePeak) {
  const graph::MetaGraph graph = graph_in_files(40);
  for (const char* method : {"to_device", "meta_assign", "mmap_assign", "accelerate", "transformers_v5"})
    EXPECT_FALSE(row_of(graph, {.methods = {method}}).host_range) << method;
  // tensors of 32 MiB and more are mappings, which go back
  const graph::MetaGraph large = testing::graph_of(std::vector<std::uint64_t>(12, 40 * kMiB));
  EXPECT_FALSE(row_of(large, {.methods = {"meta_map_location"}}).host_range);
}

// Measured with 3,000 tensors: 31 MiB of objects on the host and 153 MiB of pages, both said to be 0 before.
TEST(DefaultHeap, CountsObjectsAndTouchedPagesOfManyTensors) {
  graph::MetaGraph graph = graph_in_files(2);
  graph.files = {{"1.safetensors", 3000 * 128 * 1024}};
  graph.storages.clear();
  graph.tensors.clear();
  for (std::uint32_t i = 0; i < 3000; ++i) {
    graph.storages.push_back(
        graph::plain_storage(graph::FileId{0}, i * std::uint64_t{128} * 1024, 128 * 1024));
    graph.tensors.push_back(
        {"t" + std::to_string(i), graph::DType::u8, {128 * 1024}, {}, graph::StorageId{i}, 0});
  }
  const load::LoadRow row =
      row_of(graph, {.methods = {"transformers_v5"}, .place = {{"*", load::Home::host}}});
  ASSERT_TRUE(row.host_range);
  EXPECT_NEAR(static_cast<double>(row.host_range->high) / kMiB, 31, 1);
  EXPECT_EQ(row.host_range->low, row.host_range->high);
  ASSERT_TRUE(row.pages_of_views);
  EXPECT_EQ(*row.pages_of_views, 3000u * 64 * 1024);  // a window around each
}

// What RLIMIT_DATA lets through: measured within 3 % of these sums on both sides.
TEST(CommitCharge, CountsFilesThatAreMappedWritable) {
  const graph::MetaGraph graph = graph_in_files(40);
  const std::uint64_t file = 180 * kMiB, objects = kMiB, stack = 8 * kMiB;
  const auto committed = [&](const char* method, std::vector<load::PlaceRule> place,
                             allocators::AllocatorModel heap = allocators::AllocatorModel::exact) {
    return *row_of(graph, {.methods = {method}, .place = std::move(place), .allocator = heap}).committed;
  };
  const std::vector<load::PlaceRule> on_host = {{"*", load::Home::host}};
  EXPECT_NEAR(static_cast<double>(committed("mmap_assign", {})), 2. * file, 2. * objects);
  EXPECT_NEAR(static_cast<double>(committed("accelerate", {})), 1. * file, 2. * objects);
  EXPECT_NEAR(static_cast<double>(committed("accelerate", on_host)), 2. * file, 2. * objects);
  EXPECT_NEAR(static_cast<double>(committed("mmap_copy", {})), 3. * file, 2. * objects);
  // a model that was built empty leaves a heap that nothing has touched, and is promised
  EXPECT_GT(committed("accelerate", {}, allocators::AllocatorModel::heap), 2 * file);
  EXPECT_GE(committed("transformers_v5", {}), 2 * file);
  EXPECT_LE(committed("transformers_v5", {}), 2 * file + objects + 4 * stack);
  EXPECT_FALSE(row_of(graph, {.methods = {"staged_ring"}}).committed);
  load::LoadRequest request = {.methods = {"mmap_assign"}, .commit_limit = 2 * file - kMiB};
  EXPECT_GT(row_of(graph, request).verdict.committed_over, 0u);
  EXPECT_FALSE(row_of(graph, request).fits());
  request.commit_limit = 2 * file + 2 * objects;
  EXPECT_TRUE(row_of(graph, request).fits());
  request.methods = {"staged_ring"};
  EXPECT_THROW(row_of(graph, request), Error);
}

TEST(GgmlCpu, RepacksMatricesWithAKernel) {
  graph::MetaGraph graph = small_model();
  for (graph::Tensor& tensor : graph.tensors) tensor.dtype = graph::DType::q4_0;
  graph.tensors[2].dtype = graph::DType::q8_0;
  using Flags = std::vector<bool>;
  graph.tensors[1].shape = {8, 32};
  graph.tensors[2].shape = {16, 32};
  graph.tensors[4].shape = {12, 32};
  EXPECT_EQ(load::repacked_storages(graph, std::nullopt), Flags(5, false));
  EXPECT_EQ(load::repacked_storages(graph, load::CpuRepack::x86), (Flags{false, true, false, false, false}));
  EXPECT_EQ(load::repacked_storages(graph, load::CpuRepack::arm), (Flags{false, true, true, false, true}));
  EXPECT_EQ(load::repacked_head(graph, load::CpuRepack::x86), 0u);
  graph.tensors.pop_back();
  graph.tensors[0].shape = {8, 32};
  EXPECT_EQ(load::repacked_head(graph, load::CpuRepack::x86), graph.storages[0].bytes);
}

TEST(GgmlCpu, AVocabularyCountsByItsTokens) {
  graph::MetaGraph graph = small_model();
  EXPECT_EQ(load::vocabulary_bytes(graph), 0u);
  graph.metadata.push_back({"tokenizer.ggml.tokens",
                            graph::MetaArray{graph::MetaType::string, false, graph::FileId{0}, 1000, 0, 0}});
  graph.metadata.push_back({"tokenizer.ggml.merges",
                            graph::MetaArray{graph::MetaType::string, false, graph::FileId{0}, 100, 0, 0}});
  EXPECT_EQ(load::vocabulary_bytes(graph), 1000u * 243 + 100u * 235);
  const load::LoadRow row = row_of(graph, {.methods = {"llama_cpp_mmap"}});
  EXPECT_EQ(row.peaks[plan::index(plan::Space::host)].bytes, load::vocabulary_bytes(graph));
}

TEST(SharedEmbedding, NeedsTheModelToTieIt) {
  graph::MetaGraph graph = testing::model_of({{"model.embed_tokens.weight", 4}, {"model.layers.0.a", 1}});
  EXPECT_EQ(load::shared_embedding(graph), graph::StorageId{0});
  graph.metadata.push_back(
      {std::string(graph::kConfigKey), std::string(R"({"tie_word_embeddings": false})")});
  EXPECT_EQ(load::shared_embedding(graph), std::nullopt);
  graph.metadata.back().value = std::string(R"({"model_type": "bert"})");
  EXPECT_EQ(load::shared_embedding(graph), std::nullopt);
}

}  // namespace

}  // namespace loadline::tests
