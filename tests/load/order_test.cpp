// Orders of tensors: `optimal`, and lists as text.

#include "core/base/error.h"
#include "core/load/answer/projection.h"
#include "core/load/methods/builder.h"
#include "core/load/order/optimal_order.h"
#include "core/load/request/bind_request.h"
#include "core/plan/dry_machine.h"
#include "tests/support/builders.h"
#include "tests/support/random_placement.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include <fmt/core.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

namespace loadline::tests {

// --- The order `optimal`: the rule and every method of the table against all permutations.

namespace {

std::vector<load::Turn> random_turns(std::mt19937_64& random) {
  std::vector<load::Turn> turns(1 + random() % 7);
  for (std::size_t i = 0; i < turns.size(); ++i) {
    const auto net = static_cast<std::int64_t>(random() % 21) - 10;
    const auto over = static_cast<std::int64_t>(random() % 8);
    turns[i] = {graph::StorageId{static_cast<std::uint32_t>(i)}, std::max<std::int64_t>(net, 0) + over, net};
  }
  return turns;
}

TEST(Turns, TheRuleEqualsBruteForce) {
  std::mt19937_64 random(7);
  for (int round = 0; round < 3000; ++round) {
    std::vector<load::Turn> turns = random_turns(random), sorted = turns;
    load::sort_turns(sorted);
    const auto by_id = [](const load::Turn& a, const load::Turn& b) { return a.storage < b.storage; };
    std::int64_t least = load::peak_of(turns);
    while (std::next_permutation(turns.begin(), turns.end(), by_id))
      least = std::min(least, load::peak_of(turns));
    ASSERT_EQ(load::peak_of(sorted), least) << "round " << round;
  }
}

// Small models of rows of 32 numbers, so that a cast to blocks applies, in up to four files.
graph::MetaGraph random_model(std::mt19937_64& random) {
  graph::MetaGraph graph;
  graph.files.resize(1 + random() % 4);
  std::uint64_t offset = 0;
  const std::size_t count = 1 + random() % 5;
  for (std::uint32_t i = 0; i < count; ++i) {
    const std::uint64_t rows = random() % 8 == 0 ? 0 : 1 + random() % 9;
    const graph::FileId file{static_cast<std::uint32_t>(random() % graph.files.size())};
    graph.storages.push_back(graph::plain_storage(file, offset, rows * 64));
    offset += rows * 64;
    const graph::DType dtype = random() % 4 == 0 ? graph::DType::i16 : graph::DType::bf16;
    graph.tensors.push_back({"t" + std::to_string(i), dtype, {rows, 32}, {}, graph::StorageId{i}, 0});
  }
  if (random() % 3 == 0) {
    graph::Tensor tied = graph.tensors[random() % count];
    tied.name = graph::Name("tied");
    graph.tensors.push_back(tied);
  }
  return graph;
}

load::BoundRequest random_options(std::mt19937_64& random, const load::Method& method,
                                  const graph::MetaGraph& graph) {
  load::BoundRequest options;
  options.request.slots = static_cast<std::uint32_t>(1 + random() % 3);
  options.request.staging_bytes = 4096 * options.request.slots;
  options.request.activation_bytes = random() % 2 == 0 ? 0 : random() % 3000;
  options.request.runai_buffer = random() % 2000;
  const bool flushes = method.id.starts_with("executorch") || method.id == "flushed";
  if (flushes && random() % 2 == 0) options.request.flush_bytes = random() % 2000;
  options.request.doubled_ties = random() % 2 == 0;
  if (random() % 3 == 0) options.request.shard_bytes = 1 + random() % 1500;
  const graph::DType cast = random() % 2 == 0 ? graph::DType::f32 : graph::DType::q8_0;
  if (load::can_cast_to(method, cast) && random() % 3 != 0) options.request.cast = cast;
  if (method.traits.offloads && random() % 2 == 0)
    options.placement = testing::random_placement(random, graph, method);
  if (method.id.starts_with("llama_cpp"))
    for (std::uint32_t i = 0; i < graph.storages.size(); ++i)
      if (options.placement.of(graph::StorageId{i}) == load::Home::device && random() % 4 == 0)
        options.placement.twins.push_back(graph::StorageId{i});
  return options;
}

// Each space alone, and all.
constexpr std::array<unsigned, 5> kMasks = {1, 2, 4, 8, plan::kAllSpaces};
using Peaks = std::array<std::uint64_t, kMasks.size()>;

Peaks peaks_of(const plan::Plan& plan) {
  Peaks live = {}, peaks = {};
  for (const plan::Step& step : plan.steps) {
    const plan::Block& block = plan.block(step.block);
    for (std::size_t i = 0; i < kMasks.size() && step.verb != plan::Verb::copy; ++i) {
      if ((kMasks[i] & plan::space_bit(block.space)) == 0) continue;
      live[i] = step.verb == plan::Verb::alloc ? live[i] + block.bytes : live[i] - block.bytes;
      peaks[i] = std::max(peaks[i], live[i]);
    }
  }
  return peaks;
}

Peaks least_of_all(const graph::MetaGraph& graph, const load::Method& method,
                   const load::BoundRequest& options) {
  load::StorageOrder order = load::find_order("file").make(graph);
  std::sort(order.begin(), order.end());
  Peaks least;
  least.fill(UINT64_MAX);
  do {
    const Peaks peaks = peaks_of(load::make_plan(graph, method, order, options));
    for (std::size_t i = 0; i < peaks.size(); ++i) least[i] = std::min(least[i], peaks[i]);
  } while (std::next_permutation(order.begin(), order.end()));
  return least;
}

struct Count {
  int tried = 0, proven = 0, least = 0;
};

// Checks the order for each mask, and counts.
void check(const graph::MetaGraph& graph, const load::Method& method, load::BoundRequest options,
           Count& count) {
  const Peaks least = least_of_all(graph, method, options);
  load::StorageOrder all = load::find_order("file").make(graph);
  std::sort(all.begin(), all.end());
  for (std::size_t i = 0; i < kMasks.size(); ++i) {
    SCOPED_TRACE("mask " + std::to_string(kMasks[i]));
    options.spaces = kMasks[i];
    const load::OptimalOrder best = load::optimal_order(graph, method, options);
    load::StorageOrder visited = best.order;
    std::sort(visited.begin(), visited.end());
    ASSERT_EQ(visited, all);
    const std::uint64_t peak = peaks_of(load::make_plan(graph, method, best.order, options))[i];
    EXPECT_EQ(best.peak.has_value(), !method.traits.order_free);
    EXPECT_EQ(best.peak.value_or(peak), peak);
    EXPECT_GE(peak, least[i]);
    if (best.proven) EXPECT_EQ(peak, least[i]);
    ++count.tried;
    count.proven += best.proven ? 1 : 0;
    count.least += peak == least[i] ? 1 : 0;
  }
}

TEST(OptimalOrder, IsNeverProvenWhereAnotherOrderIsBetter) {
  std::map<std::string_view, Count> counts;
  for (std::uint64_t seed = 0; seed < 3000; ++seed) {
    std::mt19937_64 random(seed);
    const load::Method& method = load::methods()[seed % load::methods().size()];
    SCOPED_TRACE(std::string(method.id) + " seed " + std::to_string(seed));
    const graph::MetaGraph graph = random_model(random);
    const load::BoundRequest options = random_options(random, method, graph);
    // the later copies of a tied weight follow whatever is last
    const bool tied = method.traits.flushes && !graph::tied_groups(graph).empty();
    check(graph, method, options,
          counts[options.request.flush_bytes > 0 ? "flush"
                 : tied                          ? "tied"
                                                 : method.id]);
  }
  EXPECT_LT(counts.at("flush").proven, counts.at("flush").tried);
  // whose turns depend on no neighbor
  for (const char* id :
       {"to_device", "shard_by_shard", "meta_assign", "state_dict", "sequential", "meta_map_location",
        "mmap_copy", "per_tensor", "transformers_v5", "executorch_before", "executorch_after", "pinned_pool",
        "staged_ring", "llama_cpp_ring", "cast_on_host", "cast_on_device", "direct", "host_import"})
    EXPECT_EQ(counts.at(id).proven, counts.at(id).tried) << id;
  for (const auto& [id, count] : counts) {
    RecordProperty(std::string(id),
                   std::to_string(count.proven) + " proven of " + std::to_string(count.tried));
    // where turns depend on their neighbors a candidate can miss the least
    const bool grouped = id == "flush" || id == "tied" || id == "runai" || id == "llama_cpp_direct" ||
                         (load::find_method(id).traits.shards && !load::find_method(id).traits.order_free);
    EXPECT_GE(count.least, grouped ? count.tried * 9 / 10 : count.tried) << id;
  }
}

plan::BlockId make(plan::Plan& plan, plan::Space space, std::uint64_t bytes, graph::StorageId id) {
  return plan::alloc(plan, {.bytes = bytes, .space = space, .use = plan::BlockUse::storage, .storage = id});
}

// Loads beside those of the table, that raise and sink the level in every way.
// From host copies to what takes twice as much for odd storages and half for even ones.
plan::Plan cast_from_host(load::MethodBuilder& b) {
  const graph::MetaGraph& graph = b.graph();
  const load::StorageOrder& order = b.order();
  plan::Plan plan;
  std::vector<plan::BlockId> read;
  for (const graph::StorageId id : order)
    read.push_back(make(plan, plan::Space::host, graph.storage(id).bytes, id));
  for (std::size_t i = 0; i < order.size(); ++i) {
    const std::uint64_t bytes = graph.storage(order[i]).bytes;
    const plan::BlockId staging = make(plan, plan::Space::staging, bytes, order[i]);
    make(plan, plan::Space::device, graph::index(order[i]) % 2 == 0 ? bytes / 2 : 2 * bytes, order[i]);
    plan::free(plan, read[i]);
    plan::free(plan, staging);
  }
  return plan;
}

// Two phases that want different orders: allocated with a temporary beside, then sent and freed.
plan::Plan two_phases(load::MethodBuilder& b) {
  const graph::MetaGraph& graph = b.graph();
  const load::StorageOrder& order = b.order();
  plan::Plan plan;
  std::vector<plan::BlockId> held;
  for (const graph::StorageId id : order) {
    const plan::BlockId temporary = make(plan, plan::Space::device, graph.storage(id).bytes, id);
    held.push_back(make(plan, plan::Space::device, graph.storage(id).bytes, id));
    plan::free(plan, temporary);
  }
  for (std::size_t i = 0; i < order.size(); ++i) {
    const plan::BlockId temporary =
        make(plan, plan::Space::device, 2 * graph.storage(order[i]).bytes, order[i]);
    plan::free(plan, temporary);
    plan::free(plan, held[i]);
  }
  return plan;
}

// Staging buffers wait until some bytes are reached: a storage's turn depends on those before it.
plan::Plan flushed(load::MethodBuilder& b) {
  const graph::MetaGraph& graph = b.graph();
  const load::StorageOrder& order = b.order();
  const load::BoundRequest& options = b.bound();
  plan::Plan plan;
  std::vector<plan::BlockId> waiting;
  std::uint64_t bytes = 0;
  const auto flush = [&] {
    for (const plan::BlockId block : waiting) plan::free(plan, block);
    waiting.clear();
    bytes = 0;
  };
  for (const graph::StorageId id : order) {
    waiting.push_back(make(plan, plan::Space::staging, graph.storage(id).bytes, id));
    make(plan, plan::Space::device, graph.storage(id).bytes, id);
    bytes += graph.storage(id).bytes;
    if (bytes >= options.request.flush_bytes) flush();
  }
  flush();
  return plan;
}

// Storages of even and odd numbers are joined, each group when its last one is there.
plan::Plan joined(load::MethodBuilder& b) {
  const graph::MetaGraph& graph = b.graph();
  const load::StorageOrder& order = b.order();
  plan::Plan plan;
  std::array<std::vector<plan::BlockId>, 2> parts;
  std::array<std::size_t, 2> left = {};
  std::array<std::uint64_t, 2> bytes = {};
  for (const graph::StorageId id : order) ++left[graph::index(id) % 2];
  for (const graph::StorageId id : order) {
    const std::size_t group = graph::index(id) % 2;
    parts[group].push_back(make(plan, plan::Space::device, graph.storage(id).bytes, id));
    bytes[group] += graph.storage(id).bytes;
    if (--left[group] > 0) continue;
    make(plan, plan::Space::device, bytes[group], id);
    for (const plan::BlockId part : parts[group]) plan::free(plan, part);
  }
  return plan;
}

// File by file, with a temporary for each storage, and sources that are kept until the file is done.
plan::Plan file_by_file(load::MethodBuilder& b) {
  const graph::MetaGraph& graph = b.graph();
  const load::StorageOrder& order = b.order();
  plan::Plan plan;
  std::vector<bool> done(graph.files.size(), false);
  for (const graph::StorageId first : order) {
    const graph::FileId file = graph.storage(first).file;
    if (done[graph::index(file)]) continue;
    done[graph::index(file)] = true;
    std::vector<plan::BlockId> sources;
    for (const graph::StorageId id : order) {
      if (graph.storage(id).file != file) continue;
      const std::uint64_t bytes = graph.storage(id).bytes;
      sources.push_back(make(plan, plan::Space::page_cache, bytes, id));
      const plan::BlockId temporary = make(plan, plan::Space::device, 2 * bytes, id);
      make(plan, plan::Space::device, graph::index(id) % 2 == 0 ? bytes / 2 : 3 * bytes, id);
      plan::free(plan, temporary);
    }
    for (const plan::BlockId source : sources) plan::free(plan, source);
  }
  return plan;
}

Peaks finals_of(const plan::Plan& plan) {
  Peaks live = {};
  for (const plan::Step& step : plan.steps)
    for (std::size_t i = 0; i < kMasks.size() && step.verb != plan::Verb::copy; ++i)
      if (const plan::Block& block = plan.block(step.block); (kMasks[i] & plan::space_bit(block.space)) != 0)
        live[i] = step.verb == plan::Verb::alloc ? live[i] + block.bytes : live[i] - block.bytes;
  return live;
}

// What a peak that equals it is proven by.
TEST(OptimalOrder, WhatALoadLeavesIsTheSameInEveryOrder) {
  for (std::uint64_t seed = 0; seed < 1000; ++seed) {
    std::mt19937_64 random(seed);
    const load::Method& method = load::methods()[seed % load::methods().size()];
    const graph::MetaGraph graph = random_model(random);
    const load::BoundRequest options = random_options(random, method, graph);
    load::StorageOrder order = load::find_order("file").make(graph);
    const Peaks finals = finals_of(load::make_plan(graph, method, order, options));
    std::shuffle(order.begin(), order.end(), random);
    EXPECT_EQ(finals_of(load::make_plan(graph, method, order, options)), finals)
        << method.id << " seed " << seed;
  }
}

// Over each sum of spaces. Every other method of the table has a model and orders that differ.
TEST(OptimalOrder, ChangesNothingForMethodsThatAreOrderFree) {
  std::map<std::string_view, int> differ;
  for (std::uint64_t seed = 0; seed < 5400; ++seed) {
    std::mt19937_64 random(seed);
    const load::Method& method = load::methods()[seed % load::methods().size()];
    SCOPED_TRACE(std::string(method.id) + " seed " + std::to_string(seed));
    graph::MetaGraph graph = random_model(random);
    for (graph::Tensor& tensor : graph.tensors)  // in up to three layers, or one by one
      if (seed % 3 != 0)
        tensor.name = graph::Name(fmt::format("layers.{}.{}", random() % 3, tensor.name.str()));
    load::BoundRequest options = random_options(random, method, graph);
    if (seed % 2 == 0) options.placement.homes.clear();
    const load::StorageOrder file = load::find_order("file").make(graph);
    load::StorageOrder order = file;
    std::shuffle(order.begin(), order.end(), random);
    plan::DryMachine one, other;
    const plan::Timeline timeline = plan::run(load::make_plan(graph, method, file, options), one);
    const plan::Timeline shuffled = plan::run(load::make_plan(graph, method, order, options), other);
    for (unsigned mask = 1; mask <= plan::kAllSpaces; ++mask) {
      const std::uint64_t peak = plan::peak_over(timeline, mask).bytes,
                          again = plan::peak_over(shuffled, mask).bytes;
      if (method.traits.order_free) EXPECT_EQ(peak, again) << "mask " << mask;
      differ[method.id] += peak != again;
    }
  }
  for (const load::Method& method : load::methods())
    EXPECT_EQ(differ[method.id] == 0, method.traits.order_free) << method.id;
}

// No plan is made: neither cut, which ends at 2^62 bytes, nor refused.
TEST(OptimalOrder, OfMethodsThatAreOrderFreeIsFileOrderAtAnySize) {
  graph::MetaGraph graph;
  graph.files.resize(1);
  graph.storages.push_back(graph::plain_storage(graph::FileId{0}, 0, std::uint64_t{1} << 62));
  graph.tensors.push_back({"t", graph::DType::u8, {std::uint64_t{1} << 62}, {}, graph::StorageId{0}, 0});
  const load::OptimalOrder best = load::optimal_order(graph, load::find_method("direct"), {});
  EXPECT_EQ(best.order, load::find_order("file").make(graph));
  EXPECT_TRUE(best.proven);
  EXPECT_THROW(load::optimal_order(graph, load::find_method("cast_on_device"), {}), Error);
}

// Where no order lowers the peak of the spaces that were asked for, none is left for: not to lower another
// sum, and not by what the rule does not tell apart.
TEST(OptimalOrder, LeavesFileOrderOnlyForALowerPeak) {
  std::size_t kept = 0, left = 0;
  for (std::uint64_t seed = 0; seed < 1500; ++seed) {
    std::mt19937_64 random(seed);
    const load::Method& method = load::methods()[seed % load::methods().size()];
    SCOPED_TRACE(std::string(method.id) + " seed " + std::to_string(seed));
    const graph::MetaGraph graph = random_model(random);
    load::BoundRequest options = random_options(random, method, graph);
    const load::StorageOrder file = load::find_order("file").make(graph);
    for (std::size_t i = 0; i < kMasks.size(); ++i) {
      options.spaces = kMasks[i];
      const load::OptimalOrder best = load::optimal_order(graph, method, options);
      const std::uint64_t in_file_order = peaks_of(load::make_plan(graph, method, file, options))[i];
      EXPECT_EQ(best.order == file, best.peak.value_or(in_file_order) == in_file_order);
      ++(best.order == file ? kept : left);
    }
  }
  EXPECT_GT(kept, 1000u);
  EXPECT_GT(left, 100u);
}

// A head that must come first, and experts of one size, which the rule does not tell apart.
TEST(OptimalOrder, KeepsFileOrderAmongWhatIsAlike) {
  graph::MetaGraph graph;
  graph.files.resize(1);
  const auto add = [&](std::uint64_t bytes) {
    const graph::StorageId id{static_cast<std::uint32_t>(graph.storages.size())};
    graph.storages.push_back(graph::plain_storage(graph::FileId{0}, 1000 * graph::index(id), bytes));
    graph.tensors.push_back({"t" + std::to_string(graph::index(id)), graph::DType::u8, {bytes}, {}, id, 0});
  };
  for (int i = 0; i < 50; ++i) add(10);
  add(900);
  const load::OptimalOrder best = load::optimal_order(graph, load::find_method("cast_on_device"), {});
  ASSERT_EQ(best.order.size(), 51u);
  EXPECT_TRUE(best.proven);
  EXPECT_EQ(graph::index(best.order.front()), 50u);
  EXPECT_TRUE(std::is_sorted(best.order.begin() + 1, best.order.end()));
  EXPECT_EQ(load::optimal_order(graph, load::find_method("state_dict"), {}).order,
            load::find_order("file").make(graph));
}

// Shards cut along the order that is loaded would put the two small storages into one only where they stand
// side by side, which no shuffle of 200 does: the turns looked the same in every order.
TEST(OptimalOrder, ShardsAreCutOnceAlongFileOrder) {
  graph::MetaGraph graph;
  graph.files.resize(1);
  std::uint64_t offset = 0;
  for (std::uint32_t i = 0; i < 200; ++i) {
    const std::uint64_t rows = i == 40 || i == 150 ? 49 : 60;
    graph.storages.push_back(graph::plain_storage(graph::FileId{0}, offset, rows * 64));
    graph.tensors.push_back(
        {"t" + std::to_string(i), graph::DType::bf16, {rows, 32}, {}, graph::StorageId{i}, 0});
    offset += rows * 64;
  }
  load::BoundRequest options = {.request = {.shard_bytes = 100 * 64, .cast = graph::DType::f32}};
  const load::Method& method = load::find_method("accelerate");
  const load::StorageOrder file = load::find_order("file").make(graph);
  const load::OptimalOrder best = load::optimal_order(graph, method, options);
  EXPECT_TRUE(best.proven);
  load::StorageOrder order = file;
  std::rotate(order.begin() + 41, order.begin() + 150, order.begin() + 151);  // the small ones together
  std::mt19937_64 random(3);
  for (int round = 0; round < 20; ++round) {
    // of each file one storage, as it lies: what is in a shard is so in every order
    EXPECT_EQ(peaks_of(load::make_plan(graph, method, order, {.request = {.shard_bytes = 100 * 64}}))[1],
              60u * 64);
    for (std::size_t i = 0; i < kMasks.size(); ++i) {
      options.spaces = kMasks[i];
      const load::OptimalOrder least = load::optimal_order(graph, method, options);
      if (least.proven) EXPECT_GE(peaks_of(load::make_plan(graph, method, order, options))[i], *least.peak);
    }
    std::shuffle(order.begin(), order.end(), random);
  }
}

TEST(OptimalOrder, IsSoundForLoadsThatNoTableKnows) {
  const std::array<load::Method, 5> loads = {{{"file_by_file", "", nullptr, file_by_file},
                                              {"cast_from_host", "", nullptr, cast_from_host},
                                              {"two_phases", "", nullptr, two_phases},
                                              {"flushed", "", nullptr, flushed},
                                              {"joined", "", nullptr, joined}}};
  std::map<std::string_view, Count> counts;
  for (std::uint64_t seed = 0; seed < 4000; ++seed) {
    std::mt19937_64 random(seed);
    const load::Method& method = loads[seed % loads.size()];
    SCOPED_TRACE(std::string(method.id) + " seed " + std::to_string(seed));
    const graph::MetaGraph graph = random_model(random);
    check(graph, method, random_options(random, method, graph), counts[method.id]);
  }
  EXPECT_EQ(counts.at("cast_from_host").proven, counts.at("cast_from_host").tried);
  EXPECT_LT(counts.at("two_phases").proven, counts.at("two_phases").tried);
  EXPECT_LT(counts.at("flushed").proven, counts.at("flushed").tried);
  EXPECT_LT(counts.at("joined").proven, counts.at("joined").tried);
  EXPECT_GT(counts.at("file_by_file").proven, counts.at("file_by_file").tried / 2);
}

}  // namespace

// --- Orders as text: round trip, ties, and what a hostile list says.

namespace {

// Tensors a, b, c and d on storages 0, 1, 2 and 0.
graph::MetaGraph tied_graph() {
  graph::MetaGraph graph;
  for (std::uint32_t i = 0; i < 3; ++i) graph.storages.push_back(graph::shapes_only_storage(4));
  for (const auto& [name, storage] : {std::pair{"a", 0u}, {"b", 1u}, {"c", 2u}, {"d", 0u}})
    graph.tensors.push_back({name, graph::DType::u8, {4}, {}, graph::StorageId{storage}, 0});
  return graph;
}

load::StorageOrder ids(const std::vector<std::uint32_t>& numbers) {
  load::StorageOrder order;
  for (const std::uint32_t number : numbers) order.push_back(graph::StorageId{number});
  return order;
}

TEST(OrderFile, ListsNamesAndTheRestFollows) {
  const graph::MetaGraph graph = tied_graph();
  const auto parsed = [&](std::string_view text) { return load::parse_order(graph, text, "list"); };
  EXPECT_EQ(parsed("\xef\xbb\xbf"
                   "c\r\n"),
            ids({2, 0, 1}));
  EXPECT_EQ(load::parse_order(graph::MetaGraph(), "# nothing\n", "list"), load::StorageOrder());
  EXPECT_EQ(parsed("c"), ids({2, 0, 1}));
  EXPECT_EQ(parsed("# heads first\n\n  \nc\r\nb\n"), ids({2, 1, 0}));
  EXPECT_EQ(parsed("b\nd\na\nc"), ids({1, 0, 2}));  // d and a are one storage
}

TEST(OrderFile, WhatItWritesItReads) {
  graph::MetaGraph graph = tied_graph();
  graph.tensors[1].name = graph::Name(" spaces # and sharps ");
  graph.tensors[2].name = graph::Name("\xff\x1b[31m");
  for (const load::StorageOrder& order : {ids({0, 1, 2}), ids({2, 0, 1}), ids({1, 2, 0})})
    EXPECT_EQ(load::parse_order(graph, load::order_text(graph, order), "list"), order);
  for (const std::string& name :
       {std::string("#x"), std::string("a\nb"), std::string(" \t"), std::string("x\r"),
        std::string("a\0b", 3), std::string((64 << 10) + 1, 'x')}) {
    graph.tensors[1].name = graph::Name(name);
    EXPECT_THROW(load::order_text(graph, ids({0, 1, 2})), Error);
  }
}

TEST(OrderFile, FaultsNameFileAndLine) {
  const graph::MetaGraph graph = tied_graph();
  const std::pair<std::string, std::string> rows[] = {
      {"a\nx\x1b", "list: tensor 'x\\x1b': line 2: not one of the model's 4 tensors"},
      {"a\n# one\na\n", "list: tensor 'a': line 3: listed on line 1 already"},
      {"e \n", "list: tensor 'e ': line 1: not one of the model's 4 tensors"},
      {"b\na \t\r\n",
       "list: tensor 'a \\x09': line 2: not one of the model's 4 tensors, but it is without the blanks "
       "around it"},
      {" a\n",
       "list: tensor ' a': line 1: not one of the model's 4 tensors, but it is without the blanks around it"},
      {"", "list: names no tensor in its 0 lines: an order lists tensors, one a line"},
      {"# one\n", "list: names no tensor in its 1 line: an order lists tensors, one a line"},
      {std::string("\n\0a", 3), "list: line 2: a NUL byte: this is not a list of names"},
      {std::string(65537, 'a'), "list: line 1: 65537 bytes, the limit of a line is 65536"},
      {std::string(65536, '#') + "\na", ""}};
  for (const auto& [text, message] : rows) {
    std::string told;
    try {
      load::parse_order(graph, text, "list");
    } catch (const Error& error) {
      told = error.what();
    }
    EXPECT_EQ(told, message);
  }
}

TEST(OrderFile, IsChosenByItsPathUnlessAnOrderIsCalledSo) {
  const testing::TemporaryFolder folder;
  const graph::MetaGraph graph = tied_graph();
  testing::write_file(folder / "list", "c\n");
  EXPECT_EQ(*load::choose_order(graph, folder / "list").listed, ids({2, 0, 1}));
  EXPECT_EQ(load::choose_order(graph, "offset").row, &load::find_order("file"));
  EXPECT_THROW(load::choose_order(graph, folder / "none"), Error);
  std::filesystem::create_directory(folder / "folder");
  EXPECT_THROW(load::choose_order(graph, folder / "folder"), Error);
  ASSERT_EQ(::mkfifo((folder / "pipe").c_str(), 0600), 0);
  EXPECT_THROW(load::choose_order(graph, folder / "pipe"), Error);  // and does not wait for a writer
  testing::write_file(folder / "large", "");
  std::filesystem::resize_file(folder / "large", (256 << 20) + 1);
  EXPECT_THROW(load::choose_order(graph, folder / "large"), Error);
}

}  // namespace

}  // namespace loadline::tests
