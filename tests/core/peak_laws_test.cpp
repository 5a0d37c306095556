// The laws of the table of methods, evaluated on random models, against the projected peaks.
#include "core/load/answer/projection.h"
#include "core/load/request/method.h"
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

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace loadline {
namespace {

// Layers with experts, in up to four files; of every third the embedding is the head.
MetaGraph random_model(std::mt19937_64& random) {
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
  MetaGraph graph = testing::model_of(weights);
  if (tied) testing::tie(graph, "lm_head.weight", 0);
  graph.format = random() % 2 == 0 ? "torch" : "safetensors";
  graph.files.resize(1 + random() % 4);
  for (Storage& storage : graph.storages)
    storage.file = FileId{static_cast<std::uint32_t>(random() % graph.files.size())};
  return graph;
}

LoadInputs random_options(std::mt19937_64& random, const Method& method, const MetaGraph& graph) {
  constexpr DType kCasts[] = {DType::f32, DType::q4_0};
  LoadInputs options = {.request = {.staging_bytes = 4096 * (4 + random() % 9),
                                    .slots = 1 + static_cast<std::uint32_t>(random() % 4)}};
  options.request.activation_bytes = random() % 2 == 0 ? 0 : random() % 9000;
  options.request.runai_buffer = random() % 9000;
  if (random() % 3 == 0) options.request.shard_bytes = 1 + random() % 4000;
  if (random() % 2 == 0) options.request.flush_bytes = random() % 4000;
  if (method.traits.casts && random() % 2 == 0) options.request.cast = kCasts[random() % 2];
  if (method.traits.offloads && random() % 2 == 0)
    options.placement = testing::random_placement(random, graph, method);
  options.request.workers = 1 + static_cast<std::uint32_t>(random() % 4);
  if (random() % 3 == 0) options.request.repack = CpuRepack::arm;
  options.request.doubled_ties = random() % 2 == 0;
  if (method.id.starts_with("llama_cpp") && random() % 2 == 0)
    for (std::uint32_t i = 0; i < graph.storages.size(); ++i)
      if (options.placement.of(StorageId{i}) == Home::device && random() % 4 == 0)
        options.placement.twins.push_back(StorageId{i});
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
    const Method& method = methods()[seed % methods().size()];
    const MetaGraph graph = random_model(random);
    const LoadInputs options = random_options(random, method, graph);
    const LawPeaks law = evaluate_law(method.peak_law, law_values(graph, options));
    for (const Order& order : orders()) {
      SCOPED_TRACE(fmt::format("{} {} seed {}: {}", method.id, order.id, seed, method.peak_law));
      const Timeline timeline = project(graph, method, order, options).timeline;
      const auto peak = [&](Space space) { return timeline.peaks[index(space)].bytes; };
      Seen& known = seen[method.id];
      ++known.tried;
      if (law.unified) {
        EXPECT_LE(timeline.unified.bytes, *law.unified);
        known.tight += timeline.unified.bytes == *law.unified;
        continue;
      }
      EXPECT_LE(peak(Space::device), law.spaces[index(Space::device)]);
      EXPECT_LE(peak(Space::host), law.spaces[index(Space::host)]);
      EXPECT_LE(peak(Space::page_cache), law.spaces[index(Space::page_cache)]);
      EXPECT_LE(peak(Space::staging), law.spaces[index(Space::staging)]);
      known.tight += peak(Space::device) == law.spaces[index(Space::device)] &&
                     peak(Space::host) == law.spaces[index(Space::host)] &&
                     peak(Space::page_cache) == law.spaces[index(Space::page_cache)] &&
                     peak(Space::staging) == law.spaces[index(Space::staging)];
    }
  }
  // a bound that nothing reaches would be no law
  for (const auto& [id, known] : seen) EXPECT_GT(known.tight * 20, known.tried) << id;
  for (const char* id : {"state_dict", "sequential", "per_tensor", "staged_ring", "shard_by_shard",
                         "fused_in_place", "cast_on_host", "layer_streaming", "layer_streaming_prefetch",
                         "direct", "host_import", "pinned_pool"})
    EXPECT_EQ(seen.at(id).tight, seen.at(id).tried) << id;
}

TEST(PeakLaws, TellWhatIsWrongWithOne) {
  const LawValues values = {.W = 10, .w = 4, .slot = 3};
  const auto fault = [&](std::string_view law) -> std::string {
    try {
      (void)evaluate_law(law, values);
      return "";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::malformed) << law;
      return error.what();
    }
  };
  for (const char* law :
       {"", "W", "disk W", "device", "device Z", "device W +", "device W (cast: W", "device W (W)",
        "device W (never: W)", "device w* - W", "device max(W", "host 'W'", "host slots(W, W)"})
    EXPECT_NE(fault(law), "") << law;
  EXPECT_NE(fault("device Z").find("'Z' is no symbol"), std::string::npos);
  EXPECT_EQ(fault("device 2W + w*, host max(W, 3w*), staging slots(W), page cache 4 MiB (disk: 0)"), "");
}

TEST(PeakLaws, CasesReplaceOrAdd) {
  LawValues values = {.W = 10, .w = 4, .slot = 4};
  const auto host = [&] {
    return evaluate_law("host W (cast: w*; disk: + 2w*; pickled: + slots(W))", values)
        .spaces[index(Space::host)];
  };
  EXPECT_EQ(host(), 10u);
  values.disk = true;
  EXPECT_EQ(host(), 18u);
  values.cast = true;
  EXPECT_EQ(host(), 12u);
  values.pickled = true;
  EXPECT_EQ(host(), 24u);
  EXPECT_EQ(evaluate_law("unified 2W", values).unified, 20u);
}

}  // namespace
}  // namespace loadline
