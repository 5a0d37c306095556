// The laws of the table of methods, evaluated on random models, against the projected peaks.
#include "core/load/expert_groups.h"
#include "core/load/load_units.h"
#include "core/load/projection.h"
#include "core/load/shards.h"
#include "core/load/storage_cast.h"
#include "tests/support/plan_models.h"

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

using Bytes = std::uint64_t;

// What methods.h calls W, w*, ...
struct Symbols {
  Bytes W = 0, w = 0, V = 0, v = 0, c = 0, S = 0, g = 0, x = 0, y = 0, B = 0, F = 0, Q = 0;
  Bytes slot = 0, limit = 0;
  Bytes host = 0, disk = 0, twins = 0;  // what a placement puts there, as it lands
  Bytes ties = 0;                       // the most that ExecuTorch holds for weights of two names
  bool cast = false;
  bool pickled = false;
};

// By name, as load_units() does it by storage: a tied weight is in every unit that uses it.
std::vector<Bytes> units_of(const MetaGraph& graph) {
  std::map<std::tuple<Phase, int, std::uint64_t>, std::set<StorageId>> units;
  for (const Tensor& tensor : graph.tensors) units[forward_key(tensor.name.view())].insert(tensor.storage);
  std::vector<Bytes> sizes;
  for (const auto& [key, storages] : units) {
    sizes.push_back(0);
    for (const StorageId id : storages) sizes.back() += graph.storage(id).bytes;
  }
  return sizes;
}

// Host copies and staging buffers that wait for the last name, and a tensor of the device for each.
Bytes held_for_ties(const MetaGraph& graph, bool doubled) {
  Bytes held = 0;
  for (const std::vector<TensorId>& group : tied_groups(graph))
    held += graph.storage(graph.tensor(group.front()).storage).bytes * (doubled ? 2 * group.size() : 1);
  return held;
}

Symbols symbols_of(const MetaGraph& graph, const MethodOptions& options) {
  Symbols s;
  const std::vector<Bytes> landed = loaded_bytes(graph, options.cast);
  const std::vector<std::uint32_t> shards = shards_of(graph, options.shard_bytes);
  std::map<std::uint32_t, Bytes> shard_bytes;
  for (const StorageId id : find_order("file").make(graph)) {
    const Bytes stored = graph.storage(id).bytes, lands = landed[index(id)];
    s.W += stored;
    s.w = std::max(s.w, stored);
    s.v = std::max(s.v, lands);
    s.c = std::max(s.c, stored + lands);
    s.S = std::max(s.S, shard_bytes[shards[index(id)]] += stored);
    const Home home = options.placement.of(id);
    (home == Home::device ? s.V : home == Home::host ? s.host : s.disk) += lands;
  }
  for (const ExpertGroup& group : expert_groups(graph, find_order("file").make(graph))) {
    Bytes bytes = 0;
    for (const StorageId id : group.storages) bytes += landed[index(id)];
    s.g = std::max(s.g, bytes);
  }
  for (const StorageId id : options.placement.twins) s.twins += landed[index(id)];
  s.ties = held_for_ties(graph, options.doubled_ties);
  Bytes before = 0;
  for (const Bytes unit : units_of(graph)) {
    s.x = std::max(s.x, unit);
    s.y = std::max(s.y, before + unit);
    before = unit;
  }
  s.slot = options.staging_bytes / options.slots;
  s.B = s.slot * options.slots;
  s.F = options.flush_bytes;
  s.Q = options.activation_bytes;
  s.limit = options.memory_limit;
  s.cast = options.cast.has_value();
  s.pickled = graph.format == "torch";
  return s;
}

// What a law says; a space that it does not name holds nothing. Without `unified` that is the sum.
struct Law {
  Bytes device = 0, host = 0, page_cache = 0, staging = 0;
  std::optional<Bytes> unified = {};  // then nothing is said of single spaces
};

using LawOf = Law (*)(const Symbols& s);

