// Views of memory against peak_over() on random plans, unified budgets, and a page cache that drops.
#include "core/base/error.h"
#include "core/load/answer/projection.h"
#include "core/load/answer/rows.h"
#include "core/plan/dry_machine.h"
#include "core/plan/timeline.h"
#include "tests/support/plan_models.h"
#include "tests/support/random_plans.h"

#include <algorithm>
#include <set>

#include <gtest/gtest.h>

namespace loadline {
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
}  // namespace loadline
