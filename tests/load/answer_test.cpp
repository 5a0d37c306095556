// Advice, and what is told of a cast.

#include "core/load/answer/answer.h"

#include "core/base/error.h"
#include "core/forward/model/known_models.h"
#include "core/load/answer/advice.h"
#include "core/load/answer/projection.h"
#include "core/load/answer/rows.h"
#include "core/load/request/bind_request.h"
#include "core/load/request/casts.h"
#include "core/load/request/method.h"

#include <algorithm>
#include <array>
#include <optional>
#include <random>
#include <set>
#include <stop_token>
#include <string>
#include <tuple>
#include <vector>

#include <gtest/gtest.h>

namespace loadline::tests {

// --- Advice against projections of everything that it could have said.

namespace {

constexpr std::array kStages = {load::AdviceStage::one_change, load::AdviceStage::two_changes,
                                load::AdviceStage::streaming, load::AdviceStage::streaming_and_another};

// Rows of 32 numbers, so that casts to blocks apply, with an embedding, layers and a head in up to two files.
graph::MetaGraph random_model(std::mt19937_64& random) {
  graph::MetaGraph graph;
  graph.format = random() % 2 == 0 ? "safetensors" : "gguf";
  graph.files.resize(1 + random() % 2);
  std::uint64_t offset = 0;
  const std::uint32_t layers = 1 + static_cast<std::uint32_t>(random() % 8);
  const graph::DType dtype =
      random() % 2 == 0 ? graph::DType::f32 : graph::DType::i32;  // whole numbers are not cast
  const auto add = [&](const std::string& name) {
    const std::uint64_t rows = 1 + random() % 24;
    const graph::FileId file{static_cast<std::uint32_t>(random() % graph.files.size())};
    const graph::StorageId id{static_cast<std::uint32_t>(graph.storages.size())};
    graph.storages.push_back(graph::plain_storage(file, offset, rows * 128));
    graph.tensors.push_back({name, dtype, {rows, 32}, {}, id, 0});
    offset += rows * 128;
  };
  add("model.embed_tokens.weight");
  for (std::uint32_t i = 0; i < layers; ++i) add("model.layers." + std::to_string(i) + ".mlp.weight");
  add("model.norm.weight");
  add("lm_head.weight");
  // what cannot be mapped must be held, so that more is left to streaming
  if (random() % 3 == 0)
    for (graph::Storage& storage : graph.storages) storage.encoding = graph::Encoding::deflate;
  return graph;
}

load::AdviceRequest random_request(std::mt19937_64& random, const graph::MetaGraph& graph) {
  load::AdviceRequest request;
  request.bound.request.slots = 1 + static_cast<std::uint32_t>(random() % 4);
  request.bound.request.staging_bytes =
      request.bound.request.slots * (std::uint64_t{4} << 10) * (1 + random() % 64);
  request.bound.request.activation_bytes = random() % 400;
  request.bound.request.flush_bytes = random() % 2000;
  const std::size_t asked = random() % 4 == 0 ? 5 : 1;
  const std::vector<const load::Method*> methods = load::methods_for(graph);
  for (std::size_t i = 0; i < asked; ++i) {
    const load::Method& method = *methods[random() % methods.size()];
    const load::Order& order = load::orders()[random() % load::orders().size()];
    request.bound.methods.push_back(&method);
    request.bound.orders.push_back({std::string(order.id), &order, {}});
    request.rows.push_back(i * asked + i);
  }
  const std::uint64_t weights = graph::storage_bytes(graph);
  const auto budget = [&] { return weights / 16 * (1 + random() % (random() % 2 == 0 ? 4 : 36)); };
  if (random() % 3 == 0) {
    request.bound.spaces = plan::kAllSpaces;
    request.bound.memory.budget.unified = budget();
  } else {
    request.bound.memory.budget.device = budget();
    if (random() % 2 == 0) request.bound.memory.budget.host = budget();
  }
  if (random() % 4 == 0) {
    request.bound.methods[0] = &load::find_method("accelerate");
    request.rows = {0};
    const auto host = random() % 2 == 0 ? std::nullopt : std::optional(weights / 16 * (random() % 16));
    request.bound.placement = load::place_automatically(graph, weights / 16 * (random() % 16), host);
  }
  return request;
}

// Of a candidate, or nothing where it cannot be done or does not fit.
struct Outcome {
  const load::AdviceCandidate* candidate = nullptr;
  double seconds = 0;
  std::uint64_t held = 0;
  std::vector<std::pair<std::string_view, std::string>> arguments;
};

bool ranks_before(const Outcome& a, const Outcome& b) {
  if (load::takes_less(*a.candidate, *b.candidate)) return true;
  if (load::takes_less(*b.candidate, *a.candidate)) return false;
  return std::tie(a.seconds, a.held, a.arguments) < std::tie(b.seconds, b.held, b.arguments);
}

std::optional<Outcome> exhaustive(const graph::MetaGraph& graph, const load::AdviceRequest& request,
                                  const load::AdviceSpace& space,
                                  const std::vector<load::AdviceCandidate>& candidates) {
  std::optional<Outcome> best;
  for (const load::AdviceCandidate& candidate : candidates) {
    const load::BoundRequest options = space.bind(candidate);
    try {
      const load::Projection projection =
          load::project(graph, *candidate.method, *candidate.order->row, options);
      EXPECT_LE(space.device_bound(candidate),
                projection.timeline.peaks[plan::index(plan::Space::device)].bytes)
          << candidate.method->id;
      if (projection.maps_files && !load::mapping_refusal(graph).empty()) continue;
      if (!load::check_budget(projection, request.bound.memory.budget).fits()) continue;
      load::AdvisedLoad timed;
      load::set_time(timed, projection.seconds, projection.reads.bytes, graph::storage_bytes(graph),
                     options.costs);
      Outcome outcome{&candidate, timed.seconds_of_all, load::held_peak(projection.timeline),
                      space.settings(candidate)};
      if (!best || ranks_before(outcome, *best)) best = std::move(outcome);
    } catch (const Error& error) {
      EXPECT_TRUE(error.code() == ErrorCode::limit || error.code() == ErrorCode::unsupported);
    }
  }
  return best;
}

TEST(Advice, TheFirstIsTheCheapestOfAll) {
  std::mt19937_64 random(11);
  std::array<int, 5> answered = {};  // by stage, and by none
  for (int round = 0; round < 200; ++round) {
    SCOPED_TRACE("round " + std::to_string(round));
    const graph::MetaGraph graph = random_model(random);
    const load::AdviceRequest request = random_request(random, graph);
    const load::AdviceSpace space(graph, request);
    Progress progress;
    const load::Advice advice = load::advise(graph, request, progress, 1 + random() % 2, 1 << 20);
    ASSERT_TRUE(advice.complete);
    std::size_t stage = 0;
    for (; stage < kStages.size(); ++stage) {
      const std::vector<load::AdviceCandidate> candidates = space.candidates(kStages[stage]);
      ASSERT_TRUE(std::is_sorted(candidates.begin(), candidates.end(), load::takes_less));
      const auto best = exhaustive(graph, request, space, candidates);
      if (!best) continue;
      ASSERT_FALSE(advice.loads.empty());
      EXPECT_EQ(advice.loads.front().settings, best->arguments);
      EXPECT_EQ(advice.loads.front().seconds_of_all, best->seconds);
      EXPECT_EQ(advice.loads.front().held, best->held);
      break;
    }
    ++answered[stage];
    // a runtime that keeps its weights on the host may have no other way, and files that cannot be mapped
    const bool bound_to_host = std::ranges::any_of(
        request.bound.methods, [](const load::Method* method) { return method->traits.host_only; });
    if (!bound_to_host && load::mapping_refusal(graph).empty())
      EXPECT_EQ(advice.nearest.has_value(), advice.loads.empty());
    EXPECT_EQ(advice.loads.empty(), stage == kStages.size());
    EXPECT_LE(advice.loads.size(), load::kMostAdvice);
    for (const load::AdvisedLoad& load : advice.loads) EXPECT_TRUE(load.verdict.fits());
  }
  // the draw reaches what it is about
  EXPECT_GT(answered[0], 10);
  EXPECT_GT(answered[1], 10);
  EXPECT_GT(answered[2], 0);
  EXPECT_GT(answered[4], 0);
}

graph::MetaGraph model_of(std::uint64_t rows) {
  graph::MetaGraph graph;
  graph.files.resize(1);
  for (std::uint32_t i = 0; i < 4; ++i) {
    graph.storages.push_back(graph::plain_storage(graph::FileId{0}, i * rows * 128, rows * 128));
    graph.tensors.push_back(
        {"t" + std::to_string(i), graph::DType::f32, {rows, 32}, {}, graph::StorageId{i}, 0});
  }
  return graph;
}

load::AdviceRequest request_of(std::string_view method, load::Budget budget) {
  load::AdviceRequest request;
  request.bound.methods = {&load::find_method(method)};
  request.bound.orders = {{"file", &load::find_order("file"), {}}};
  request.rows = {0};
  request.bound.memory.budget = budget;
  return request;
}

load::Advice advice_for(const graph::MetaGraph& graph, const load::AdviceRequest& request) {
  Progress progress;
  return load::advise(graph, request, progress);
}

TEST(Advice, ASmallerRingGoesBeforeAnotherMethod) {
  const graph::MetaGraph graph = model_of(1 << 16);  // 32 MiB
  load::AdviceRequest request = request_of("staged_ring", {.host = 6 << 20});
  request.bound.request.staging_bytes = 16 << 20;
  const load::Advice advice = advice_for(graph, request);
  ASSERT_GE(advice.loads.size(), 2u);
  const std::vector<std::pair<std::string_view, std::string>> expected = {
      {"method", "staged_ring"}, {"order", "file"}, {"staging", "4MiB"}};
  EXPECT_EQ(advice.loads[0].settings, expected);
  EXPECT_EQ(advice.loads[0].changes, std::vector<std::string>{"a ring of 4.00 MiB in 4 slots"});
  EXPECT_EQ(advice.loads[0].peaks[plan::index(plan::Space::staging)], 4u << 20);
}

TEST(Advice, ANarrowerTypeGoesBeforeStreaming) {
  const graph::MetaGraph graph = model_of(1 << 16);
  const load::Advice advice = advice_for(graph, request_of("per_tensor", {.device = 17 << 20}));
  ASSERT_FALSE(advice.loads.empty());
  EXPECT_EQ(advice.loads[0].changes, std::vector<std::string>{"cast to BF16"});
  EXPECT_EQ(advice.loads[0].peaks[plan::index(plan::Space::device)], 16u << 20);
}

// What a runtime makes of a program that was lowered for another is not known.
TEST(Runtimes, AreEstimatesOfProgramsForAnother) {
  graph::MetaGraph graph = model_of(1 << 16);
  graph.format = "pte";
  const load::LoadRequest request{
      .methods = {"executorch_mapped", "executorch_bytes", "executorch_xnnpack", "executorch_after"}};
  Progress progress;
  const auto estimated = [&] {
    std::string rows;
    for (const load::LoadRow& row : load::answer(graph, request, {}, {}, progress).rows)
      rows += row.estimated ? 'e' : '-';
    return rows;
  };
  EXPECT_EQ(estimated(), "--e-");
  graph.tensors[0].name = graph::Name("forward.delegate.0.XnnpackBackend");
  EXPECT_EQ(estimated(), "ee--");
  graph.tensors[0].name = graph::Name("forward.delegate.0.QnnBackend");
  EXPECT_EQ(estimated(), "eee-");
}

// A law that was measured with some kernels is an estimate for others.
TEST(Runtimes, AreEstimatesWhereTheirKernelsWereNotMeasured) {
  graph::MetaGraph graph = model_of(1 << 16);
  graph.format = "onnx";
  graph.forward.emplace();
  for (std::uint32_t i = 0; i < graph.tensors.size(); ++i) {
    graph.tensors[i].dtype = graph::DType::f32;
    graph::Op op = {
        .kind = "MatMul", .name = {}, .inputs = {}, .weights = {graph::TensorId{i}}, .outputs = {}};
    op.arguments = {{}, {.value = {}, .weight = graph::TensorId{i}}};
    graph.forward->ops.push_back(std::move(op));
  }
  const load::LoadRequest request{.methods = {"onnxruntime", "staged_ring"}, .host_budget = 1 << 30};
  Progress progress;
  const auto answer = [&] { return load::answer(graph, request, {}, {}, progress); };
  EXPECT_FALSE(answer().rows[0].estimated);
  graph.forward->ops[1].kind = "MatMulNBits";
  EXPECT_TRUE(answer().rows[0].estimated);
  EXPECT_FALSE(answer().rows[1].estimated);
  EXPECT_EQ(answer().unaccounted, "how the runtime packs weights of 'MatMulNBits with F32'");
  graph.forward->ops[1].kind = "Gather";
  EXPECT_FALSE(answer().rows[0].estimated);
  graph.forward.reset();
  EXPECT_TRUE(answer().rows[0].estimated);
}

TEST(Advice, NamesNoMethodThatCannotOpenTheFiles) {
  graph::MetaGraph graph = model_of(1 << 16);
  const load::AdviceRequest request = request_of("staged_ring", {.device = 31 << 20, .host = 4 << 20});
  for (const std::string_view format : {"gguf", "safetensors", "onnx", "torch", "pte"}) {
    graph.format = format;
    std::size_t others = 0;
    const load::AdviceSpace space(graph, request);
    for (const load::AdviceStage stage : kStages)
      for (const load::AdviceCandidate& candidate : space.candidates(stage)) {
        EXPECT_TRUE(load::can_open(*candidate.method, graph)) << format << " " << candidate.method->id;
        others += candidate.method->id != "staged_ring";
      }
    EXPECT_GT(others, 0u) << format;
  }
}

// The command says --max-memory, which plan counts in bytes as they land.
TEST(Advice, AMapThatWasAskedForIsMadeAnewForAnotherType) {
  const graph::MetaGraph graph = model_of(1 << 16);  // four of 8 MiB
  load::AdviceRequest request = request_of("accelerate", {.host = 8 << 20});
  request.bound.placement = load::place_automatically(graph, 17 << 20, {});
  EXPECT_EQ(request.bound.placement.homes, (std::vector<load::Home>{load::Home::device, load::Home::host,
                                                                    load::Home::host, load::Home::host}));
  const load::AdviceSpace space(graph, request);
  std::size_t casts = 0;
  for (const load::AdviceStage stage : kStages)
    for (const load::AdviceCandidate& candidate : space.candidates(stage)) {
      if (!candidate.request.cast) continue;
      ++casts;
      const load::BoundRequest options = space.bind(candidate);
      EXPECT_EQ(options.placement, load::place_automatically(graph, 17 << 20, {}, candidate.request.cast));
      const load::Projection projection =
          load::project(graph, *candidate.method, *candidate.order->row, options);
      // half as large, all are on the device
      EXPECT_EQ(projection.timeline.final_bytes[plan::index(plan::Space::host)], 0u);
      EXPECT_LE(space.device_bound(candidate),
                projection.timeline.peaks[plan::index(plan::Space::device)].bytes);
    }
  EXPECT_GT(casts, 4u);
}

// An embedding that is the head as well comes to the device with the first layer, like a head of its own.
TEST(Advice, LayersCountAnEmbeddingThatIsTheHead) {
  graph::MetaGraph graph = model_of(1 << 16);  // four of 8 MiB
  graph.tensors[0].name = graph::Name("token_embd.weight");
  for (std::uint32_t i = 1; i < 4; ++i)
    graph.tensors[i].name = graph::Name("blk." + std::to_string(i) + ".w");
  const std::uint64_t budget = 17 << 20;
  const load::AdviceRequest request = request_of("llama_cpp_ring", {.device = budget});
  const load::AdviceSpace space(graph, request);
  std::uint64_t most = 0;
  for (const load::AdviceCandidate& candidate : space.candidates(load::AdviceStage::one_change))
    for (const auto& [option, value] : space.settings(candidate)) {
      if (option != "gpu_layers") continue;
      most = std::max<std::uint64_t>(most, std::stoull(value));
      EXPECT_LE(load::device_lower_bound(graph, space.bind(candidate)), budget) << value;
    }
  EXPECT_EQ(most, 2u);
}

TEST(Advice, ATypeInWhichTheModelHasNoSizeIsNoWayOut) {
  graph::MetaGraph graph = model_of(1);
  for (std::uint32_t i = 0; i < 4; ++i) {
    graph.storages[i].bytes = std::uint64_t{1} << 61;
    graph.tensors[i].dtype = graph::DType::f8_e4m3;
  }
  load::AdviceRequest request = request_of("per_tensor", {.device = 1 << 20});
  const load::AdviceSpace space(graph, request);
  std::size_t casts = 0;
  for (const load::AdviceCandidate& candidate : space.candidates(load::AdviceStage::one_change)) {
    if (!candidate.request.cast) continue;
    ++casts;
    EXPECT_EQ(candidate.request.cast, graph::DType::q4_0);
  }
  EXPECT_EQ(casts, 1u);
}

TEST(Advice, WhereNothingFitsItTellsTheNearest) {
  const graph::MetaGraph graph = model_of(1 << 16);
  load::AdviceRequest request = request_of("per_tensor", {.device = 1 << 20, .host = 1 << 20});
  request.bound.request.activation_bytes = 2 << 20;
  const load::Advice advice = advice_for(graph, request);
  EXPECT_TRUE(advice.loads.empty());
  ASSERT_TRUE(advice.nearest);
  // all weights off the device leave the activations, on the host
  EXPECT_EQ(advice.nearest->verdict.device_over + advice.nearest->verdict.host_over, 1u << 20);
  const load::AdviceSpace space(graph, request);
  for (const load::AdviceStage stage : kStages)
    for (const load::AdviceCandidate& candidate : space.candidates(stage)) {
      const load::Projection other =
          load::project(graph, *candidate.method, *candidate.order->row, space.bind(candidate));
      EXPECT_LE(advice.nearest->verdict.device_over,
                load::check_budget(other, request.bound.memory.budget).device_over);
    }
}

TEST(Advice, EncodedFilesAreNotMapped) {
  graph::MetaGraph graph = model_of(1 << 10);
  for (graph::Storage& storage : graph.storages) storage.encoding = graph::Encoding::deflate;
  const load::Advice advice = advice_for(graph, request_of("state_dict", {.device = 600 << 10}));
  ASSERT_FALSE(advice.loads.empty());
  for (const load::AdvisedLoad& load : advice.loads)
    EXPECT_EQ(load.peaks[plan::index(plan::Space::page_cache)], 0u);
}

// A load that reads on demand is compared with one that reads all by the time until all is read.
TEST(Advice, ComparesLoadsByTheTimeUntilAllIsRead) {
  plan::CostModel costs;
  costs.disk_read = 100;
  load::AdvisedLoad lazy, whole;
  load::set_time(lazy, 2, 100, 1000, costs);
  load::set_time(whole, 10, 1000, 1000, costs);
  EXPECT_EQ(lazy.seconds, 2);
  EXPECT_EQ(lazy.unread, 900u);
  EXPECT_EQ(lazy.seconds_of_all, 11);
  EXPECT_EQ(whole.unread, 0u);
  EXPECT_EQ(whole.seconds_of_all, 10);
  load::set_time(whole, 10, 2000, 1000, costs);
  EXPECT_EQ(whole.unread, 0u) << "some is read twice";
}

// A fit with one change does not hide that the experts could stay on the host.
TEST(Advice, ExpertsStandBesideLayers) {
  graph::MetaGraph graph;
  graph.format = "gguf";
  graph.files.resize(1);
  std::uint64_t offset = 0;
  const auto add = [&](const std::string& name, std::uint64_t rows) {
    const graph::StorageId id{static_cast<std::uint32_t>(graph.storages.size())};
    graph.storages.push_back(graph::plain_storage(graph::FileId{0}, offset, rows * 128));
    graph.tensors.push_back({name, graph::DType::i32, {rows, 32}, {}, id, 0});
    offset += rows * 128;
  };
  add("token_embd.weight", 1 << 10);
  for (int layer = 0; layer < 8; ++layer) {
    add("blk." + std::to_string(layer) + ".attn_q.weight", 1 << 10);
    add("blk." + std::to_string(layer) + ".ffn_up_exps.weight", 1 << 15);
  }
  add("output.weight", 1 << 10);
  const load::Advice advice = advice_for(graph, request_of("llama_cpp_ring", {.device = 20 << 20}));
  const auto uses = [&](std::string_view option) {
    return std::ranges::count_if(advice.loads, [&](const load::AdvisedLoad& load) {
      return std::ranges::any_of(load.settings, [&](const auto& setting) { return setting.first == option; });
    });
  };
  EXPECT_GE(uses("gpu_layers"), 1);
  EXPECT_GE(uses("place"), 1);
  EXPECT_LE(advice.loads.size(), load::kMostAdvice);
}

// A script for PyTorch cannot become a loader in C++, and PyTorch has no types of blocks.
TEST(Advice, StaysWithWhatRunsTheMethod) {
  const graph::MetaGraph graph = model_of(1 << 16);
  const auto runtimes = [&](std::string_view method) {
    load::AdviceRequest request = request_of(method, {.device = 9 << 20});
    request.bound.request.methods = {std::string(method)};
    const load::AdviceSpace space(graph, request);
    std::set<load::Runtime> found;
    for (const load::AdviceStage stage : kStages)
      for (const load::AdviceCandidate& candidate : space.candidates(stage)) {
        found.insert(candidate.method->traits.runtime);
        if (candidate.request.cast && !found.contains(load::Runtime::own))
          EXPECT_NE(graph::dtype_info(*candidate.request.cast).torch, "") << candidate.method->id;
      }
    return found;
  };
  using Of = std::set<load::Runtime>;
  EXPECT_EQ(runtimes("state_dict"), (Of{load::Runtime::torch, load::Runtime::any}));
  EXPECT_EQ(runtimes("llama_cpp_mmap"), Of{load::Runtime::llama_cpp});
  EXPECT_EQ(runtimes("executorch_before"), Of{load::Runtime::executorch});
  EXPECT_TRUE(runtimes("staged_ring").contains(load::Runtime::torch));
}

TEST(Advice, EndsAtItsLimitAndWhenCanceled) {
  const graph::MetaGraph graph = model_of(1 << 10);
  const load::AdviceRequest request = request_of("state_dict", {.device = 1});
  Progress progress;
  const load::Advice advice = load::advise(graph, request, progress, 2, 3);
  EXPECT_EQ(advice.tried, 3u);
  EXPECT_FALSE(advice.complete);
  std::stop_source source;
  source.request_stop();
  Progress stopped(source.get_token());
  EXPECT_THROW(load::advise(graph, request, stopped), Error);
}

}  // namespace

// --- What is told of a cast: how many tensors, how many bytes, and why the others stay.

namespace {

struct Row {
  std::string name;
  graph::DType dtype;
  std::vector<std::uint64_t> shape;
  std::uint64_t bytes;
  std::uint32_t storage;
};

graph::MetaGraph graph_of(const std::vector<Row>& rows) {
  graph::MetaGraph graph;
  for (const Row& row : rows) {
    if (row.storage == graph.storages.size()) graph.storages.push_back(graph::shapes_only_storage(row.bytes));
    graph.tensors.push_back(
        {graph::Name(row.name), row.dtype, row.shape, {}, graph::StorageId{row.storage}, 0});
  }
  return graph;
}

// from_pretrained() of transformers 5 takes the type of config.json unless it is told another.
TEST(ConfiguredType, IsWhatTransformers5LoadsIn) {
  graph::MetaGraph graph = model_of(1 << 16);  // 32 MiB of F32
  const auto type_in = [&](std::string config) {
    graph.metadata = {{std::string(graph::kConfigKey), std::move(config)}};
    return load::own_types(graph).configured;
  };
  EXPECT_EQ(type_in(R"({"dtype":"bfloat16"})"), graph::DType::bf16);
  EXPECT_EQ(type_in(R"({"torch_dtype":"torch.float16"})"), graph::DType::f16);
  EXPECT_EQ(type_in(R"({"dtype":"bfloat16","torch_dtype":"float16"})"), graph::DType::bf16);
  for (const char* none :
       {R"({"dtype":"float32"})", R"({"dtype":"float8_e4m3fn"})", R"({"dtype":7})", "{}", "[]", "{"})
    EXPECT_FALSE(type_in(none)) << none;
  // without one it is the type of the first weight, by name in safetensors, in the first file
  graph.format = "safetensors";
  graph.files = {{"b.safetensors", 1 << 30}, {"a.safetensors", 1 << 30}};
  for (std::size_t i = 0; i < graph.storages.size(); ++i)
    graph.storages[i].file = graph::FileId{i < 2 ? 0u : 1u};
  graph.tensors[2].dtype = graph.tensors[3].dtype = graph::DType::i32;
  EXPECT_FALSE(type_in("{}")) << "F32 in the second file, and no other type";
  graph.tensors[2].dtype = graph.tensors[3].dtype = graph::DType::f32;
  graph.tensors[3].dtype = graph::DType::bf16;
  graph.tensors[3].name = "a";
  EXPECT_EQ(type_in("{}"), graph::DType::bf16);
  EXPECT_EQ(type_in(R"({"dtype":null})"), graph::DType::bf16);
  EXPECT_EQ(type_in(R"({"dtype":"float16"})"), graph::DType::f16);
  graph.format = "torch";
  EXPECT_EQ(type_in("{}"), graph::DType::f32) << "in the order of the file, and it changes the last";
  graph = model_of(1 << 16);
  EXPECT_TRUE(type_in(R"({"dtype":"bfloat16"})"));
  const auto device = [&](std::string_view method, const load::LoadRequest& request) {
    const load::BoundRequest bound = load::bind_request(graph, request, {});
    return load::project(graph, load::find_method(method), load::find_order("file"), bound)
        .timeline.final_bytes[plan::index(plan::Space::device)];
  };
  EXPECT_EQ(device("transformers_v5", {}), 16u << 20);
  EXPECT_EQ(device("transformers_v5_to", {}), 16u << 20);
  EXPECT_EQ(device("transformers_v4", {}), 32u << 20);
  EXPECT_FALSE(load::own_types(graph).f32) << "of F32 weights it changes none";
  EXPECT_EQ(device("transformers_v5", {.cast = graph::DType::f32}), 32u << 20);
  // an automatic map counts the weights as they are loaded
  EXPECT_EQ(device("transformers_v5", {.auto_map = load::MemoryMap{17 << 20}}), 16u << 20);
  EXPECT_EQ(device("accelerate", {.auto_map = load::MemoryMap{17 << 20}}), 8u << 20);
  // what unpacks weights chooses their types
  graph.logical.emplace_back();
  EXPECT_FALSE(load::own_types(graph).configured);
}

// from_pretrained() of transformers 4 makes them F32.
TEST(ConfiguredType, IsF32InTransformers4) {
  graph::MetaGraph graph = model_of(1 << 16);
  for (graph::Tensor& tensor : graph.tensors) {  // 32 MiB of BF16
    tensor.dtype = graph::DType::bf16;
    tensor.shape = {1 << 16, 64};
  }
  const auto device = [&](std::string_view method, const load::LoadRequest& request) {
    const load::BoundRequest bound = load::bind_request(graph, request, {});
    return load::project(graph, load::find_method(method), load::find_order("file"), bound)
        .timeline.final_bytes[plan::index(plan::Space::device)];
  };
  EXPECT_EQ(device("transformers_v4", {}), 32u << 20) << "without config.json, nobody's from_pretrained()";
  graph.metadata = {{std::string(graph::kConfigKey), R"({"dtype":"bfloat16"})"}};
  EXPECT_EQ(load::own_types(graph).f32, graph::DType::f32);
  EXPECT_EQ(device("transformers_v4", {}), 64u << 20);
  EXPECT_EQ(device("transformers_v4_early", {}), 64u << 20);
  EXPECT_EQ(device("transformers_v4", {.cast = graph::DType::bf16}), 32u << 20);
  EXPECT_EQ(device("transformers_v5", {}), 32u << 20);
  EXPECT_EQ(device("mmap_assign", {}), 32u << 20);
  graph.logical.emplace_back();
  EXPECT_FALSE(load::own_types(graph).f32);
}

// --- Verdicts: which memory, and which tensor.

load::LoadRow row_of(const graph::MetaGraph& graph, const load::LoadRequest& request) {
  Progress progress;
  return load::answer(graph, request, {}, {}, progress).rows.at(0);
}

TEST(Verdicts, NameTheTensorThatBreaksTheLimit) {
  const graph::MetaGraph graph = model_of(1 << 16);  // t0 to t3, of 8 MiB
  const auto first = [&](const load::LoadRequest& request) { return row_of(graph, request).first_over; };
  EXPECT_EQ(first({.methods = {"staged_ring"}, .device_budget = 20 << 20}), "t2");
  EXPECT_EQ(first({.methods = {"staged_ring"}, .require_peak = 20 << 20}), "t2");
  EXPECT_EQ(first({.methods = {"staged_ring"}, .device_budget = 28 << 20, .require_peak = 12 << 20}), "t1");
  EXPECT_EQ(first({.methods = {"staged_ring"},
                   .require_peak = 20 << 20,
                   .allocator = allocators::AllocatorModel::malloc}),
            "t2");
  EXPECT_EQ(first({.methods = {"staged_ring"}, .require_peak = 32 << 20}), "");
}

TEST(Verdicts, OfALoadThatStaysOnTheHostAreOfTheHost) {
  graph::MetaGraph graph = model_of(1 << 16);
  graph.format = "gguf";
  load::LoadRequest request{.methods = {"llama_cpp_ring"}, .gpu_layers = 0, .require_peak = 16 << 20};
  const load::LoadRow row = row_of(graph, request);
  EXPECT_FALSE(row.is_within());
  EXPECT_GE(row.over_required_peak, 16u << 20);
  EXPECT_EQ(row.first_over, "t2");
  request.memory = plan::MemoryKind::unified;
  EXPECT_FALSE(row_of(graph, request).is_within());
  request.require_peak = 40 << 20;
  request.memory.reset();
  EXPECT_TRUE(row_of(graph, request).is_within());
}

// Where weights go decides which memory the required peak is about: also for advice.
TEST(Verdicts, OfAdviceAreThoseOfTheAdvisedLoad) {
  graph::MetaGraph graph = model_of(1 << 16);
  graph.format = "gguf";
  Progress progress;
  const load::LoadRequest request{.methods = {"llama_cpp_ring"}, .gpu_layers = 0, .require_peak = 16 << 20};
  const load::LoadAnswer answer = load::answer(graph, request, {}, {.advise = true}, progress);
  ASSERT_TRUE(answer.advice);
  for (const load::AdvisedLoad& load : answer.advice->advice.loads)
    EXPECT_TRUE(load::answer(graph, load.request, {}, {}, progress).rows.at(0).is_within());
}

// The context beside an advice is what its own request is told.
TEST(Verdicts, OfAdviceComeWithTheContextThatIsLeft) {
  const graph::MetaGraph graph =
      forward::config_graph(forward::find_preset("gpt2-xl")->config_json, "config.json");
  Progress progress;
  load::LoadRequest request{.methods = {"state_dict"}, .device_budget = std::uint64_t{4} << 30};
  request.sequence = 128;
  const load::AnswerOptions options = {.advise = true, .advised_contexts = true};
  const load::LoadAnswer answer = load::answer(graph, request, {}, options, progress);
  ASSERT_TRUE(answer.advice);
  ASSERT_GE(answer.advice->advice.loads.size(), 2u);
  for (const load::AdvisedLoad& load : answer.advice->advice.loads) {
    load::LoadRequest own = load.request;
    EXPECT_FALSE(own.max_context) << "the request stays what it was";
    own.max_context = true;
    const load::LoadAnswer asked = load::answer(graph, own, {}, {.advise = false}, progress);
    ASSERT_TRUE(load.context_max);
    EXPECT_EQ(*load.context_max, std::min(*asked.rows.at(0).context_max, *asked.context->positions));
    EXPECT_GE(*load.context_max, 128u) << "the prompt that was asked for fits";
  }
}

TEST(Verdicts, ATargetsReserveIsNotOneOfAnotherBudget) {
  const graph::MetaGraph graph = model_of(1 << 16);
  const load::LoadRequest request{.target = "rtx-4060-8gb", .device_budget = 40 << 20};
  EXPECT_FALSE(load::bind_request(graph, request, {}).request.reserve);
  EXPECT_TRUE(load::bind_request(graph, {.target = "rtx-4060-8gb"}, {}).request.reserve);
}

// A model that its own settings say is not whole never fits.
TEST(Verdicts, OfAModelWithoutSomeOfItsTensors) {
  graph::MetaGraph graph;
  graph.files.resize(1);
  EXPECT_EQ(load::bind_request(graph, {.device_budget = 1 << 30}, {}).incomplete, "it has no tensors");
  graph = model_of(1 << 10);
  EXPECT_EQ(load::bind_request(graph, {.device_budget = 1 << 30}, {}).incomplete, "");
  graph.metadata = {{std::string(graph::kConfigKey),
                     R"({"model_type":"gpt2","n_embd":32,"n_layer":1,"n_head":2,"vocab_size":1024})"}};
  EXPECT_NE(load::bind_request(graph, {.device_budget = 1 << 30}, {}).incomplete, "");
}

// Of experts, a token reads as many as it uses.
TEST(PassReads, CountTheExpertsInUse) {
  graph::MetaGraph graph = model_of(1 << 16);
  graph.format = "gguf";
  graph.tensors[1].name = graph::Name("blk.0.ffn_up_exps.weight");
  graph.tensors[2].name = graph::Name("blk.0.ffn_up_shexp.weight");
  graph.metadata = {{"general.architecture", std::string("qwen3moe")},
                    {"qwen3moe.block_count", std::uint32_t{1}},
                    {"qwen3moe.expert_count", std::uint32_t{8}},
                    {"qwen3moe.expert_used_count", std::uint32_t{2}}};
  load::LoadRequest request{.methods = {"llama_cpp_mmap"}, .gpu_layers = 0, .sequence = 1};
  const auto mapped = [&] { return row_of(graph, request).pass_reads.mapped; };
  EXPECT_EQ(mapped(), (8 + 8 + 8 + 2u) << 20);
  request.sequence = 3;
  EXPECT_EQ(mapped(), (8 + 8 + 8 + 6u) << 20);
  request.sequence = 4;
  EXPECT_EQ(mapped(), 32u << 20);
  request.sequence = 1;
  graph.metadata.pop_back();
  EXPECT_EQ(mapped(), 32u << 20);
  graph.metadata = {{std::string(graph::kConfigKey), R"({"num_local_experts":8,"num_experts_per_tok":2})"}};
  graph.tensors[1].name = graph::Name("model.layers.0.mlp.experts.3.w1.weight");
  EXPECT_EQ(mapped(), (8 + 8 + 8 + 2u) << 20);
}

TEST(CastSummary, CountsTiesOnceInBytesAndSaysWhyTheRestStays) {
  const graph::MetaGraph graph = graph_of({{"w", graph::DType::f32, {4, 64}, 1024, 0},
                                           {"tied", graph::DType::f32, {4, 64}, 1024, 0},
                                           {"half", graph::DType::f16, {4, 64}, 512, 1},
                                           {"ids", graph::DType::i64, {8}, 64, 2},
                                           {"mask", graph::DType::u8, {8}, 8, 3},
                                           {"norm", graph::DType::f32, {64}, 256, 4}});
  const load::CastSummary half = load::cast_summary(graph, graph::DType::f16);
  EXPECT_EQ(half.tensors, 3u);
  EXPECT_EQ(half.bytes_before, 1280u);
  EXPECT_EQ(half.bytes_after, 640u);
  EXPECT_EQ(half.kept, 3u);
  EXPECT_EQ(load::cast_text(half, graph::DType::f16),
            "Cast to F16: 3 tensors, 1.25 KiB become 640 B; 3 tensors stay as stored: 2 do not hold floating "
            "point numbers, 1 is F16 already.");
  const load::CastSummary blocks = load::cast_summary(graph, graph::DType::q8_0);
  EXPECT_EQ(blocks.tensors, 3u);
  EXPECT_EQ(
      load::cast_text(blocks, graph::DType::q8_0),
      "Cast to Q8_0: 3 tensors, 1.50 KiB become 544 B; 3 tensors stay as stored: 2 do not hold floating "
      "point numbers, 1 is not a matrix of rows of whole blocks.");
}

TEST(CastSummary, SaysWhatCastsNothing) {
  const graph::MetaGraph one = graph_of({{"w", graph::DType::bf16, {8}, 16, 0}});
  EXPECT_EQ(load::cast_text(load::cast_summary(one, graph::DType::bf16), graph::DType::bf16),
            "The cast to BF16 changes nothing: 1 tensor stays as stored: 1 is BF16 already.");
  EXPECT_EQ(load::cast_text(load::cast_summary(one, graph::DType::f32), graph::DType::f32),
            "Cast to F32: 1 tensor, 16 B become 32 B.");
  EXPECT_EQ(load::cast_text(load::cast_summary(graph::MetaGraph(), graph::DType::f32), graph::DType::f32),
            "The cast to F32 changes nothing.");
  // a view of another type on the same bytes keeps both
  const graph::MetaGraph shared =
      graph_of({{"w", graph::DType::f32, {8}, 32, 0}, {"bits", graph::DType::i32, {8}, 32, 0}});
  EXPECT_EQ(
      load::cast_text(load::cast_summary(shared, graph::DType::f16), graph::DType::f16),
      "The cast to F16 changes nothing: 2 tensors stay as stored: 1 does not hold floating point numbers, "
      "1 shares its bytes with one that is kept or of another type.");
  graph::MetaGraph uneven = graph_of({{"w", graph::DType::f32, {7}, 32, 0}});
  uneven.tensors[0].offset = 2;
  EXPECT_EQ(
      load::cast_text(load::cast_summary(uneven, graph::DType::f16), graph::DType::f16),
      "The cast to F16 changes nothing: 1 tensor stays as stored: 1 has bytes that are not whole elements.");
  const std::uint64_t most = std::uint64_t{1} << 63;
  const graph::MetaGraph large = graph_of({{"w", graph::DType::f8_e4m3, {most}, most, 0}});
  EXPECT_EQ(load::cast_text(load::cast_summary(large, graph::DType::f32), graph::DType::f32),
            "The cast to F32 changes nothing: 1 tensor stays as stored: 1 would be too large.");
  const graph::MetaGraph blocks = graph_of({{"w", graph::DType::q8_0, {32}, 34, 0}});
  EXPECT_EQ(load::cast_text(load::cast_summary(blocks, graph::DType::f16), graph::DType::f16),
            "The cast to F16 changes nothing: 1 tensor stays as stored: 1 is quantized already.");
}

}  // namespace

}  // namespace loadline::tests
