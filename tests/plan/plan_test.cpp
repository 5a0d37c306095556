// Plans: closed forms of every method, the interpreter against brute force, machines against each other.
#include "core/base/error.h"
#include "core/load/answer/projection.h"
#include "core/load/order/optimal_order.h"
#include "core/load/request/load_options.h"
#include "core/plan/block_contents.h"
#include "core/plan/dry_machine.h"
#include "core/plan/host_machine.h"
#include "tests/support/builders.h"
#include "tests/support/plan_models.h"
#include "tests/support/simulation.h"

#include <algorithm>
#include <random>
#include <set>

#include <gtest/gtest.h>

namespace loadline::tests {
namespace {

using testing::graph_of;

// Peaks as the formulas of the methods' sources give them, over weights in load order.
struct Law {
  std::uint64_t host, page_cache, staging, device;
};

// Everything at once if the limit is above the sum; else whole tensors packed into requests, of which one
// more is alive than the limit holds.
std::uint64_t runai_host(const std::vector<std::uint64_t>& w, std::uint64_t sum, std::uint64_t most,
                         std::uint64_t limit) {
  if (limit > sum) return sum;
  const std::uint64_t each = std::max(most, limit / 18);
  const std::size_t alive = 1 + std::clamp<std::uint64_t>(limit / each, 1, 18);
  std::vector<std::uint64_t> requests;
  for (const std::uint64_t bytes : w)
    if (!requests.empty() && requests.back() + bytes <= each)
      requests.back() += bytes;
    else
      requests.push_back(bytes);
  std::uint64_t peak = 0;
  for (std::size_t i = 0; i < requests.size(); ++i) {
    std::uint64_t held = 0;
    for (std::size_t k = i; k < std::min(i + alive, requests.size()); ++k) held += requests[k];
    peak = std::max(peak, held);
  }
  return peak;
}

std::map<std::string_view, Law> laws(const std::vector<std::uint64_t>& w, const load::BoundRequest& options) {
  std::uint64_t sum = 0, most = 0, with_turn = 0;  // max_i(sum_{j<i} w_j + 2 w_i)
  std::uint64_t with_last = 0, last = 0;           // max_i(sum_{j<=i} w_j + max(w_i, w_{i-1}))
  for (const std::uint64_t bytes : w) {
    with_turn = std::max(with_turn, sum + 2 * bytes);
    with_last = std::max(with_last, sum + bytes + std::max(bytes, std::exchange(last, bytes)));
    sum += bytes, most = std::max(most, bytes);
  }
  const std::uint64_t q = options.request.activation_bytes,
                      ring = options.request.staging_bytes / options.request.slots * options.request.slots;
  const std::uint64_t slot = options.request.staging_bytes / options.request.slots;
  const std::uint64_t slots = options.request.slots;
  const std::uint64_t twice = std::max(2 * sum, sum + q);
  return {{"to_device", {2 * sum, 0, 0, sum + q}},
          {"shard_by_shard", {2 * sum, 0, 0, sum + q}},  // of a single file, as all storages here are
          {"meta_assign", {sum, 0, 0, sum + q}},
          {"safetensors_bytes", {2 * sum, 0, 0, sum + q}},
          {"meta_map_location", {most, 0, 0, twice}},
          {"mmap_copy", {sum, sum, 0, sum + q}},
          {"mmap_state_dict", {sum, sum, 0, twice}},
          {"accelerate", {0, sum, 0, sum + q}},
          {"transformers_v4_early", {sum, sum, 0, sum + q}},
          {"transformers_v4", {0, sum, 0, sum + q}},
          {"transformers_v5", {0, sum, 0, sum + q}},
          {"transformers_v5_to", {0, sum, 0, sum + q}},
          {"fused_in_place", {most, 0, 0, sum + q}},
          {"engine_repack", {0, sum, 0, sum + q}},
          {"engine_repack_all", {0, sum, 0, sum + q}},
          {"cast_on_host", {sum, 0, 0, sum + q}},
          {"cast_on_device", {most, 0, 0, std::max(with_turn, sum + q)}},
          {"layer_streaming", {sum, 0, 0, sum + q}},  // no layers: all is one unit
          {"layer_streaming_prefetch", {sum, 0, 0, sum + q}},
          {"direct", {0, 0, 0, sum + q}},
          {"host_import", {0, 0, most, sum + q}},
          {"fastsafetensors", {0, 0, ring, sum + q}},
          {"fastsafetensors_copy", {0, 0, ring, twice}},
          {"fastsafetensors_all", {0, 0, ring, twice}},
          {"runai", {runai_host(w, sum, most, options.request.runai_buffer), 0, 0, sum + q}},
          {"llama_cpp_ring", {0, 0, 4 << 20, sum + q}},
          {"llama_cpp_direct", {0, 0, 256 << 20, sum + q}},
          {"llama_cpp_mmap", {0, sum, 0, sum + q}},
          {"pinned_pool", {0, 0, (sum + slot - 1) / slot * slot, sum + q}},
          {"state_dict", {sum, 0, 0, twice}},
          {"sequential", {sum, 0, 0, std::max(sum + most, sum + q)}},
          {"mmap_assign", {0, sum, 0, sum + q}},
          {"per_tensor", {most, 0, 0, sum + q}},
          {"staged_ring", {0, 0, std::min(ring, (sum / slots / 4096 + 1) * 4096 * slots), sum + q}},
          {"onnxruntime", {std::max(sum + most, sum + q), 0, 0, 0}},
          {"onnxruntime_unpacked", {std::max(sum + most, sum + q), 0, 0, 0}},
          {"onnxruntime_bytes", {std::max(3 * sum, 2 * sum + q), 0, 0, 0}},
          {"openvino", {std::max(2 * sum, sum + q), 0, 0, 0}},
          {"executorch_mapped", {q, sum, 0, 0}},
          {"executorch_bytes", {sum + q, 0, 0, 0}},
          {"executorch_xnnpack", {q, sum, 0, 0}},
          {"numpy_safetensors", {sum + q, sum, 0, 0}},
          {"transformers_gguf", {std::max(with_last, sum + q), sum, 0, 0}},
          {"peft_attach", {q, q > 0 ? sum : 0, 0, 0}},
          {"peft_merge", {q, q > 0 ? sum : 0, 0, 0}},
          {"litert", {sum + q, sum, 0, 0}},
          {"litert_plain", {q, q > 0 ? sum : 0, 0, 0}},
          {"torch_export", {sum + q, 0, 0, 0}},
          {"numpy_npz", {sum + q, 0, 0, 0}},
          {"executorch_before", {sum, 0, most, sum + q}},
          {"executorch_after", {sum, 0, most, sum + q}}};
}

// ExecuTorch's unified peaks, term by term: V + Q + max_i(W - sum_{j<i} w_j + w_i) before, and
// max(max_i(W + sum_{j<i}(v_j - w_j) + w_i + v_i), V + Q) with v = w after.
std::uint64_t executorch_before_law(const std::vector<std::uint64_t>& w, std::uint64_t q) {
  std::uint64_t sum = 0, most = 0, seen = 0;
  for (const std::uint64_t bytes : w) sum += bytes;
  for (const std::uint64_t bytes : w) most = std::max(most, sum - seen + bytes), seen += bytes;
  return sum + q + most;
}
std::uint64_t executorch_after_law(const std::vector<std::uint64_t>& w, std::uint64_t q) {
  std::uint64_t sum = 0, most = 0;
  for (const std::uint64_t bytes : w) sum += bytes, most = std::max(most, bytes);
  return std::max(sum + 2 * most, sum + q);
}

std::vector<std::uint64_t> random_sizes(std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<std::uint64_t> sizes(1 + random() % 20);
  for (std::uint64_t& bytes : sizes) bytes = 1 + random() % (random() % 4 == 0 ? 300'000 : 5'000);
  return sizes;
}

TEST(Methods, PeaksEqualTheirClosedForms) {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    const graph::MetaGraph graph = graph_of(random_sizes(seed));
    const load::BoundRequest options = {.request = {.staging_bytes = 16384 + 4096 * (seed % 9),
                                                    .slots = static_cast<std::uint32_t>(1 + seed % 4),
                                                    .runai_buffer = seed % 5 == 0 ? 0 : seed * 20'000,
                                                    .activation_bytes = seed % 3 == 0 ? 0 : seed * 10'000}};
    for (const load::Order& order : load::orders()) {
      for (const load::Method& method : load::methods()) {
        SCOPED_TRACE(std::string(method.id) + " " + std::string(order.id) + " seed " + std::to_string(seed));
        const load::StorageOrder storages = load::make_order(graph, order, method, options);
        load::StorageOrder visited = storages;
        if (method.id == "transformers_gguf") std::ranges::sort(visited);  // its reader follows the file
        std::vector<std::uint64_t> w;
        for (const graph::StorageId id : visited) w.push_back(graph.storage(id).bytes);
        const auto expected = laws(w, options);
        ASSERT_EQ(expected.size(), load::methods().size());
        const plan::Plan plan = load::make_plan(graph, method, storages, options);
        ASSERT_EQ(plan::check_plan(plan, graph), std::nullopt);
        const plan::Timeline timeline = load::project(graph, method, order, options).timeline;
        const Law& law = expected.at(method.id);
        EXPECT_EQ(timeline.peaks[plan::index(plan::Space::host)].bytes, law.host);
        EXPECT_EQ(timeline.peaks[plan::index(plan::Space::page_cache)].bytes, law.page_cache);
        EXPECT_EQ(timeline.peaks[plan::index(plan::Space::staging)].bytes, law.staging);
        EXPECT_EQ(timeline.peaks[plan::index(plan::Space::device)].bytes, law.device);
        if (method.traits.host_only) continue;
        // when all is done the weights and the activations are on the device and nothing else is
        EXPECT_EQ(timeline.final_bytes[plan::index(plan::Space::device)],
                  method.traits.streams ? options.request.activation_bytes
                                        : load::device_lower_bound(graph, options));
        EXPECT_EQ(timeline.final_bytes[plan::index(plan::Space::host)] +
                      timeline.final_bytes[plan::index(plan::Space::page_cache)] +
                      timeline.final_bytes[plan::index(plan::Space::staging)],
                  0u);
        if (method.id == "executorch_before")
          EXPECT_EQ(timeline.unified.bytes, executorch_before_law(w, options.request.activation_bytes));
        if (method.id == "executorch_after")
          EXPECT_EQ(timeline.unified.bytes, executorch_after_law(w, options.request.activation_bytes));
      }
    }
  }
}

// S*, the largest file, is what a shard at a time leaves of W.
TEST(Methods, FileByFileNeedsTheLargestFile) {
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    graph::MetaGraph graph = graph_of(random_sizes(seed));
    std::vector<std::uint64_t> files(1 + seed % 5);
    for (std::size_t i = 0; i < graph.storages.size(); ++i) {
      const std::size_t file = i * files.size() / graph.storages.size();
      graph.storages[i].file = graph::FileId{static_cast<std::uint32_t>(file)};
      graph.storages[i].offset = files[file];
      files[file] += graph.storages[i].bytes;
    }
    graph.files.resize(files.size());
    const std::uint64_t largest = *std::max_element(files.begin(), files.end());
    const auto peaks = [&](const char* method) {
      return load::project(graph, load::find_method(method), load::find_order("file"), {}).timeline.peaks;
    };
    EXPECT_EQ(peaks("accelerate")[plan::index(plan::Space::page_cache)].bytes, largest);
    EXPECT_EQ(peaks("accelerate")[plan::index(plan::Space::device)].bytes, graph::storage_bytes(graph));
    EXPECT_EQ(peaks("fastsafetensors_copy")[plan::index(plan::Space::device)].bytes,
              graph::storage_bytes(graph) + largest);
    EXPECT_EQ(peaks("fastsafetensors")[plan::index(plan::Space::device)].bytes, graph::storage_bytes(graph));
  }
}

TEST(Orders, HeadsComeFirstAndTheRestAsItLies) {
  graph::MetaGraph graph = graph_of({4, 4, 4, 4, 4});
  const char* names[] = {"model.layers.0.w", "model.embed_tokens.weight", "model.layers.1.w",
                         "model.norm.weight", "lm_head.weight"};
  for (std::size_t i = 0; i < graph.tensors.size(); ++i) graph.tensors[i].name = graph::Name(names[i]);
  std::vector<std::string> order;
  for (const graph::StorageId id : load::find_order("heads_first").make(graph))
    order.emplace_back(std::string_view(graph.tensors[graph::index(id)].name));
  EXPECT_EQ(order, (std::vector<std::string>{names[4], names[1], names[0], names[2], names[3]}));
}

TEST(Methods, EmptyAndZeroSizedModelsLoad) {
  for (const auto& sizes : {std::vector<std::uint64_t>{}, {0, 0}, {0, 7, 0}}) {
    const graph::MetaGraph graph = graph_of(sizes);
    for (const load::Method& method : load::methods()) {
      const load::Projection projection = load::project(graph, method, load::find_order("file"), {});
      EXPECT_EQ(plan::check_plan(projection.plan, graph), std::nullopt) << method.id;
      EXPECT_EQ(projection.timeline.final_bytes[plan::index(plan::Space::device)],
                method.traits.streams || method.traits.host_only ? 0 : graph::storage_bytes(graph))
          << method.id;
    }
  }
}

TEST(Methods, AbsurdRingsAreRefused) {
  load::LoadRequest request;
  EXPECT_THROW(load::set_load_option(request, "slots", "0"), Error);
  EXPECT_THROW(load::set_load_option(request, "slots", "5000"), Error);
  EXPECT_THROW(load::set_load_option(request, "staging", "2TiB"), Error);
  EXPECT_EQ(request, load::LoadRequest());
  EXPECT_THROW(load::check_request({.staging_bytes = 4096, .slots = 2}), Error);
  EXPECT_THROW(load::find_method("no_such"), Error);
  EXPECT_THROW(load::find_order("no_such"), Error);
}

TEST(Methods, SizesThatNoMemoryHoldsAreRefused) {
  const graph::MetaGraph huge = graph_of({std::uint64_t{1} << 62, std::uint64_t{1} << 61});
  EXPECT_THROW(load::project(huge, load::find_method("state_dict"), load::find_order("file"), {}), Error);
  EXPECT_THROW(load::project(huge, load::find_method("staged_ring"), load::find_order("file"), {}), Error);
  const load::BoundRequest absurd = {
      .request = {.staging_bytes = 64 << 20, .slots = 4, .activation_bytes = ~std::uint64_t{0}}};
  EXPECT_THROW(
      load::project(graph_of({1}), load::find_method("per_tensor"), load::find_order("file"), absurd), Error);
}

TEST(Projection, EncodedStoragesCannotBeMapped) {
  graph::MetaGraph graph = graph_of({64, 32, 0});
  EXPECT_EQ(load::mapping_refusal(graph), "");
  graph.storages[2].encoding = graph::Encoding::deflate;  // nothing of it would be mapped
  EXPECT_EQ(load::mapping_refusal(graph), "");
  graph.storages[0].encoding = graph::Encoding::deflate;
  graph.storages[1].encoding = graph::Encoding::byte_swapped;
  EXPECT_EQ(
      load::mapping_refusal(graph),
      "the files cannot be mapped: 2 of 3 storages (96 B) not stored as plain bytes: deflate, big-endian");
}

TEST(Orders, ArePermutationsOfUsedStorages) {
  graph::MetaGraph graph = graph_of(random_sizes(5));
  graph.storages.push_back(graph::shapes_only_storage(99));  // no tensor uses it
  for (const load::Order& order : load::orders()) {
    const load::StorageOrder visited =
        load::make_order(graph, order, load::find_method("executorch_before"), {});
    EXPECT_EQ(std::set<graph::StorageId>(visited.begin(), visited.end()).size(), graph.tensors.size())
        << order.id;
    EXPECT_EQ(visited.size(), graph.tensors.size()) << order.id;
  }
}

TEST(Orders, ForwardFollowsTheModel) {
  graph::MetaGraph graph;
  const char* const names[] = {"lm_head.weight",        "model.layers.10.mlp.w", "model.layers.2.mlp.w",
                               "model.norm.weight",     "rotary.table",          "model.embed_tokens.weight",
                               "model.layers.2.attn.w", "encoder.block.3.w"};
  for (std::uint32_t i = 0; i < std::size(names); ++i) {
    graph.storages.push_back(graph::shapes_only_storage(1));
    graph.tensors.push_back({names[i], graph::DType::u8, {1}, {}, graph::StorageId{i}, 0});
  }
  std::vector<std::string> visited;
  for (const graph::StorageId id : load::find_order("forward").make(graph))
    visited.push_back(graph.tensors[graph::index(id)].name);
  EXPECT_EQ(visited, (std::vector<std::string>{"model.embed_tokens.weight", "encoder.block.3.w",
                                               "model.layers.2.mlp.w", "model.layers.2.attn.w",
                                               "model.layers.10.mlp.w", "rotary.table", "model.norm.weight",
                                               "lm_head.weight"}));
}

// What a run says that is given the first step alone and then the others.
std::optional<std::string> streamed_problem(const plan::Plan& plan, const graph::MetaGraph& graph) {
  Progress progress;
  plan::DryMachine machine;
  plan::StreamedRun run("load", graph, machine, {}, progress);
  const std::span<const plan::Step> steps = plan.steps;
  try {
    run.take(plan.blocks, steps.first(1), 0);
    run.take(plan.blocks, steps.subspan(1), 1);
  } catch (const Error& error) {
    return error.what();
  }
  return std::nullopt;
}

TEST(CheckPlan, FindsEveryViolation) {
  const graph::MetaGraph graph = graph_of({100, 50});
  const auto plan_with = [&](auto build) {
    plan::Plan plan;
    const plan::BlockId a = plan::alloc(plan, {.bytes = 100,
                                               .space = plan::Space::host,
                                               .use = plan::BlockUse::storage,
                                               .storage = graph::StorageId{0}});
    build(plan, a);
    const auto problem = plan::check_plan(plan, graph);
    EXPECT_EQ(streamed_problem(plan, graph), problem ? std::optional("load: " + *problem) : std::nullopt);
    return problem;
  };
  EXPECT_EQ(plan_with([](plan::Plan&, plan::BlockId) {}), std::nullopt);
  EXPECT_TRUE(plan_with([](plan::Plan& p, plan::BlockId a) { plan::free(p, a), plan::free(p, a); }));
  EXPECT_TRUE(plan_with([](plan::Plan& p, plan::BlockId a) {
    plan::free(p, a), plan::copy(p, a, 0, graph::StorageId{0}, 0, 1);
  }));
  EXPECT_TRUE(plan_with(
      [](plan::Plan& p, plan::BlockId a) { p.steps.push_back({.verb = plan::Verb::alloc, .block = a}); }));
  EXPECT_TRUE(
      plan_with([](plan::Plan& p, plan::BlockId a) { plan::copy(p, a, 51, graph::StorageId{1}, 0, 50); }));
  EXPECT_TRUE(
      plan_with([](plan::Plan& p, plan::BlockId a) { plan::copy(p, a, 0, graph::StorageId{1}, 1, 50); }));
  EXPECT_TRUE(plan_with([](plan::Plan& p, plan::BlockId a) {
    plan::copy(p, a, ~std::uint64_t{0}, graph::StorageId{1}, 0, 2);
  }));
  EXPECT_TRUE(
      plan_with([](plan::Plan& p, plan::BlockId a) { plan::copy(p, a, 0, graph::StorageId{7}, 0, 1); }));
  EXPECT_TRUE(plan_with([](plan::Plan& p, plan::BlockId a) { plan::copy(p, a, 0, a, 50, 10); }));
  EXPECT_TRUE(plan_with([](plan::Plan& p, plan::BlockId a) { plan::copy(p, a, 0, plan::BlockId{9}, 0, 1); }));
  EXPECT_TRUE(plan_with([](plan::Plan& p, plan::BlockId) { plan::free(p, plan::BlockId{9}); }));
  EXPECT_TRUE(plan_with(
      [](plan::Plan& p, plan::BlockId) { plan::alloc(p, {.bytes = 10, .space = plan::Space::page_cache}); }));
  EXPECT_TRUE(plan_with([](plan::Plan& p, plan::BlockId) {
    plan::alloc(p, {.bytes = 101,
                    .space = plan::Space::page_cache,
                    .use = plan::BlockUse::storage,
                    .storage = graph::StorageId{0}});
  }));
  EXPECT_TRUE(plan_with([](plan::Plan& p, plan::BlockId a) {
    plan::copy(p,
               plan::alloc(p, {.bytes = 50,
                               .space = plan::Space::page_cache,
                               .use = plan::BlockUse::storage,
                               .storage = graph::StorageId{1}}),
               0, a, 0, 1);
  }));
  EXPECT_TRUE(plan_with([](plan::Plan& p, plan::BlockId) {
    plan::alloc(p, {.bytes = ~std::uint64_t{0} - 50, .space = plan::Space::host});
  }));
}

// The peak by definition: for every step, add up every block whose life contains it.
std::uint64_t brute_force_peak(const plan::Plan& plan, std::optional<plan::Space> space) {
  std::uint64_t peak = 0;
  for (std::size_t at = 0; at < plan.steps.size(); ++at) {
    std::uint64_t sum = 0;
    for (std::size_t b = 0; b < plan.blocks.size(); ++b) {
      bool alive = false;
      for (std::size_t s = 0; s <= at; ++s)
        if (graph::index(plan.steps[s].block) == b && plan.steps[s].verb != plan::Verb::copy)
          alive = plan.steps[s].verb == plan::Verb::alloc;
      if (alive && (!space || plan.blocks[b].space == *space)) sum += plan.blocks[b].bytes;
    }
    peak = std::max(peak, sum);
  }
  return peak;
}

TEST(Run, AgreesWithBruteForceOnRandomPlans) {
  const graph::MetaGraph graph = graph_of({1000, 1, 77'777, 4096});
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    const plan::Plan plan = testing::random_plan(graph, seed, 90);
    ASSERT_EQ(plan::check_plan(plan, graph), std::nullopt);
    plan::DryMachine machine;
    const plan::Timeline timeline = plan::run(plan, machine);
    for (std::size_t i = 0; i < plan::kSpaceCount; ++i) {
      const plan::Peak& peak = timeline.peaks[i];
      EXPECT_EQ(peak.bytes, brute_force_peak(plan, static_cast<plan::Space>(i)));
      std::uint64_t alive = 0;
      for (const plan::BlockId id : plan::alive_at(timeline, plan, peak.step, 1u << i))
        alive += plan.block(id).bytes;
      EXPECT_EQ(alive, peak.bytes);
      EXPECT_EQ(plan::usage_at(timeline, peak.step, 1u << i), peak.bytes);
    }
    EXPECT_EQ(timeline.unified.bytes, brute_force_peak(plan, std::nullopt));
    for (const plan::UsagePoint& point : timeline.usage) EXPECT_LE(point.seconds, timeline.seconds);
  }
}

TEST(Run, WhatIsAliveComesLargestFirst) {
  for (const std::uint64_t sizes : {3u, 512u, 513u, 5000u}) {
    plan::Plan plan;
    std::vector<std::pair<std::uint64_t, plan::BlockId>> expected;
    for (std::uint64_t i = 0; i < 6000; ++i) {
      const std::uint64_t bytes = 1 + i * 7919 % sizes;
      const plan::BlockId id =
          plan::alloc(plan, {.bytes = bytes, .space = i % 3 == 0 ? plan::Space::host : plan::Space::device});
      if (i % 3 != 0) expected.emplace_back(~bytes, id);
    }
    std::sort(expected.begin(), expected.end());
    plan::DryMachine machine;
    const plan::Timeline timeline = plan::run(plan, machine);
    const std::vector<plan::BlockId> alive =
        plan::alive_at(timeline, plan, timeline.peaks[plan::index(plan::Space::device)].step,
                       plan::space_bit(plan::Space::device));
    ASSERT_EQ(alive.size(), expected.size());
    for (std::size_t i = 0; i < expected.size(); ++i) ASSERT_EQ(alive[i], expected[i].second);
  }
}

// Reads into mapped device memory hide the shorter of disk and link; a ring of one slot hides nothing.
TEST(DryMachine, CountsTheMemoryThatTheSystemGives) {
  plan::CostModel costs;
  costs.host_pages = 1e9;
  costs.staging_pages = 2e9;
  costs.device_pages = 4e9;
  const auto seconds = [&](std::initializer_list<plan::Block> blocks, bool turns) {
    plan::Plan plan;
    for (const plan::Block& block : blocks) {
      const plan::BlockId id = plan::alloc(plan, block);
      if (turns) plan::free(plan, id);
    }
    plan::DryMachine machine(costs);
    return plan::run(plan, machine).seconds;
  };
  const auto block = [](plan::Space space, std::optional<graph::StorageId> storage = {}) {
    return plan::Block{.bytes = 1'000'000'000, .space = space, .use = {}, .storage = storage, .extra = {}};
  };
  const plan::Block device = block(plan::Space::device), staging = block(plan::Space::staging),
                    value = block(plan::Space::host);
  const plan::Block weights = block(plan::Space::host, graph::StorageId{0});
  EXPECT_DOUBLE_EQ(seconds({device, device}, false), 0.5);
  EXPECT_DOUBLE_EQ(seconds({device, device}, true), 0.25);  // the pool keeps it
  EXPECT_DOUBLE_EQ(seconds({staging, staging}, true), 0.5);
  EXPECT_DOUBLE_EQ(seconds({weights, weights}, true), 2);  // given and taken back each time
  EXPECT_DOUBLE_EQ(seconds({value, value, value}, true), 1);
  EXPECT_DOUBLE_EQ(seconds({block(plan::Space::page_cache)}, false), 0);
  costs = {};
  EXPECT_DOUBLE_EQ(seconds({device, staging, weights, value}, false), 0);
}

TEST(DryMachine, CachedFilesComeAtTheRateOfMemory) {
  const plan::CostModel costs;
  EXPECT_EQ(plan::with_cached_files(costs, 0).disk_read, costs.disk_read);
  EXPECT_EQ(plan::with_cached_files(costs, 0).seek_seconds, costs.seek_seconds);
  EXPECT_DOUBLE_EQ(plan::with_cached_files(costs, 1).disk_read, costs.memory_copy);
  EXPECT_EQ(plan::with_cached_files(costs, 1).seek_seconds, 0);
  const double half = 1 / plan::with_cached_files(costs, 0.5).disk_read;
  EXPECT_DOUBLE_EQ(half, 0.5 / costs.disk_read + 0.5 / costs.memory_copy);
}

TEST(DryMachine, DirectReadsTakeNoLongerThanARingWithoutOverlap) {
  for (const auto& [disk, link] : {std::pair(3e9, 20e9), std::pair(20e9, 3e9), std::pair(5e9, 5e9)}) {
    const graph::MetaGraph graph = graph_of({3'000'000, 500, 70'000'000});
    load::BoundRequest options = {.request = {.slots = 1}};
    options.costs.disk_read = disk;
    options.costs.link = link;
    const auto seconds = [&](const char* method) {
      return load::project(graph, load::find_method(method), load::find_order("file"), options)
          .timeline.seconds;
    };
    const auto bytes = static_cast<double>(graph::storage_bytes(graph));
    EXPECT_NEAR(seconds("direct"), bytes / std::min(disk, link), 1e-9);
    EXPECT_NEAR(seconds("staged_ring"), bytes / disk + bytes / link, 1e-9);
    EXPECT_LE(seconds("direct"), seconds("staged_ring"));
  }
}

TEST(Run, StopsBetweenSteps) {
  const graph::MetaGraph graph = graph_of({1000});
  std::stop_source source;
  source.request_stop();
  Progress progress(source.get_token());
  plan::DryMachine machine;
  EXPECT_THROW(plan::run(testing::random_plan(graph, 1, 10), machine, progress), Error);
}

TEST(DryMachine, TheRingOverlapsReadingAndTransfer) {
  const graph::MetaGraph graph = graph_of({64 << 20, 64 << 20});
  const plan::CostModel costs = {
      .disk_read = 1e9, .memory_copy = 1e9, .link = 1e9, .pageable_link = 1e9, .device_copy = 1e9};
  const auto seconds = [&](std::uint32_t slots) {
    const load::BoundRequest options = {.request = {.staging_bytes = slots * (4ull << 20), .slots = slots}};
    plan::DryMachine machine(costs);
    return plan::run(load::make_plan(graph, load::find_method("staged_ring"),
                                     load::find_order("file").make(graph), options),
                     machine)
        .seconds;
  };
  EXPECT_NEAR(seconds(1), 2 * 0.1342, 0.002);       // one slot: read, then transfer
  EXPECT_NEAR(seconds(4), 0.1342 + 0.0042, 0.002);  // four: the transfer hides behind the reads
}

// Sizes that are no multiple of anything: every copy out of the ring begins on a multiple of 64 bytes, in its
// slot and in its tensor.
TEST(Ring, CopiesAreAlignedAfterAnyTensor) {
  const graph::MetaGraph graph =
      graph_of({1, 30'001, 63, 64, 9'999, 2, 50'000, 4096, 7, 4990, 100, 9990, 9990});
  for (const std::uint64_t staging : {4 * 4096u, 4 * 5000u, 4 * 9'999u}) {
    const load::BoundRequest inputs = {.request = {.staging_bytes = staging, .slots = 4}};
    const plan::Plan plan = load::make_plan(graph, load::find_method("staged_ring"),
                                            load::find_order("file").make(graph), inputs);
    std::uint64_t bytes = 0;
    for (const plan::Step& step : plan.steps) {
      if (step.verb != plan::Verb::copy || plan.block(step.block).space != plan::Space::device) continue;
      EXPECT_EQ(step.from_offset % 64, 0u) << staging;
      EXPECT_EQ(step.offset % 64, 0u) << staging;
      bytes += step.bytes;
    }
    EXPECT_EQ(bytes, graph::storage_bytes(graph)) << staging;
    EXPECT_EQ(plan::check_plan(plan, graph), std::nullopt);
  }
}

TEST(HostMachine, EveryMethodLeavesTheFilesBytesOnTheDevice) {
  const testing::TemporaryFolder folder;
  const graph::MetaGraphPtr graph = testing::byte_model(folder, {5000, 1, 0, 70'000, 4096, 12'345});
  const io::StorageReader reader(graph);
  const load::BoundRequest options = {
      .request = {.staging_bytes = 4 * 4096, .slots = 4, .activation_bytes = 3000}};
  for (const load::Order& order : load::orders())
    for (const load::Method& method : load::methods()) {
      SCOPED_TRACE(std::string(method.id) + " " + std::string(order.id));
      const load::Projection projection = load::project(*graph, method, order, options);
      plan::HostMachine machine(reader);
      const plan::Timeline measured = plan::run(projection.plan, machine);
      for (std::size_t i = 0; i < plan::kSpaceCount; ++i) {
        EXPECT_EQ(measured.peaks[i].bytes, projection.timeline.peaks[i].bytes);
        EXPECT_EQ(measured.peaks[i].step, projection.timeline.peaks[i].step);
        EXPECT_EQ(measured.final_bytes[i], projection.timeline.final_bytes[i]);
      }
      EXPECT_EQ(measured.unified.bytes, projection.timeline.unified.bytes);
      const auto contents = plan::final_contents(projection.plan);
      std::uint64_t held_bytes = 0;
      for (std::size_t b = 0; b < contents.size(); ++b) {
        if (contents[b].empty()) continue;
        EXPECT_EQ(measured.lifetimes[b].to_step, plan::kNever);
        const auto held = machine.bytes(plan::BlockId{static_cast<std::uint32_t>(b)});
        std::vector<std::byte> expected(held.begin(), held.end());
        for (const plan::Extent& extent : contents[b]) {
          std::fill_n(expected.begin() + static_cast<std::ptrdiff_t>(extent.offset), extent.bytes,
                      std::byte{0});
          held_bytes += extent.bytes;
        }
        plan::expected_bytes(reader, contents[b], 0, expected);
        EXPECT_TRUE(std::equal(held.begin(), held.end(), expected.begin(), expected.end()));
      }
      // Python keeps the bytes that it read, and the pages that XNNPACK packed stay mapped
      const std::uint64_t copies = method.id == "onnxruntime_bytes" || method.id == "litert" ? 2 : 1;
      EXPECT_EQ(held_bytes, method.traits.streams ? 0 : copies * graph::storage_bytes(*graph));
    }
}

TEST(HostMachine, RandomPlansMoveTheRightBytes) {
  const testing::TemporaryFolder folder;
  const graph::MetaGraphPtr graph = testing::byte_model(folder, {9000, 100, 33'333, 1});
  const io::StorageReader reader(graph);
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    const plan::Plan plan = testing::random_plan(*graph, seed, 120);
    plan::HostMachine machine(reader);
    plan::DryMachine dry;
    const plan::Timeline measured = plan::run(plan, machine), projected = plan::run(plan, dry);
    EXPECT_EQ(measured.unified.bytes, projected.unified.bytes);
    const testing::Simulation expected(plan, reader);
    for (std::size_t b = 0; b < plan.blocks.size(); ++b) {
      const plan::BlockId id{static_cast<std::uint32_t>(b)};
      if (!expected.content(id).alive) continue;
      ASSERT_EQ(expected.differences(id, machine.bytes(id)), 0u) << "seed " << seed << " block " << b;
    }
  }
}

TEST(HostMachine, MemoryShowsWhereItShouldBe) {
  const testing::TemporaryFolder folder;
  const graph::MetaGraphPtr graph = testing::byte_model(folder, {24 << 20});
  const io::StorageReader reader(graph);
  const auto peak_of = [&](const char* method, std::uint64_t plan::ProcessMemory::*kind) {
    plan::HostMachine machine(reader);
    std::uint64_t peak = 0;
    for (const plan::MemorySample& sample :
         plan::run(
             load::make_plan(*graph, load::find_method(method), load::find_order("file").make(*graph), {}),
             machine)
             .measured)
      peak = std::max(peak, sample.memory.*kind);
    return static_cast<double>(peak) / (1 << 20);
  };
  EXPECT_NEAR(peak_of("per_tensor", &plan::ProcessMemory::rss_anon), 24, 3);
  EXPECT_NEAR(peak_of("per_tensor", &plan::ProcessMemory::rss_shmem), 24, 1);
  EXPECT_NEAR(peak_of("state_dict", &plan::ProcessMemory::rss_shmem), 48, 1);
  EXPECT_NEAR(peak_of("mmap_assign", &plan::ProcessMemory::rss_file), 24, 3);
  EXPECT_NEAR(peak_of("staged_ring", &plan::ProcessMemory::rss_shmem), 24 + 24, 1);
}

TEST(HostMachine, AFileThatShrinksIsAnErrorNotASignal) {
  const testing::TemporaryFolder folder;
  const graph::MetaGraphPtr graph = testing::byte_model(folder, {1 << 20});
  for (const char* method : {"mmap_assign", "per_tensor"}) {
    const io::StorageReader reader(graph);
    reader.file_of(graph::StorageId{0});  // opened while it is whole
    const std::string whole = testing::read_file(graph->files[0].path);
    std::filesystem::resize_file(graph->files[0].path, 8192);
    plan::HostMachine machine(reader);
    EXPECT_THROW(plan::run(load::make_plan(*graph, load::find_method(method),
                                           load::find_order("file").make(*graph), {}),
                           machine),
                 Error)
        << method;
    testing::write_file(graph->files[0].path, whole);
  }
}

TEST(Budget, NamesTheFirstAllocationThatBreaksIt) {
  const graph::MetaGraph graph = graph_of({100, 300, 50});
  const load::Projection projection =
      load::project(graph, load::find_method("per_tensor"), load::find_order("file"), {});
  EXPECT_TRUE(load::check_budget(projection, {}).fits());
  EXPECT_TRUE(load::check_budget(projection, {.device = 450, .host = 300}).fits());
  const load::BudgetVerdict device = load::check_budget(projection, {.device = 449, .host = {}});
  EXPECT_FALSE(device.device_fits);
  EXPECT_TRUE(device.host_fits);
  EXPECT_EQ(projection.plan.block(*device.block).storage, graph::StorageId{2});
  const load::BudgetVerdict host = load::check_budget(projection, {.device = {}, .host = 299});
  EXPECT_FALSE(host.host_fits);
  EXPECT_EQ(projection.plan.block(*host.block).storage, graph::StorageId{1});
}

}  // namespace
}  // namespace loadline::tests
