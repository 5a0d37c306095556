// Advice against projections of everything that it could have said.
#include "core/load/answer/advice.h"

#include "core/base/error.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <optional>
#include <random>
#include <stop_token>
#include <string>
#include <tuple>
#include <vector>

#include <gtest/gtest.h>

namespace loadline {
namespace {

constexpr std::array kStages = {AdviceStage::one_change, AdviceStage::two_changes, AdviceStage::streaming,
                                AdviceStage::streaming_and_another};

// Rows of 32 numbers, so that casts to blocks apply, with an embedding, layers and a head in up to two files.
MetaGraph random_model(std::mt19937_64& random) {
  MetaGraph graph;
  graph.format = random() % 2 == 0 ? "safetensors" : "gguf";
  graph.files.resize(1 + random() % 2);
  std::uint64_t offset = 0;
  const std::uint32_t layers = 1 + static_cast<std::uint32_t>(random() % 8);
  const DType dtype = random() % 2 == 0 ? DType::f32 : DType::i32;  // whole numbers are not cast
  const auto add = [&](const std::string& name) {
    const std::uint64_t rows = 1 + random() % 24;
    const FileId file{static_cast<std::uint32_t>(random() % graph.files.size())};
    const StorageId id{static_cast<std::uint32_t>(graph.storages.size())};
    graph.storages.push_back(plain_storage(file, offset, rows * 128));
    graph.tensors.push_back({name, dtype, {rows, 32}, {}, id, 0});
    offset += rows * 128;
  };
  add("model.embed_tokens.weight");
  for (std::uint32_t i = 0; i < layers; ++i) add("model.layers." + std::to_string(i) + ".mlp.weight");
  add("model.norm.weight");
  add("lm_head.weight");
  // what cannot be mapped must be held, so that more is left to streaming
  if (random() % 3 == 0)
    for (Storage& storage : graph.storages) storage.encoding = Encoding::deflate;
  return graph;
}

AdviceRequest random_request(std::mt19937_64& random, const MetaGraph& graph) {
  AdviceRequest request;
  request.inputs.request.slots = 1 + static_cast<std::uint32_t>(random() % 4);
  request.inputs.request.staging_bytes =
      request.inputs.request.slots * (std::uint64_t{4} << 10) * (1 + random() % 64);
  request.inputs.request.activation_bytes = random() % 400;
  request.inputs.request.flush_bytes = random() % 2000;
  const std::size_t asked = random() % 4 == 0 ? 5 : 1;
  for (std::size_t i = 0; i < asked; ++i) {
    const Method& method = methods()[random() % methods().size()];
    const Order& order = orders()[random() % orders().size()];
    request.loads.push_back({&method, {std::string(order.id), &order, {}}});
  }
  const std::uint64_t weights = storage_bytes(graph);
  const auto budget = [&] { return weights / 16 * (1 + random() % (random() % 2 == 0 ? 4 : 36)); };
  if (random() % 3 == 0) {
    request.inputs.spaces = kAllSpaces;
    request.budget.unified = budget();
  } else {
    request.budget.device = budget();
    if (random() % 2 == 0) request.budget.host = budget();
  }
  if (random() % 4 == 0) {
    request.loads = {{&find_method("accelerate"), request.loads[0].order}};
    const auto host = random() % 2 == 0 ? std::nullopt : std::optional(weights / 16 * (random() % 16));
    request.inputs.placement = place_automatically(graph, weights / 16 * (random() % 16), host);
  }
  return request;
}

// Of a candidate, or nothing where it cannot be done or does not fit.
struct Outcome {
  const AdviceCandidate* candidate = nullptr;
  double seconds = 0;
  std::uint64_t held = 0;
  std::vector<std::pair<std::string_view, std::string>> arguments;
};

bool ranks_before(const Outcome& a, const Outcome& b) {
  if (takes_less(*a.candidate, *b.candidate)) return true;
  if (takes_less(*b.candidate, *a.candidate)) return false;
  return std::tie(a.seconds, a.held, a.arguments) < std::tie(b.seconds, b.held, b.arguments);
}

std::optional<Outcome> exhaustive(const MetaGraph& graph, const AdviceRequest& request,
                                  const AdviceSpace& space, const std::vector<AdviceCandidate>& candidates) {
  std::optional<Outcome> best;
  for (const AdviceCandidate& candidate : candidates) {
    const LoadInputs options = space.inputs(candidate);
    try {
      const Projection projection = project(graph, *candidate.method, *candidate.order->row, options);
      EXPECT_LE(space.device_bound(candidate), projection.timeline.peaks[index(Space::device)].bytes)
          << candidate.method->id;
      if (projection.maps_files && !mapping_refusal(graph).empty()) continue;
      if (!check_budget(projection, request.budget).fits()) continue;
      Outcome outcome{&candidate, projection.seconds, held_peak(projection.timeline),
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
    const MetaGraph graph = random_model(random);
    const AdviceRequest request = random_request(random, graph);
    const AdviceSpace space(graph, request);
    Progress progress;
    const Advice advice = advise(graph, request, progress, 1 + random() % 2, 1 << 20);
    ASSERT_TRUE(advice.complete);
    std::size_t stage = 0;
    for (; stage < kStages.size(); ++stage) {
      const std::vector<AdviceCandidate> candidates = space.candidates(kStages[stage]);
      ASSERT_TRUE(std::is_sorted(candidates.begin(), candidates.end(), takes_less));
      const auto best = exhaustive(graph, request, space, candidates);
      if (!best) continue;
      ASSERT_FALSE(advice.loads.empty());
      EXPECT_EQ(advice.loads.front().settings, best->arguments);
      EXPECT_EQ(advice.loads.front().seconds, best->seconds);
      EXPECT_EQ(advice.loads.front().held, best->held);
      break;
    }
    ++answered[stage];
    EXPECT_EQ(advice.nearest.has_value(), advice.loads.empty());
    EXPECT_EQ(advice.loads.empty(), stage == kStages.size());
    EXPECT_LE(advice.loads.size(), kMostAdvice);
    for (const AdvisedLoad& load : advice.loads) EXPECT_TRUE(load.verdict.fits());
  }
  // the draw reaches what it is about
  EXPECT_GT(answered[0], 10);
  EXPECT_GT(answered[1], 10);
  EXPECT_GT(answered[2], 0);
  EXPECT_GT(answered[4], 0);
}

MetaGraph model_of(std::uint64_t rows) {
  MetaGraph graph;
  graph.files.resize(1);
  for (std::uint32_t i = 0; i < 4; ++i) {
    graph.storages.push_back(plain_storage(FileId{0}, i * rows * 128, rows * 128));
    graph.tensors.push_back({"t" + std::to_string(i), DType::f32, {rows, 32}, {}, StorageId{i}, 0});
  }
  return graph;
}

AdviceRequest request_of(std::string_view method, Budget budget) {
  AdviceRequest request;
  request.loads.push_back({&find_method(method), {"file", &find_order("file"), {}}});
  request.budget = budget;
  return request;
}

Advice advice_for(const MetaGraph& graph, const AdviceRequest& request) {
  Progress progress;
  return advise(graph, request, progress);
}

TEST(Advice, ASmallerRingGoesBeforeAnotherMethod) {
  const MetaGraph graph = model_of(1 << 16);  // 32 MiB
  AdviceRequest request = request_of("staged_ring", {.host = 6 << 20});
  request.inputs.request.staging_bytes = 16 << 20;
  const Advice advice = advice_for(graph, request);
  ASSERT_GE(advice.loads.size(), 2u);
  const std::vector<std::pair<std::string_view, std::string>> expected = {
      {"method", "staged_ring"}, {"order", "file"}, {"staging", "4MiB"}};
  EXPECT_EQ(advice.loads[0].settings, expected);
  EXPECT_EQ(advice.loads[0].changes, std::vector<std::string>{"a ring of 4.00 MiB in 4 slots"});
  EXPECT_EQ(advice.loads[0].peaks[index(Space::staging)], 4u << 20);
}

TEST(Advice, ANarrowerTypeGoesBeforeStreaming) {
  const MetaGraph graph = model_of(1 << 16);
  const Advice advice = advice_for(graph, request_of("per_tensor", {.device = 17 << 20}));
  ASSERT_FALSE(advice.loads.empty());
  EXPECT_EQ(advice.loads[0].changes, std::vector<std::string>{"cast to BF16"});
  EXPECT_EQ(advice.loads[0].peaks[index(Space::device)], 16u << 20);
}

TEST(Advice, ALoaderOfTheFilesGoesBeforeOneOfOthers) {
  MetaGraph graph = model_of(1 << 16);
  const AdviceRequest request = request_of("state_dict", {.device = 33 << 20, .host = 4 << 20});
  graph.format = "gguf";
  const auto advises_llama_cpp = [&] {
    const Advice advice = advice_for(graph, request);
    return std::any_of(advice.loads.begin(), advice.loads.end(), [](const AdvisedLoad& load) {
      return load.changes == std::vector<std::string>{"method llama_cpp_ring"};
    });
  };
  EXPECT_TRUE(advises_llama_cpp());
  graph.format = "safetensors";
  EXPECT_FALSE(advises_llama_cpp());
  const auto place_of = [&](const std::vector<AdviceCandidate>& candidates, std::string_view change) {
    return std::find_if(
               candidates.begin(), candidates.end(),
               [&](const AdviceCandidate& candidate) { return candidate.changes[0].text == change; }) -
           candidates.begin();
  };
  const AdviceSpace space(graph, request);
  const std::vector<AdviceCandidate> tensors = space.candidates(AdviceStage::one_change);
  const auto other = place_of(tensors, "method llama_cpp_ring, for files of the format gguf");
  EXPECT_LT(other, std::ssize(tensors));
  EXPECT_LT(place_of(tensors, "method fastsafetensors"), other);
  graph.format = "gguf";
  const AdviceSpace of_gguf(graph, request);
  const std::vector<AdviceCandidate> blocks = of_gguf.candidates(AdviceStage::one_change);
  const auto safetensors = place_of(blocks, "method fastsafetensors, for files of the format safetensors");
  EXPECT_LT(safetensors, std::ssize(blocks));
  EXPECT_LT(place_of(blocks, "method llama_cpp_ring"), safetensors);
}

// The command says --max-memory, which plan counts in bytes as they land.
TEST(Advice, AMapThatWasAskedForIsMadeAnewForAnotherType) {
  const MetaGraph graph = model_of(1 << 16);  // four of 8 MiB
  AdviceRequest request = request_of("accelerate", {.host = 8 << 20});
  request.inputs.placement = place_automatically(graph, 17 << 20, {});
  EXPECT_EQ(request.inputs.placement.homes,
            (std::vector<Home>{Home::device, Home::host, Home::host, Home::host}));
  const AdviceSpace space(graph, request);
  std::size_t casts = 0;
  for (const AdviceStage stage : kStages)
    for (const AdviceCandidate& candidate : space.candidates(stage)) {
      if (!candidate.request.cast) continue;
      ++casts;
      const LoadInputs options = space.inputs(candidate);
      EXPECT_EQ(options.placement, place_automatically(graph, 17 << 20, {}, candidate.request.cast));
      const Projection projection = project(graph, *candidate.method, *candidate.order->row, options);
      // half as large, all are on the device
      EXPECT_EQ(projection.timeline.final_bytes[index(Space::host)], 0u);
      EXPECT_LE(space.device_bound(candidate), projection.timeline.peaks[index(Space::device)].bytes);
    }
  EXPECT_GT(casts, 4u);
}

// An embedding that is the head as well comes to the device with the first layer, like a head of its own.
TEST(Advice, LayersCountAnEmbeddingThatIsTheHead) {
  MetaGraph graph = model_of(1 << 16);  // four of 8 MiB
  graph.tensors[0].name = Name("token_embd.weight");
  for (std::uint32_t i = 1; i < 4; ++i) graph.tensors[i].name = Name("blk." + std::to_string(i) + ".w");
  const std::uint64_t budget = 17 << 20;
  const AdviceRequest request = request_of("llama_cpp_ring", {.device = budget});
  const AdviceSpace space(graph, request);
  std::uint64_t most = 0;
  for (const AdviceCandidate& candidate : space.candidates(AdviceStage::one_change))
    for (const auto& [option, value] : space.settings(candidate)) {
      if (option != "gpu_layers") continue;
      most = std::max<std::uint64_t>(most, std::stoull(value));
      EXPECT_LE(device_lower_bound(graph, space.inputs(candidate)), budget) << value;
    }
  EXPECT_EQ(most, 2u);
}

TEST(Advice, ATypeInWhichTheModelHasNoSizeIsNoWayOut) {
  MetaGraph graph = model_of(1);
  for (std::uint32_t i = 0; i < 4; ++i) {
    graph.storages[i].bytes = std::uint64_t{1} << 61;
    graph.tensors[i].dtype = DType::f8_e4m3;
  }
  AdviceRequest request = request_of("per_tensor", {.device = 1 << 20});
  const AdviceSpace space(graph, request);
  std::size_t casts = 0;
  for (const AdviceCandidate& candidate : space.candidates(AdviceStage::one_change)) {
    if (!candidate.request.cast) continue;
    ++casts;
    EXPECT_EQ(candidate.request.cast, DType::q4_0);
  }
  EXPECT_EQ(casts, 1u);
}

TEST(Advice, WhereNothingFitsItTellsTheNearest) {
  const MetaGraph graph = model_of(1 << 16);
  AdviceRequest request = request_of("per_tensor", {.device = 1 << 20, .host = 1 << 20});
  request.inputs.request.activation_bytes = 2 << 20;
  const Advice advice = advice_for(graph, request);
  EXPECT_TRUE(advice.loads.empty());
  ASSERT_TRUE(advice.nearest);
  // all weights off the device leave the activations, on the host
  EXPECT_EQ(advice.nearest->verdict.device_over + advice.nearest->verdict.host_over, 1u << 20);
  const AdviceSpace space(graph, request);
  for (const AdviceStage stage : kStages)
    for (const AdviceCandidate& candidate : space.candidates(stage)) {
      const Projection other =
          project(graph, *candidate.method, *candidate.order->row, space.inputs(candidate));
      EXPECT_LE(advice.nearest->verdict.device_over, check_budget(other, request.budget).device_over);
    }
}

TEST(Advice, EncodedFilesAreNotMapped) {
  MetaGraph graph = model_of(1 << 10);
  for (Storage& storage : graph.storages) storage.encoding = Encoding::deflate;
  const Advice advice = advice_for(graph, request_of("state_dict", {.device = 600 << 10}));
  ASSERT_FALSE(advice.loads.empty());
  for (const AdvisedLoad& load : advice.loads) EXPECT_EQ(load.peaks[index(Space::page_cache)], 0u);
}

TEST(Advice, EndsAtItsLimitAndWhenCancelled) {
  const MetaGraph graph = model_of(1 << 10);
  const AdviceRequest request = request_of("state_dict", {.device = 1});
  Progress progress;
  const Advice advice = advise(graph, request, progress, 2, 3);
  EXPECT_EQ(advice.tried, 3u);
  EXPECT_FALSE(advice.complete);
  std::stop_source source;
  source.request_stop();
  Progress stopped(source.get_token());
  EXPECT_THROW(advise(graph, request, stopped), Error);
}

}  // namespace
}  // namespace loadline
