// Memory of plans: views, arenas and free ranges, and how they read.

#include "core/allocators/free_ranges.h"
#include "core/base/error.h"
#include "core/load/answer/projection.h"
#include "core/load/answer/rows.h"
#include "core/load/order/optimal_order.h"
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

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace loadline::tests {

// --- Views of memory against each point of random plans and loads, unified budgets, and a page cache that
// drops.

namespace {

using testing::graph_of;

load::Projection projected(const graph::MetaGraph& graph, const char* method,
                           const load::BoundRequest& options = {}) {
  return load::project(graph, load::find_method(method), load::find_order("file"), options);
}

plan::CacheOutcome limited(const load::Projection& projection, std::uint64_t limit) {
  return plan::limit_cache(projection.plan, projection.timeline, limit);
}

constexpr plan::MemoryKind kKinds[] = {plan::MemoryKind::discrete, plan::MemoryKind::unified};

// Point by point.
plan::Peak first_peak(const plan::Timeline& timeline, unsigned mask) {
  plan::Peak peak;
  for (const plan::UsagePoint& point : timeline.usage)
    if (const std::uint64_t bytes = plan::sum_over(point.bytes, mask); bytes > peak.bytes)
      peak = {bytes, point.step, point.seconds};
  return peak;
}

void expect_views(const plan::Timeline& timeline, const std::string& of) {
  for (const plan::MemoryKind kind : kKinds) {
    const std::vector<plan::ViewPeak> peaks = plan::view_peaks(timeline, kind);
    ASSERT_EQ(peaks.size(), plan::memory_views().size());
    for (std::size_t i = 0; i < peaks.size(); ++i) {
      const plan::Peak expected = first_peak(timeline, plan::memory_views()[i].mask(kind));
      EXPECT_EQ(peaks[i].bytes, expected.bytes) << plan::memory_views()[i].id << " of " << of;
      EXPECT_EQ(peaks[i].step, expected.step) << plan::memory_views()[i].id << " of " << of;
    }
  }
  for (unsigned mask = 0; mask <= plan::kAllSpaces; ++mask) {
    const plan::Peak peak = plan::peak_over(timeline, mask), expected = first_peak(timeline, mask);
    EXPECT_EQ(peak.bytes, expected.bytes) << mask << " of " << of;
    EXPECT_EQ(peak.step, expected.step) << mask << " of " << of;
    EXPECT_EQ(peak.seconds, expected.seconds) << mask << " of " << of;
  }
}

TEST(MemoryViews, ArePeaksOverTheirSpaces) {
  const graph::MetaGraph graph = graph_of({3000, 1, 70'000, 512});
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    const plan::Plan plan = testing::random_plan(graph, seed, 60);
    plan::DryMachine machine;
    expect_views(plan::run(plan, machine), fmt::format("seed {}", seed));
  }
  // loads use two or three of the spaces
  for (const load::Method& method : load::methods())
    expect_views(projected(graph, std::string(method.id).c_str()).timeline, std::string(method.id));
}

TEST(MemoryViews, RowsListTheLargestBlocksAtEachPeak) {
  const graph::MetaGraph graph = graph_of({3000, 1, 512, 70'000, 512, 3000, 512});
  const load::Labels labels(graph);
  constexpr std::size_t kMost = 3;
  for (const load::Method& method : load::methods()) {
    const load::Projection projection = projected(graph, std::string(method.id).c_str());
    const load::LoadRow row = load::make_row(projection, {}, labels, kMost);
    for (std::size_t space = 0; space < plan::kSpaceCount; ++space) {
      const plan::Peak& peak = projection.timeline.peaks[space];
      std::vector<plan::BlockId> alive;
      if (peak.bytes > 0)
        alive = plan::alive_at(projection.timeline, projection.plan, peak.step, 1u << space);
      EXPECT_EQ(row.alive[space].count, alive.size()) << method.id;
      alive.resize(std::min(alive.size(), kMost));
      ASSERT_EQ(row.alive[space].largest.size(), alive.size()) << method.id;
      for (std::size_t i = 0; i < alive.size(); ++i) {
        EXPECT_EQ(row.alive[space].largest[i].label, labels.of(projection.plan, alive[i])) << method.id;
        EXPECT_EQ(row.alive[space].largest[i].bytes, projection.plan.block(alive[i]).bytes) << method.id;
      }
    }
  }
}

TEST(MemoryViews, CapThePageCacheMomentByMoment) {
  const graph::MetaGraph graph = graph_of({3000, 1, 70'000, 512});
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    const plan::Plan plan = testing::random_plan(graph, seed, 60);
    plan::DryMachine machine;
    const plan::Timeline timeline = plan::run(plan, machine);
    constexpr std::uint64_t kLimit = 2000;
    std::uint64_t all = 0;
    for (const plan::UsagePoint& point : timeline.usage) {
      std::uint64_t sum = std::min(point.bytes[plan::index(plan::Space::page_cache)], kLimit);
      for (const plan::Space space : {plan::Space::host, plan::Space::staging, plan::Space::device})
        sum += point.bytes[plan::index(space)];
      all = std::max(all, sum);
    }
    const std::vector<plan::ViewPeak> peaks = plan::view_peaks(timeline, plan::MemoryKind::discrete, kLimit);
    for (std::size_t i = 0; i < peaks.size(); ++i)
      if (plan::memory_views()[i].id == "unified") EXPECT_EQ(peaks[i].bytes, all) << seed;
  }
}

TEST(MemoryViews, HaveIdsOfTheirOwnAndSayWhatCounts) {
  std::set<std::string_view> ids;
  for (const plan::MemoryView& view : plan::memory_views()) {
    EXPECT_TRUE(ids.insert(view.id).second) << view.id;
    EXPECT_FALSE(view.title.empty());
    EXPECT_TRUE(view.counted_by.ends_with('.')) << view.id;
  }
  EXPECT_EQ(plan::memory_views()[plan::deciding_view(plan::MemoryKind::discrete)].id, "device");
  EXPECT_EQ(plan::memory_views()[plan::deciding_view(plan::MemoryKind::unified)].id, "unified_held");
  EXPECT_EQ(plan::memory_kind("unified"), plan::MemoryKind::unified);
  EXPECT_THROW(plan::memory_kind("Unified"), Error);
}

// The device's memory is part of the commit charge only where it is the host's.
TEST(MemoryViews, UnifiedMemoryChargesTheDevice) {
  const load::Projection projection = projected(graph_of({100, 300}), "meta_assign");
  const auto peak = [&](std::string_view id, plan::MemoryKind kind) {
    const auto peaks = plan::view_peaks(projection.timeline, kind);
    for (std::size_t i = 0; i < peaks.size(); ++i)
      if (plan::memory_views()[i].id == id) return peaks[i].bytes;
    return std::uint64_t{0};
  };
  EXPECT_EQ(peak("commit_charge", plan::MemoryKind::discrete), 400u);
  EXPECT_EQ(peak("commit_charge", plan::MemoryKind::unified), 700u);  // 300 on the way are there twice
  EXPECT_EQ(peak("unified_held", plan::MemoryKind::discrete), 700u);
}

// With one memory the verdict is about everything but file pages.
TEST(Budget, OfUnifiedMemoryHoldsAllButThePageCache) {
  const load::Projection mapped = projected(graph_of({100, 300}), "mmap_assign");
  ASSERT_EQ(mapped.timeline.unified.bytes, 800u);
  EXPECT_TRUE(load::check_budget(mapped, {.unified = 400}).fits());
  const load::Projection copied = projected(graph_of({100, 300}), "per_tensor");
  EXPECT_TRUE(load::check_budget(copied, {.unified = 700}).fits());
  const load::BudgetVerdict verdict = load::check_budget(copied, {.unified = 650});
  EXPECT_FALSE(verdict.unified_fits);
  EXPECT_TRUE(verdict.device_fits);
  EXPECT_EQ(verdict.unified_over, 50u);
  EXPECT_EQ(copied.plan.block(*verdict.block).space, plan::Space::host);
}

// By how much is counted at the peak, not at the first allocation that is over.
TEST(Budget, TellsByHowMuchThePeakIsOver) {
  const load::Projection projection = projected(graph_of({100, 300, 50}), "state_dict");
  const load::BudgetVerdict verdict = load::check_budget(projection, {.device = 500, .host = 430});
  EXPECT_EQ(verdict.device_over, 400u);
  EXPECT_EQ(verdict.host_over, 20u);
}

// Every figure of a row, as text.
std::string figures_of(const load::LoadRow& row) {
  const auto peak = [](const load::RowPeak& p) {
    return fmt::format("{}@{} {}; ", p.bytes, p.step, p.tensor);
  };
  std::string text;
  for (std::size_t i = 0; i < plan::kSpaceCount; ++i) {
    text += peak(row.peaks[i]) + fmt::format("{} alive, {} left; ", row.alive[i].count, row.final_bytes[i]);
    for (const load::AliveBlock& block : row.alive[i].largest)
      text += fmt::format("{} {}, ", block.label, block.bytes);
  }
  text += peak(row.unified_peak) + peak(row.deciding_peak) + peak(row.judged_peak);
  text += fmt::format("{} held, {} s, views {}; ", row.held_peak, row.seconds, fmt::join(row.views, " "));
  const plan::ReadPattern& reads = row.reads;
  text += fmt::format("{} {} {} {}; ", reads.bytes, reads.reads, reads.jumps, reads.distance);
  const load::BudgetVerdict& v = row.verdict;
  text += fmt::format("{} {} {} over, {} {} {}, high {} {}, risk {}, step {} {}; ", v.device_over,
                      v.host_over, v.unified_over, v.device_peak, v.host_peak, v.unified_peak, v.unified_high,
                      v.host_high, v.at_risk, v.step.value_or(0), row.first_over);
  text += fmt::format("{} {} reread {}", row.pass_reads.mapped, row.pass_reads.disk, row.reread);
  return text;
}

// What is kept has no influence on what is found, whatever decides: peaks, budgets, allocators.
TEST(Projections, ForFiguresAloneHaveThoseOfWholePlans) {
  std::vector<std::uint64_t> sizes;  // their plans are made in several pieces
  for (std::uint64_t i = 0; i < 700; ++i) sizes.push_back(64 * (1 + i * i % 97));
  const graph::MetaGraph graph = graph_of(sizes);
  const std::uint64_t all = graph::storage_bytes(graph);
  const load::Labels labels(graph);
  std::vector<load::BoundRequest> requests(6);
  requests[1].memory.budget = {.device = all / 2, .host = all / 3};
  requests[2].memory = {.kind = plan::MemoryKind::unified,
                        .budget = {.unified = all * 5 / 4, .pages_may_stay = true}};
  requests[3].request.allocator = allocators::AllocatorModel::vulkan;
  requests[4].request.page_cache_budget = all / 4;
  requests[5].request.sequence = 8;
  requests[5].request.require_peak = all;
  std::size_t streamed = 0;
  for (std::size_t i = 0; i < requests.size(); ++i)
    for (const load::Method& method : load::methods())
      for (const load::Order& order : load::orders()) {
        SCOPED_TRACE(fmt::format("{} in order {} of request {}", method.id, order.id, i));
        Progress progress;
        const load::StorageOrder storages = load::make_order(graph, order, method, requests[i]);
        const auto projection = [&](load::Keep keep) {
          return load::project(graph, method, std::string(order.id), storages, requests[i], progress, nullptr,
                               {}, keep);
        };
        const load::Projection whole = projection(load::Keep::all), peaks = projection(load::Keep::figures);
        EXPECT_EQ(whole.timeline.usage.empty(), whole.plan.blocks.empty());  // views take nothing
        streamed += peaks.timeline.usage.empty();
        EXPECT_EQ(peaks.plan.blocks, whole.plan.blocks);
        EXPECT_EQ(peaks.plan.marks, whole.plan.marks);
        EXPECT_EQ(peaks.timeline.lifetimes, whole.timeline.lifetimes);
        EXPECT_EQ(figures_of(load::make_row(peaks, requests[i], labels, 3)),
                  figures_of(load::make_row(whole, requests[i], labels, 3)));
      }
  EXPECT_GE(streamed, 4 * load::methods().size());  // not all of them were whole plans
}

constexpr std::uint64_t kMiB = 1 << 20;

TEST(CacheLimit, NothingIsReadAgainWhileEverythingFits) {
  const graph::MetaGraph graph = graph_of({kMiB, 3 * kMiB, 100});
  for (const char* method : {"mmap_assign", "mmap_copy", "llama_cpp_mmap", "accelerate", "per_tensor"}) {
    const load::Projection projection = projected(graph, method);
    const std::uint64_t mapped = projection.timeline.peaks[plan::index(plan::Space::page_cache)].bytes;
    const plan::CacheOutcome outcome = limited(projection, 4 * kMiB + 100);
    EXPECT_EQ(outcome.peak, mapped) << method;
    EXPECT_EQ(outcome.reread_bytes, 0u) << method;
  }
}

// A loader that reads and copies tensor by tensor passes over the file once, whatever the cache holds.
TEST(CacheLimit, OnePassOverTheFileReadsNothingAgain) {
  const graph::MetaGraph graph = graph_of({kMiB, 3 * kMiB, kMiB});
  for (const char* method : {"mmap_assign", "mmap_copy", "mmap_state_dict", "llama_cpp_mmap", "accelerate"})
    for (const std::uint64_t limit : {std::uint64_t{0}, kMiB / 2, 2 * kMiB}) {
      const plan::CacheOutcome outcome = limited(projected(graph, method), limit);
      EXPECT_EQ(outcome.peak, limit) << method;
      EXPECT_EQ(outcome.reread_bytes, 0u) << method << " " << limit;
    }
}

// What the device has imported cannot be dropped: it is held, and no limit of the page cache makes it less.
TEST(CacheLimit, LeavesImportedPagesAlone) {
  const load::Projection projection = projected(graph_of({kMiB, 3 * kMiB, kMiB}), "host_import");
  const plan::CacheOutcome outcome = limited(projection, 0);
  EXPECT_EQ(outcome.mapped, 0u);
  EXPECT_EQ(outcome.reread_bytes, 0u);
  EXPECT_TRUE(projection.maps_files);
  for (const std::optional<std::uint64_t> limit :
       {std::optional<std::uint64_t>(), std::optional<std::uint64_t>(0)}) {
    const std::vector<plan::ViewPeak> views =
        plan::view_peaks(projection.timeline, plan::MemoryKind::unified, limit);
    EXPECT_EQ(views[plan::view_position("unified_held")].bytes, 8 * kMiB);
    EXPECT_EQ(views[plan::view_position("unified")].bytes, 8 * kMiB);
    EXPECT_EQ(views[plan::view_position("pinned_staging")].bytes, 3 * kMiB);
  }
  EXPECT_FALSE(load::check_budget(projection, {.unified = 8 * kMiB - 1}).fits());
}

// Two passes in the same order find nothing of the first one left, unless all of it is.
TEST(CacheLimit, ASecondPassReadsEverythingAgain) {
  const std::vector<std::uint64_t> sizes = {kMiB, 3 * kMiB, kMiB};
  const graph::MetaGraph graph = graph_of(sizes);
  plan::Plan plan;
  std::vector<plan::BlockId> model, mapped;
  for (std::uint32_t i = 0; i < sizes.size(); ++i) {
    model.push_back(
        plan::alloc(plan, {.bytes = sizes[i], .space = plan::Space::host, .storage = graph::StorageId{i}}));
    mapped.push_back(plan::alloc(
        plan, {.bytes = sizes[i], .space = plan::Space::page_cache, .storage = graph::StorageId{i}}));
    plan::copy(plan, mapped[i], 0, graph::StorageId{i}, 0, sizes[i]);
  }
  for (std::size_t i = 0; i < sizes.size(); ++i) plan::copy(plan, model[i], 0, mapped[i], 0, sizes[i]);
  for (const plan::BlockId id : mapped) plan::free(plan, id);
  ASSERT_EQ(plan::check_plan(plan, graph), std::nullopt);
  plan::DryMachine machine;
  const plan::Timeline timeline = plan::run(plan, machine);
  const auto read_again = [&](std::uint64_t limit) {
    return plan::limit_cache(plan, timeline, limit).reread_bytes;
  };
  EXPECT_EQ(read_again(5 * kMiB), 0u);
  EXPECT_EQ(read_again(5 * kMiB - 1), 5 * kMiB);
  EXPECT_EQ(read_again(2 * kMiB), 5 * kMiB);
  EXPECT_EQ(read_again(0), 5 * kMiB);
  // and it takes its time
  load::Projection projection;
  projection.method = &load::find_method("mmap_copy");
  projection.plan = plan;
  projection.timeline = timeline;
  projection.seconds = 2;
  load::BoundRequest bound;
  bound.request.page_cache_budget = 0;
  bound.costs.disk_read = 1.0 * kMiB;
  const load::LoadRow row = load::make_row(projection, bound, load::Labels(graph), 0);
  EXPECT_DOUBLE_EQ(row.seconds, 7);
}

// Three blocks of one granule each, used as A B C A C B, in a cache of two: A goes for C, B for A, and the
// last use of B finds it gone.
TEST(CacheLimit, DropsWhatWasUsedLongestAgo) {
  const std::vector<std::uint64_t> sizes(3, 64 << 10);
  const graph::MetaGraph graph = graph_of(sizes);
  plan::Plan plan;
  std::vector<plan::BlockId> mapped;
  for (std::uint32_t i = 0; i < 3; ++i)
    mapped.push_back(plan::alloc(
        plan, {.bytes = sizes[i], .space = plan::Space::page_cache, .storage = graph::StorageId{i}}));
  const plan::BlockId target = plan::alloc(plan, {.bytes = sizes[0], .space = plan::Space::host});
  for (std::uint32_t i = 0; i < 3; ++i) plan::copy(plan, mapped[i], 0, graph::StorageId{i}, 0, sizes[i]);
  for (const std::size_t i : {0u, 2u, 1u}) plan::copy(plan, target, 0, mapped[i], 0, sizes[i]);
  ASSERT_EQ(plan::check_plan(plan, graph), std::nullopt);
  plan::DryMachine machine;
  const plan::Timeline timeline = plan::run(plan, machine);
  EXPECT_EQ(plan::limit_cache(plan, timeline, 3 * (64 << 10)).reread_bytes, 0u);
  EXPECT_EQ(plan::limit_cache(plan, timeline, 2 * (64 << 10)).reread_bytes, 2u * (64 << 10));
}

// Least recently used keeps in a larger cache whatever it keeps in a smaller one.
TEST(CacheLimit, NeverReadsLessFromASmallerCache) {
  const graph::MetaGraph graph = graph_of(std::vector<std::uint64_t>(4, 64 << 10));
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    const plan::Plan plan = testing::random_plan(graph, seed, 80);
    plan::DryMachine machine;
    const plan::Timeline timeline = plan::run(plan, machine);
    const std::uint64_t most = timeline.peaks[plan::index(plan::Space::page_cache)].bytes;
    std::uint64_t before = UINT64_MAX;
    for (std::uint64_t limit = 0; limit <= most + (64 << 10); limit += 64 << 10) {
      const plan::CacheOutcome outcome = plan::limit_cache(plan, timeline, limit);
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

plan::Block block_of(plan::Space space, std::uint64_t bytes) {
  return {.bytes = bytes, .space = space, .use = plan::BlockUse::temporary, .storage = {}, .extra = "block"};
}

TEST(SpaceProblem, HasTheBlocksOfOneSpaceThatHaveBytes) {
  plan::Plan plan;
  const plan::BlockId kept = plan::alloc(plan, block_of(plan::Space::device, 1000));    // step 0, never freed
  plan::alloc(plan, block_of(plan::Space::host, 5000));                                 // step 1, elsewhere
  const plan::BlockId passing = plan::alloc(plan, block_of(plan::Space::device, 256));  // step 2
  plan::alloc(plan, block_of(plan::Space::device, 0));                             // step 3, without bytes
  plan::free(plan, passing);                                                       // step 4
  const plan::BlockId last = plan::alloc(plan, block_of(plan::Space::device, 1));  // step 5
  plan.blocks.push_back(block_of(plan::Space::device, 77));                        // nobody allocates it
  plan::DryMachine machine;
  plan::Timeline timeline = plan::run(plan, machine);
  timeline.lifetimes.resize(plan.blocks.size());
  const plan::SpaceProblem device = plan::space_problem(plan, timeline, plan::Space::device);
  EXPECT_EQ(device.blocks, (std::vector{kept, passing, last}));
  ASSERT_EQ(device.problem.buffers.size(), 3u);
  const auto expect = [&](std::size_t at, std::uint64_t lower, std::uint64_t upper, std::uint64_t size) {
    const packing::Buffer& buffer = device.problem.buffers[at];
    EXPECT_EQ(buffer.lower, lower) << at;
    EXPECT_EQ(buffer.upper, upper) << at;
    EXPECT_EQ(buffer.size, size) << at;
    EXPECT_EQ(buffer.alignment, 256u) << at;
  };
  expect(0, 0, 7, 1024);
  expect(1, 2, 4, 256);
  expect(2, 5, 7, 256);
  EXPECT_FALSE(packing::alive_together(device.problem.buffers[1], device.problem.buffers[2]));
  const plan::SpaceProblem host = plan::space_problem(plan, timeline, plan::Space::host, 64);
  ASSERT_EQ(host.problem.buffers.size(), 1u);
  EXPECT_EQ(host.problem.buffers[0].size, 5056u);
  EXPECT_TRUE(plan::space_problem(plan, timeline, plan::Space::staging).blocks.empty());
}

TEST(PlannedArena, IsNeverHigherThanGreedyBySizeAndKeepsEveryRule) {
  const graph::MetaGraph graph = testing::graph_of({1000, 2000, 3000, 4000});
  std::size_t lower_than_greedy = 0;
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    const plan::Plan plan = testing::random_plan(graph, seed, 200);
    plan::DryMachine machine;
    const plan::Timeline timeline = plan::run(plan, machine);
    for (const plan::Space space : {plan::Space::host, plan::Space::staging, plan::Space::device}) {
      const plan::SpaceProblem blocks = plan::space_problem(plan, timeline, space);
      Progress progress;
      const plan::Arena arena = plan::plan_arena(plan, timeline, space, progress);
      const std::uint64_t greedy = packing::greedy_by_size_height(blocks.problem).value();
      EXPECT_LE(arena.height, greedy) << "seed " << seed;
      lower_than_greedy += arena.height < greedy ? 1 : 0;
      EXPECT_GE(arena.height, arena.lower_bound);
      std::vector<std::uint64_t> offsets;
      for (const plan::BlockId id : blocks.blocks)
        offsets.push_back(arena.offsets[static_cast<std::size_t>(id)]);
      const auto fault =
          packing::find_fault(blocks.problem, offsets, std::vector{std::optional(arena.height)});
      EXPECT_FALSE(fault) << "seed " << seed << ": " << *fault;
      EXPECT_EQ(plan::plan_arena(plan, timeline, space, progress).offsets, arena.offsets)
          << "the same run, the same arena";
    }
  }
  EXPECT_GT(lower_than_greedy, 0u) << "these plans would not tell";
}

}  // namespace

// --- Jumps and distances of plans, by hand.

namespace {

// Two files: 10000 bytes at 100 and 500 behind 20 of padding; 800 at 0.
graph::MetaGraph two_files() {
  graph::MetaGraph graph;
  graph.files.resize(2);
  graph.storages = {graph::plain_storage(graph::FileId{0}, 100, 10'000),
                    graph::plain_storage(graph::FileId{0}, 10'120, 500),
                    graph::plain_storage(graph::FileId{1}, 0, 800)};
  for (std::uint32_t i = 0; i < 3; ++i)
    graph.tensors.push_back(
        {"t" + std::to_string(i), graph::DType::u8, {graph.storages[i].bytes}, {}, graph::StorageId{i}, 0});
  return graph;
}

plan::ReadPattern pattern_of(const graph::MetaGraph& graph, const load::StorageOrder& order) {
  return plan::read_pattern(load::make_plan(graph, load::find_method("per_tensor"), order, {}), graph);
}

TEST(ReadPattern, CountsJumpsAndDistances) {
  const graph::MetaGraph graph = two_files();
  const graph::StorageId a{0}, b{1}, c{2};
  EXPECT_EQ(pattern_of(graph, {a, b, c}), (plan::ReadPattern{11'300, 3, 1, 20}));
  // back to the start of the first file: from 10,620 to 100
  EXPECT_EQ(pattern_of(graph, {b, a, c}), (plan::ReadPattern{11'300, 3, 2, 10'520}));
  // another file between: going on where it ended is a jump all the same
  EXPECT_EQ(pattern_of(graph, {a, c, b}), (plan::ReadPattern{11'300, 3, 2, 20}));
}

TEST(ReadPattern, AForwardSkipOfAPageIsAJump) {
  graph::MetaGraph graph = two_files();
  graph.storages[1].offset = 10'100 + 4096;
  EXPECT_EQ(pattern_of(graph, {graph::StorageId{0}, graph::StorageId{1}, graph::StorageId{2}}),
            (plan::ReadPattern{11'300, 3, 2, 4096}));
}

TEST(ReadPattern, EncodedStoragesCountAsStored) {
  graph::MetaGraph graph = two_files();
  graph.storages[0].encoding = graph::Encoding::deflate;
  graph.storages[0].stored_bytes = 5000;
  graph.storages[1].offset = 5100;
  EXPECT_EQ(pattern_of(graph, {graph::StorageId{0}, graph::StorageId{1}, graph::StorageId{2}}),
            (plan::ReadPattern{6'300, 3, 1, 0}));
}

TEST(ReadPattern, WithoutFilesNothingJumps) {
  graph::MetaGraph graph = two_files();
  graph.files.clear();
  for (graph::Storage& storage : graph.storages) storage = graph::shapes_only_storage(storage.bytes);
  EXPECT_EQ(pattern_of(graph, {graph::StorageId{2}, graph::StorageId{0}, graph::StorageId{1}}),
            (plan::ReadPattern{11'300, 3, 0, 0}));
}

TEST(ReadPattern, JumpsCostTimeInAProjection) {
  const graph::MetaGraph graph = two_files();
  const load::BoundRequest options = {.costs = {.seek_seconds = 2.0}};
  const load::Projection sequential =
      load::project(graph, load::find_method("per_tensor"), load::find_order("file"), options);
  const load::Projection smallest =
      load::project(graph, load::find_method("per_tensor"), load::find_order("smallest"), options);
  EXPECT_EQ(sequential.reads.jumps, 1u);
  EXPECT_DOUBLE_EQ(sequential.seconds, sequential.timeline.seconds + 2.0);
  EXPECT_EQ(smallest.reads.jumps, 2u);
  EXPECT_DOUBLE_EQ(smallest.seconds, smallest.timeline.seconds + 4.0);
}

}  // namespace

// --- Offsets never overlap, gaps merge, and nothing is lost.

namespace {

TEST(Suballocator, FillsExactlyAndRefusesMore) {
  allocators::Suballocator memory(1024, 256);
  EXPECT_EQ(memory.allocate(1), 0u);
  EXPECT_EQ(memory.allocate(256), 256u);
  EXPECT_EQ(memory.allocate(257), 512u);
  EXPECT_EQ(memory.used(), 1024u);
  EXPECT_EQ(memory.largest_gap(), 0u);
  EXPECT_EQ(memory.allocate(1), std::nullopt);
}

TEST(Suballocator, MergesWithBothNeighbors) {
  allocators::Suballocator memory(1024, 256);
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
  allocators::Suballocator memory(4096, 256);
  const auto a = memory.allocate(1024), b = memory.allocate(256), c = memory.allocate(512),
             d = memory.allocate(256);
  ASSERT_TRUE(a && b && c && d);
  memory.free(*a);
  memory.free(*c);
  EXPECT_EQ(memory.allocate(500), *c);
  EXPECT_EQ(memory.allocate(500), *a);
}

TEST(Suballocator, RefusesWhatCannotBeRounded) {
  allocators::Suballocator memory(1024, 256);
  EXPECT_EQ(memory.allocate(~std::uint64_t{0}), std::nullopt);
  EXPECT_EQ(memory.allocate(1025), std::nullopt);
  EXPECT_EQ(allocators::Suballocator(0, 256).allocate(1), std::nullopt);
}

TEST(Suballocator, RandomUseKeepsRangesApart) {
  std::mt19937 random(3);
  for (int round = 0; round < 50; ++round) {
    const std::uint64_t alignment = 1ull << (random() % 9), capacity = alignment * (1 + random() % 200);
    allocators::Suballocator memory(capacity, alignment);
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
  allocators::Suballocator memory(1024, 256);
  const auto offset = memory.allocate(1);
  memory.free(*offset);
  EXPECT_DEATH(memory.free(*offset), "not allocated");
}
#endif

}  // namespace

}  // namespace loadline::tests
