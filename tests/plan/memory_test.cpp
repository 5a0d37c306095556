// Memory of plans: views, arenas and free ranges, and how they read.

#include "core/allocators/free_ranges.h"
#include "core/base/error.h"
#include "core/load/answer/projection.h"
#include "core/load/answer/rows.h"
#include "core/packing/greedy.h"
#include "core/packing/pack.h"
#include "core/plan/dry_machine.h"
#include "core/plan/plan.h"
#include "core/plan/reserved_memory.h"
#include "core/plan/timeline.h"
#include "tests/support/plan_models.h"

#include <algorithm>
#include <map>
#include <random>
#include <set>

#include <gtest/gtest.h>

namespace loadline {

// --- Views of memory against peak_over() on random plans, unified budgets, and a page cache that drops.

namespace {

using testing::graph_of;

Projection projected(const MetaGraph& graph, const char* method, const LoadInputs& options = {}) {
  return project(graph, find_method(method), find_order("file"), options);
}

CacheOutcome limited(const Projection& projection, std::uint64_t limit) {
  return limit_cache(projection.plan, projection.timeline, limit);
}

constexpr MemoryKind kKinds[] = {MemoryKind::discrete, MemoryKind::unified};

TEST(MemoryViews, ArePeaksOverTheirSpaces) {
  const MetaGraph graph = graph_of({3000, 1, 70'000, 512});
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    const Plan plan = testing::random_plan(graph, seed, 60);
    DryMachine machine;
    const Timeline timeline = run(plan, machine);
    for (const MemoryKind kind : kKinds) {
      const std::vector<ViewPeak> peaks = view_peaks(timeline, kind);
      ASSERT_EQ(peaks.size(), memory_views().size());
      for (std::size_t i = 0; i < peaks.size(); ++i) {
        const Peak expected = peak_over(timeline, memory_views()[i].mask(kind));
        EXPECT_EQ(peaks[i].bytes, expected.bytes) << memory_views()[i].id << " seed " << seed;
        EXPECT_EQ(peaks[i].step, expected.step) << memory_views()[i].id << " seed " << seed;
      }
    }
  }
}

TEST(MemoryViews, CapThePageCacheMomentByMoment) {
  const MetaGraph graph = graph_of({3000, 1, 70'000, 512});
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    const Plan plan = testing::random_plan(graph, seed, 60);
    DryMachine machine;
    const Timeline timeline = run(plan, machine);
    constexpr std::uint64_t kLimit = 2000;
    std::uint64_t all = 0;
    for (const UsagePoint& point : timeline.usage) {
      std::uint64_t sum = std::min(point.bytes[index(Space::page_cache)], kLimit);
      for (const Space space : {Space::host, Space::staging, Space::device}) sum += point.bytes[index(space)];
      all = std::max(all, sum);
    }
    const std::vector<ViewPeak> peaks = view_peaks(timeline, MemoryKind::discrete, kLimit);
    for (std::size_t i = 0; i < peaks.size(); ++i)
      if (memory_views()[i].id == "unified") EXPECT_EQ(peaks[i].bytes, all) << seed;
  }
}

TEST(MemoryViews, HaveIdsOfTheirOwnAndSayWhatCounts) {
  std::set<std::string_view> ids;
  for (const MemoryView& view : memory_views()) {
    EXPECT_TRUE(ids.insert(view.id).second) << view.id;
    EXPECT_FALSE(view.title.empty());
    EXPECT_TRUE(view.counted_by.ends_with('.')) << view.id;
  }
  EXPECT_EQ(memory_views()[leading_view(MemoryKind::discrete)].id, "device");
  EXPECT_EQ(memory_views()[leading_view(MemoryKind::unified)].id, "unified_held");
  EXPECT_EQ(memory_kind("unified"), MemoryKind::unified);
  EXPECT_THROW(memory_kind("Unified"), Error);
}

// The device's memory is part of the commit charge only where it is the host's.
TEST(MemoryViews, UnifiedMemoryChargesTheDevice) {
  const Projection projection = projected(graph_of({100, 300}), "meta_assign");
  const auto peak = [&](std::string_view id, MemoryKind kind) {
    const auto peaks = view_peaks(projection.timeline, kind);
    for (std::size_t i = 0; i < peaks.size(); ++i)
      if (memory_views()[i].id == id) return peaks[i].bytes;
    return std::uint64_t{0};
  };
  EXPECT_EQ(peak("commit_charge", MemoryKind::discrete), 400u);
  EXPECT_EQ(peak("commit_charge", MemoryKind::unified), 700u);  // 300 on the way are there twice
  EXPECT_EQ(peak("unified_held", MemoryKind::discrete), 700u);
}

// With one memory the verdict is about everything but file pages.
TEST(Budget, OfUnifiedMemoryHoldsAllButThePageCache) {
  const Projection mapped = projected(graph_of({100, 300}), "mmap_assign");
  ASSERT_EQ(mapped.timeline.unified.bytes, 800u);
  EXPECT_TRUE(check_budget(mapped, {.unified = 400}).fits());
  const Projection copied = projected(graph_of({100, 300}), "per_tensor");
  EXPECT_TRUE(check_budget(copied, {.unified = 700}).fits());
  const BudgetVerdict verdict = check_budget(copied, {.unified = 650});
  EXPECT_FALSE(verdict.unified_fits);
  EXPECT_TRUE(verdict.device_fits);
  EXPECT_EQ(verdict.unified_over, 50u);
  EXPECT_EQ(copied.plan.block(*verdict.block).space, Space::host);
}

// By how much is counted at the peak, not at the first allocation that is over.
TEST(Budget, TellsByHowMuchThePeakIsOver) {
  const Projection projection = projected(graph_of({100, 300, 50}), "state_dict");
  const BudgetVerdict verdict = check_budget(projection, {.device = 500, .host = 430});
  EXPECT_EQ(verdict.device_over, 400u);
  EXPECT_EQ(verdict.host_over, 20u);
}

constexpr std::uint64_t kMiB = 1 << 20;

TEST(CacheLimit, NothingIsReadAgainWhileEverythingFits) {
  const MetaGraph graph = graph_of({kMiB, 3 * kMiB, 100});
  for (const char* method : {"mmap_assign", "mmap_copy", "llama_cpp_mmap", "accelerate", "per_tensor"}) {
    const Projection projection = projected(graph, method);
    const std::uint64_t mapped = projection.timeline.peaks[index(Space::page_cache)].bytes;
    const CacheOutcome outcome = limited(projection, 4 * kMiB + 100);
    EXPECT_EQ(outcome.peak, mapped) << method;
    EXPECT_EQ(outcome.reread_bytes, 0u) << method;
  }
}

// A loader that reads and copies tensor by tensor passes over the file once, whatever the cache holds.
TEST(CacheLimit, OnePassOverTheFileReadsNothingAgain) {
  const MetaGraph graph = graph_of({kMiB, 3 * kMiB, kMiB});
  for (const char* method : {"mmap_assign", "mmap_copy", "mmap_state_dict", "llama_cpp_mmap", "accelerate"})
    for (const std::uint64_t limit : {std::uint64_t{0}, kMiB / 2, 2 * kMiB}) {
      const CacheOutcome outcome = limited(projected(graph, method), limit);
      EXPECT_EQ(outcome.peak, limit) << method;
      EXPECT_EQ(outcome.reread_bytes, 0u) << method << " " << limit;
    }
}

// What the device has imported cannot be dropped: it is held, and no limit of the page cache makes it less.
TEST(CacheLimit, LeavesImportedPagesAlone) {
  const Projection projection = projected(graph_of({kMiB, 3 * kMiB, kMiB}), "host_import");
  const CacheOutcome outcome = limited(projection, 0);
  EXPECT_EQ(outcome.mapped, 0u);
  EXPECT_EQ(outcome.reread_bytes, 0u);
  EXPECT_TRUE(projection.maps_files);
  for (const std::optional<std::uint64_t> limit :
       {std::optional<std::uint64_t>(), std::optional<std::uint64_t>(0)}) {
    const std::vector<ViewPeak> views = view_peaks(projection.timeline, MemoryKind::unified, limit);
    EXPECT_EQ(views[view_position("unified_held")].bytes, 8 * kMiB);
    EXPECT_EQ(views[view_position("unified")].bytes, 8 * kMiB);
    EXPECT_EQ(views[view_position("pinned_staging")].bytes, 3 * kMiB);
  }
  EXPECT_FALSE(check_budget(projection, {.unified = 8 * kMiB - 1}).fits());
}

// Two passes in the same order find nothing of the first one left, unless all of it is.
TEST(CacheLimit, ASecondPassReadsEverythingAgain) {
  const std::vector<std::uint64_t> sizes = {kMiB, 3 * kMiB, kMiB};
  const MetaGraph graph = graph_of(sizes);
  Plan plan;
  std::vector<BlockId> model, mapped;
  for (std::uint32_t i = 0; i < sizes.size(); ++i) {
    model.push_back(alloc(plan, {.space = Space::host, .bytes = sizes[i], .storage = StorageId{i}}));
    mapped.push_back(alloc(plan, {.space = Space::page_cache, .bytes = sizes[i], .storage = StorageId{i}}));
    copy(plan, mapped[i], 0, StorageId{i}, 0, sizes[i]);
  }
  for (std::size_t i = 0; i < sizes.size(); ++i) copy(plan, model[i], 0, mapped[i], 0, sizes[i]);
  for (const BlockId id : mapped) free(plan, id);
  ASSERT_EQ(check_plan(plan, graph), std::nullopt);
  DryMachine machine;
  const Timeline timeline = run(plan, machine);
  const auto read_again = [&](std::uint64_t limit) {
    return limit_cache(plan, timeline, limit).reread_bytes;
  };
  EXPECT_EQ(read_again(5 * kMiB), 0u);
  EXPECT_EQ(read_again(5 * kMiB - 1), 5 * kMiB);
  EXPECT_EQ(read_again(2 * kMiB), 5 * kMiB);
  EXPECT_EQ(read_again(0), 5 * kMiB);
  // and it takes its time
  Projection projection;
  projection.method = &find_method("mmap_copy");
  projection.plan = plan;
  projection.timeline = timeline;
  projection.seconds = 2;
  BoundRequest bound;
  bound.inputs.request.page_cache_budget = 0;
  bound.inputs.costs.disk_read = 1.0 * kMiB;
  const LoadRow row = make_row(projection, bound, Labels(graph), 0);
  EXPECT_DOUBLE_EQ(row.seconds, 7);
}

// Three blocks of one granule each, used as A B C A C B, in a cache of two: A goes for C, B for A, and the
// last use of B finds it gone.
TEST(CacheLimit, DropsWhatWasUsedLongestAgo) {
  const std::vector<std::uint64_t> sizes(3, 64 << 10);
  const MetaGraph graph = graph_of(sizes);
  Plan plan;
  std::vector<BlockId> mapped;
  for (std::uint32_t i = 0; i < 3; ++i)
    mapped.push_back(alloc(plan, {.space = Space::page_cache, .bytes = sizes[i], .storage = StorageId{i}}));
  const BlockId target = alloc(plan, {.space = Space::host, .bytes = sizes[0]});
  for (std::uint32_t i = 0; i < 3; ++i) copy(plan, mapped[i], 0, StorageId{i}, 0, sizes[i]);
  for (const std::size_t i : {0u, 2u, 1u}) copy(plan, target, 0, mapped[i], 0, sizes[i]);
  ASSERT_EQ(check_plan(plan, graph), std::nullopt);
  DryMachine machine;
  const Timeline timeline = run(plan, machine);
  EXPECT_EQ(limit_cache(plan, timeline, 3 * (64 << 10)).reread_bytes, 0u);
  EXPECT_EQ(limit_cache(plan, timeline, 2 * (64 << 10)).reread_bytes, 2u * (64 << 10));
}

// Least recently used keeps in a larger cache whatever it keeps in a smaller one.
TEST(CacheLimit, NeverReadsLessFromASmallerCache) {
  const MetaGraph graph = graph_of(std::vector<std::uint64_t>(4, 64 << 10));
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    const Plan plan = testing::random_plan(graph, seed, 80);
    DryMachine machine;
    const Timeline timeline = run(plan, machine);
    const std::uint64_t most = timeline.peaks[index(Space::page_cache)].bytes;
    std::uint64_t before = UINT64_MAX;
    for (std::uint64_t limit = 0; limit <= most + (64 << 10); limit += 64 << 10) {
      const CacheOutcome outcome = limit_cache(plan, timeline, limit);
      EXPECT_EQ(outcome.peak, std::min(most, limit));
      EXPECT_LE(outcome.reread_bytes, before) << seed << " " << limit;
      before = outcome.reread_bytes;
    }
    EXPECT_EQ(before, 0u) << seed;
  }
}

}  // namespace

// --- The blocks of a space as a packing problem, and arenas made of them.

namespace {

Block block_of(Space space, std::uint64_t bytes) {
  return {.space = space, .bytes = bytes, .use = BlockUse::temporary, .storage = {}, .label = "block"};
}

TEST(SpaceProblem, HasTheBlocksOfOneSpaceThatHaveBytes) {
  Plan plan;
  const BlockId kept = alloc(plan, block_of(Space::device, 1000));    // step 0, never freed
  alloc(plan, block_of(Space::host, 5000));                           // step 1, elsewhere
  const BlockId passing = alloc(plan, block_of(Space::device, 256));  // step 2
  alloc(plan, block_of(Space::device, 0));                            // step 3, without bytes
  free(plan, passing);                                                // step 4
  const BlockId last = alloc(plan, block_of(Space::device, 1));       // step 5
  plan.blocks.push_back(block_of(Space::device, 77));                 // nobody allocates it
  DryMachine machine;
  Timeline timeline = run(plan, machine);
  timeline.lifetimes.resize(plan.blocks.size());
  const SpaceProblem device = space_problem(plan, timeline, Space::device);
  EXPECT_EQ(device.blocks, (std::vector{kept, passing, last}));
  ASSERT_EQ(device.problem.buffers.size(), 3u);
  const auto expect = [&](std::size_t at, std::uint64_t lower, std::uint64_t upper, std::uint64_t size) {
    const Buffer& buffer = device.problem.buffers[at];
    EXPECT_EQ(buffer.lower, lower) << at;
    EXPECT_EQ(buffer.upper, upper) << at;
    EXPECT_EQ(buffer.size, size) << at;
    EXPECT_EQ(buffer.alignment, 256u) << at;
  };
  expect(0, 0, 7, 1024);
  expect(1, 2, 4, 256);
  expect(2, 5, 7, 256);
  EXPECT_FALSE(alive_together(device.problem.buffers[1], device.problem.buffers[2]));
  const SpaceProblem host = space_problem(plan, timeline, Space::host, 64);
  ASSERT_EQ(host.problem.buffers.size(), 1u);
  EXPECT_EQ(host.problem.buffers[0].size, 5056u);
  EXPECT_TRUE(space_problem(plan, timeline, Space::staging).blocks.empty());
}

TEST(PlannedArena, IsNeverHigherThanGreedyBySizeAndKeepsEveryRule) {
  const MetaGraph graph = testing::graph_of({1000, 2000, 3000, 4000});
  std::size_t lower_than_greedy = 0;
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    const Plan plan = testing::random_plan(graph, seed, 200);
    DryMachine machine;
    const Timeline timeline = run(plan, machine);
    for (const Space space : {Space::host, Space::staging, Space::device}) {
      const SpaceProblem blocks = space_problem(plan, timeline, space);
      Progress progress;
      const Arena arena = plan_arena(plan, timeline, space, progress);
      const std::uint64_t greedy = greedy_by_size_height(blocks.problem).value();
      EXPECT_LE(arena.height, greedy) << "seed " << seed;
      lower_than_greedy += arena.height < greedy ? 1 : 0;
      EXPECT_GE(arena.height, arena.lower_bound);
      std::vector<std::uint64_t> offsets;
      for (const BlockId id : blocks.blocks) offsets.push_back(arena.offsets[static_cast<std::size_t>(id)]);
      const auto fault = find_fault(blocks.problem, offsets, std::vector{std::optional(arena.height)});
      EXPECT_FALSE(fault) << "seed " << seed << ": " << *fault;
      EXPECT_EQ(plan_arena(plan, timeline, space, progress).offsets, arena.offsets)
          << "the same run, the same arena";
    }
  }
  EXPECT_GT(lower_than_greedy, 0u) << "these plans would not tell";
}

}  // namespace

// --- Jumps and distances of plans, by hand.

namespace {

// Two files: 10000 bytes at 100 and 500 behind 20 of padding; 800 at 0.
MetaGraph two_files() {
  MetaGraph graph;
  graph.files.resize(2);
  graph.storages = {plain_storage(FileId{0}, 100, 10'000), plain_storage(FileId{0}, 10'120, 500),
                    plain_storage(FileId{1}, 0, 800)};
  for (std::uint32_t i = 0; i < 3; ++i)
    graph.tensors.push_back(
        {"t" + std::to_string(i), DType::u8, {graph.storages[i].bytes}, {}, StorageId{i}, 0});
  return graph;
}

ReadPattern pattern_of(const MetaGraph& graph, const StorageOrder& order) {
  return read_pattern(make_plan(graph, find_method("per_tensor"), order, {}), graph);
}

TEST(ReadPattern, CountsJumpsAndDistances) {
  const MetaGraph graph = two_files();
  const StorageId a{0}, b{1}, c{2};
  EXPECT_EQ(pattern_of(graph, {a, b, c}), (ReadPattern{11'300, 3, 1, 20}));
  // back to the start of the first file: from 10,620 to 100
  EXPECT_EQ(pattern_of(graph, {b, a, c}), (ReadPattern{11'300, 3, 2, 10'520}));
  // another file between: going on where it ended is a jump all the same
  EXPECT_EQ(pattern_of(graph, {a, c, b}), (ReadPattern{11'300, 3, 2, 20}));
}

TEST(ReadPattern, AForwardSkipOfAPageIsAJump) {
  MetaGraph graph = two_files();
  graph.storages[1].offset = 10'100 + 4096;
  EXPECT_EQ(pattern_of(graph, {StorageId{0}, StorageId{1}, StorageId{2}}), (ReadPattern{11'300, 3, 2, 4096}));
}

TEST(ReadPattern, EncodedStoragesCountAsStored) {
  MetaGraph graph = two_files();
  graph.storages[0].encoding = Encoding::deflate;
  graph.storages[0].stored_bytes = 5000;
  graph.storages[1].offset = 5100;
  EXPECT_EQ(pattern_of(graph, {StorageId{0}, StorageId{1}, StorageId{2}}), (ReadPattern{6'300, 3, 1, 0}));
}

TEST(ReadPattern, WithoutFilesNothingJumps) {
  MetaGraph graph = two_files();
  graph.files.clear();
  for (Storage& storage : graph.storages) storage = shapes_only_storage(storage.bytes);
  EXPECT_EQ(pattern_of(graph, {StorageId{2}, StorageId{0}, StorageId{1}}), (ReadPattern{11'300, 3, 0, 0}));
}

TEST(ReadPattern, JumpsCostTimeInAProjection) {
  const MetaGraph graph = two_files();
  const LoadInputs options = {.costs = {.seek_seconds = 2.0}};
  const Projection sequential = project(graph, find_method("per_tensor"), find_order("file"), options);
  const Projection smallest = project(graph, find_method("per_tensor"), find_order("smallest"), options);
  EXPECT_EQ(sequential.reads.jumps, 1u);
  EXPECT_DOUBLE_EQ(sequential.seconds, sequential.timeline.seconds + 2.0);
  EXPECT_EQ(smallest.reads.jumps, 2u);
  EXPECT_DOUBLE_EQ(smallest.seconds, smallest.timeline.seconds + 4.0);
}

}  // namespace

// --- Offsets never overlap, gaps merge, and nothing is lost.

namespace {

TEST(Suballocator, FillsExactlyAndRefusesMore) {
  Suballocator memory(1024, 256);
  EXPECT_EQ(memory.allocate(1), 0u);
  EXPECT_EQ(memory.allocate(256), 256u);
  EXPECT_EQ(memory.allocate(257), 512u);
  EXPECT_EQ(memory.used(), 1024u);
  EXPECT_EQ(memory.largest_gap(), 0u);
  EXPECT_EQ(memory.allocate(1), std::nullopt);
}

TEST(Suballocator, MergesWithBothNeighbours) {
  Suballocator memory(1024, 256);
  for (int i = 0; i < 4; ++i) ASSERT_TRUE(memory.allocate(256));
  memory.free(0);
  memory.free(512);
  EXPECT_EQ(memory.largest_gap(), 256u);
  EXPECT_EQ(memory.allocate(512), std::nullopt);
  memory.free(256);
  EXPECT_EQ(memory.largest_gap(), 768u);
  memory.free(768);
  EXPECT_TRUE(memory.empty());
  EXPECT_EQ(memory.allocate(1024), 0u);
}

TEST(Suballocator, TakesTheSmallestGapThatHolds) {
  Suballocator memory(4096, 256);
  const auto a = memory.allocate(1024), b = memory.allocate(256), c = memory.allocate(512),
             d = memory.allocate(256);
  ASSERT_TRUE(a && b && c && d);
  memory.free(*a);
  memory.free(*c);
  EXPECT_EQ(memory.allocate(500), *c);
  EXPECT_EQ(memory.allocate(500), *a);
}

TEST(Suballocator, RefusesWhatCannotBeRounded) {
  Suballocator memory(1024, 256);
  EXPECT_EQ(memory.allocate(~std::uint64_t{0}), std::nullopt);
  EXPECT_EQ(memory.allocate(1025), std::nullopt);
  EXPECT_EQ(Suballocator(0, 256).allocate(1), std::nullopt);
}

TEST(Suballocator, RandomUseKeepsRangesApart) {
  std::mt19937 random(3);
  for (int round = 0; round < 50; ++round) {
    const std::uint64_t alignment = 1ull << (random() % 9), capacity = alignment * (1 + random() % 200);
    Suballocator memory(capacity, alignment);
    std::map<std::uint64_t, std::uint64_t> live;  // offset -> end
    std::uint64_t used = 0;
    for (int step = 0; step < 500; ++step) {
      if (random() % 5 < 3) {
        const std::uint64_t bytes = 1 + random() % (capacity / 4 + 1);
        const std::uint64_t rounded = (bytes + alignment - 1) / alignment * alignment;
        const std::uint64_t gap = memory.largest_gap();
        const auto offset = memory.allocate(bytes);
        ASSERT_EQ(offset.has_value(), gap >= rounded);
        if (!offset) continue;
        ASSERT_EQ(*offset % alignment, 0u);
        const auto next = live.lower_bound(*offset);
        ASSERT_TRUE(next == live.end() || *offset + rounded <= next->first);
        ASSERT_TRUE(next == live.begin() || std::prev(next)->second <= *offset);
        ASSERT_LE(*offset + rounded, capacity);
        live[*offset] = *offset + rounded;
        used += rounded;
      } else if (!live.empty()) {
        auto victim = live.begin();
        std::advance(victim, random() % live.size());
        used -= victim->second - victim->first;
        memory.free(victim->first);
        live.erase(victim);
      }
      ASSERT_EQ(memory.used(), used);
    }
    for (const auto& [offset, end] : live) memory.free(offset);
    ASSERT_EQ(memory.largest_gap(), capacity);  // everything merged again
  }
}

#ifndef NDEBUG
TEST(SuballocatorDeathTest, FreeingTwiceIsAsserted) {
  Suballocator memory(1024, 256);
  const auto offset = memory.allocate(1);
  memory.free(*offset);
  EXPECT_DEATH(memory.free(*offset), "not allocated");
}
#endif

}  // namespace

}  // namespace loadline