// By method; each as its peak_law reads.
const std::map<std::string_view, LawOf> kLaws = {
    {"to_device",
     [](const Symbols& s) {
       return Law{s.V + s.Q, s.V + (s.cast ? s.w : 0)};
     }},
    {"state_dict",
     [](const Symbols& s) {
       return Law{std::max(2 * s.W, s.W + s.Q), s.W};
     }},
    {"sequential",
     [](const Symbols& s) {
       return Law{s.W + std::max(s.w, s.Q), s.W};
     }},
    {"meta_map_location",
     [](const Symbols& s) {
       return Law{std::max(2 * s.W, s.W + s.Q), s.w};
     }},
    {"mmap_assign",
     [](const Symbols& s) {
       return Law{s.W + s.Q, 0, s.W};
     }},
    {"mmap_copy",
     [](const Symbols& s) {
       return Law{s.W + s.Q, s.W, s.W};
     }},
    {"mmap_state_dict",
     [](const Symbols& s) {
       return Law{std::max(2 * s.W, s.W + s.Q), s.W, s.W};
     }},
    {"per_tensor",
     [](const Symbols& s) {
       return Law{s.V + s.Q, s.cast ? s.c : s.w};
     }},
    {"staged_ring",
     [](const Symbols& s) {
       return Law{s.V + s.Q, 0, 0, s.B};
     }},
    {"executorch_before", [](const Symbols& s) { return Law{.unified = 2 * s.W + s.Q + s.w + s.ties}; }},
    {"executorch_after",
     [](const Symbols& s) { return Law{.unified = std::max(s.W + 2 * s.w + s.F, s.W + s.Q) + s.ties}; }},
    {"accelerate",
     [](const Symbols& s) {
       return Law{s.V + (s.cast ? std::max(s.S, s.Q) : s.Q),
                  (s.pickled ? s.S : 0) + s.host + (s.disk > 0 ? s.v : 0), s.pickled ? 0 : s.S};
     }},
    {"fastsafetensors",
     [](const Symbols& s) {
       return Law{s.W + s.Q, 0, 0, s.B};
     }},
    {"fastsafetensors_copy",
     [](const Symbols& s) {
       return Law{std::max(s.W + s.S, s.W + s.Q), 0, 0, s.B};
     }},
    {"runai",
     [](const Symbols& s) {
       return Law{s.W + s.Q, std::min(std::max(s.limit, s.w), s.W)};
     }},
    {"llama_cpp_ring",
     [](const Symbols& s) {
       return Law{s.V + s.Q, s.host + s.disk + s.twins, 0, 4 << 20};
     }},
    {"llama_cpp_mmap",
     [](const Symbols& s) {
       return Law{s.V + s.Q, 0, s.W};
     }},
    {"pinned_pool",
     [](const Symbols& s) {
       return Law{s.W + s.Q, 0, 0, (s.W + s.slot - 1) / s.slot * s.slot};
     }},
    {"from_pretrained",
     [](const Symbols& s) {
       return Law{s.V + s.Q, s.V + s.S};
     }},
    {"transformers_v5",
     [](const Symbols& s) {
       return Law{s.V + std::max(2 * s.g, s.Q), s.cast ? s.v : 0, s.W};
     }},
    {"fused_in_place",
     [](const Symbols& s) {
       return Law{s.V + s.Q, s.v};
     }},
    {"cast_on_host",
     [](const Symbols& s) {
       return Law{s.V + s.Q, s.W};
     }},
    {"cast_on_device",
     [](const Symbols& s) {
       return Law{s.V + std::max(s.w, s.Q), s.w};
     }},
    {"layer_streaming",
     [](const Symbols& s) {
       return Law{s.x + s.Q, s.x};
     }},
    {"layer_streaming_prefetch",
     [](const Symbols& s) {
       return Law{s.x + s.Q, s.y};
     }},
    {"direct", [](const Symbols& s) { return Law{s.W + s.Q}; }},
    {"host_import", [](const Symbols& s) {
       return Law{s.W + s.Q, 0, 0, s.w};
     }}};

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

MethodOptions random_options(std::mt19937_64& random, const Method& method, const MetaGraph& graph) {
  constexpr DType kCasts[] = {DType::f32, DType::q4_0};
  MethodOptions options = {.staging_bytes = 4096 * (4 + random() % 9),
                           .slots = 1 + static_cast<std::uint32_t>(random() % 4)};
  options.activation_bytes = random() % 2 == 0 ? 0 : random() % 9000;
  options.memory_limit = random() % 9000;
  if (random() % 3 == 0) options.shard_bytes = 1 + random() % 4000;
  if (random() % 2 == 0) options.flush_bytes = random() % 4000;
  if (method.traits.casts && random() % 2 == 0) options.cast = kCasts[random() % 2];
  if (method.traits.offloads && random() % 2 == 0)
    for (std::size_t i = 0; i < graph.storages.size(); ++i)
      options.placement.homes.push_back(static_cast<Home>(random() % 3));
  options.doubled_ties = random() % 2 == 0;
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
  ASSERT_EQ(kLaws.size(), methods().size());
  std::map<std::string_view, Seen> seen;
  for (std::uint64_t seed = 0; seed < 2700; ++seed) {
    std::mt19937_64 random(seed);
    const Method& method = methods()[seed % methods().size()];
    const MetaGraph graph = random_model(random);
    const MethodOptions options = random_options(random, method, graph);
    const Law law = kLaws.at(method.id)(symbols_of(graph, options));
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
      EXPECT_LE(peak(Space::device), law.device);
      EXPECT_LE(peak(Space::host), law.host);
      EXPECT_LE(peak(Space::page_cache), law.page_cache);
      EXPECT_LE(peak(Space::staging), law.staging);
      known.tight += peak(Space::device) == law.device && peak(Space::host) == law.host &&
                     peak(Space::page_cache) == law.page_cache && peak(Space::staging) == law.staging;
    }
  }
  // a bound that nothing reaches would be no law
  for (const auto& [id, known] : seen) EXPECT_GT(known.tight * 20, known.tried) << id;
  for (const char* id : {"state_dict", "sequential", "mmap_assign", "per_tensor", "staged_ring", "runai",
                         "from_pretrained", "fused_in_place", "cast_on_host", "layer_streaming",
                         "layer_streaming_prefetch", "direct", "host_import", "pinned_pool"})
    EXPECT_EQ(seen.at(id).tight, seen.at(id).tried) << id;
}

// What the words of a law are made of: a symbol that methods.h does not define would say nothing.
TEST(PeakLaws, UseTheSymbolsThatAreDefined) {
  const std::set<std::string> known = {
      "at",  "most", "device", "host", "page",  "cache", "staging", "unified", "or", "disk",
      "max", "min",  "cast",   "in",   "whole", "slots", "limit",   "MiB",     "W",  "w",
      "V",   "v",    "c",      "S",    "g",     "x",     "y",       "B",       "F",  "Q"};
  for (const Method& method : methods()) {
    std::string word;
    for (const char letter : std::string(method.peak_law) + " ") {
      if (std::isalpha(static_cast<unsigned char>(letter)) != 0) {
        word += letter;
        continue;
      }
      if (!word.empty()) EXPECT_TRUE(known.contains(word)) << method.id << ": " << word;
      word.clear();
    }
  }
}

}  // namespace
}  // namespace loadline
