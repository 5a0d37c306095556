// The books of allocators: against the real malloc, against what an arena must obey, and of whole loads.
#include "core/allocators/allocator_rules.h"
#include "core/base/error.h"
#include "core/io/system_memory.h"
#include "core/load/answer/projection.h"
#include "core/plan/dry_machine.h"
#include "core/plan/reserved_memory.h"
#include "tests/support/builders.h"
#include "tests/support/plan_models.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>
#include <span>

#include <fmt/core.h>
#include <gtest/gtest.h>

#if defined(__GLIBC__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#include <gnu/libc-version.h>
#include <malloc.h>
#include <sys/wait.h>
#include <unistd.h>
#define LOADLINE_REAL_MALLOC
#endif
#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#undef LOADLINE_REAL_MALLOC
#endif
#endif

namespace loadline::tests {
namespace {

#ifdef LOADLINE_REAL_MALLOC
// A block and its bytes, or a block and 0 for a free.
using Requests = std::vector<std::pair<std::size_t, std::uint64_t>>;

// What load methods ask of the host: a model and its state dict, kept and freed in several ways. Not one
// tensor at a time: there a piece of 48 bytes decides whether memory goes back, and what the process did
// before decides about that.
Requests load_requests(int kind, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<std::uint64_t> sizes;
  for (int i = 0; i < 150; ++i) {
    const std::uint64_t scale = std::uint64_t{1} << (12 + random() % 14);  // up to 64 MiB
    sizes.push_back(scale + random() % scale);
  }
  Requests requests;
  const std::size_t n = sizes.size();
  const auto all = [&](std::size_t first) {
    for (std::size_t i = 0; i < n; ++i) requests.emplace_back(first + i, sizes[i]);
  };
  const auto none = [&](std::size_t first) {
    for (std::size_t i = 0; i < n; ++i) requests.emplace_back(first + i, 0);
  };
  switch (kind) {
    case 0:  // all, then freed as each goes to the device
      all(0), none(0);
      break;
    case 1:  // a model, then a state dict beside it
      all(0), all(n), none(n), none(0);
      break;
    default:  // each cast into a block that stays
      for (std::size_t i = 0; i < n; ++i)
        requests.insert(requests.end(), {{i, sizes[i]}, {n + i, 2 * sizes[i]}, {i, 0}});
      none(n);
  }
  return requests;
}

// What the system has given a fresh process for its heap, after each request.
std::vector<std::uint64_t> real_heap(const Requests& requests) {
  std::vector<std::uint64_t> levels(requests.size());
  int ends[2];
  if (::pipe(ends) != 0) return {};
  const pid_t child = ::fork();
  if (child == 0) {
    std::vector<void*> blocks(requests.size());
    std::vector<std::uint64_t> seen(requests.size());
    const auto system = [] {
      const struct mallinfo2 info = ::mallinfo2();
      return info.arena + info.hblkhd;
    };
    // what lies free in the heap and the cache that the child inherits is taken first, so that requests meet
    // the top, as in a process that begins
    std::vector<void*> fill;
    for (std::size_t bytes = 24; bytes <= 1032; bytes += 16)
      for (int i = 0; i < 8; ++i) fill.push_back(std::malloc(bytes));
    for (std::size_t bytes = 1 << 16; bytes > 1032; bytes = bytes * 3 / 4)
      for (std::size_t before = ::mallinfo2().arena; ::mallinfo2().arena == before;)
        fill.push_back(std::malloc(bytes));
    const std::uint64_t start = system();
    for (std::size_t i = 0; i < requests.size(); ++i) {
      const auto& [block, bytes] = requests[i];
      if (bytes == 0)
        std::free(blocks[block]);
      else if (::posix_memalign(&blocks[block], 64, bytes) != 0)
        ::_exit(1);
      const std::uint64_t now = system();
      seen[i] = now > start ? now - start : 0;
    }
    const char* at = reinterpret_cast<const char*>(seen.data());
    for (std::size_t left = seen.size() * sizeof(std::uint64_t); left > 0;) {
      const ssize_t wrote = ::write(ends[1], at, left);
      if (wrote <= 0) ::_exit(1);
      at += wrote;
      left -= static_cast<std::size_t>(wrote);
    }
    ::_exit(0);
  }
  ::close(ends[1]);
  char* at = reinterpret_cast<char*>(levels.data());
  for (std::size_t left = levels.size() * sizeof(std::uint64_t); left > 0;) {
    const ssize_t got = ::read(ends[0], at, left);
    if (got <= 0) break;
    at += got;
    left -= static_cast<std::size_t>(got);
  }
  ::close(ends[0]);
  int status = 0;
  ::waitpid(child, &status, 0);
  return status == 0 ? levels : std::vector<std::uint64_t>();
}

TEST(MallocHeap, TakesAndReturnsAsGlibcDoes) {
  for (int kind = 0; kind < 3; ++kind)
    for (std::uint64_t seed = 0; seed < 8; ++seed) {
      const Requests requests = load_requests(kind, seed);
      const std::vector<std::uint64_t> real = real_heap(requests);
      ASSERT_EQ(real.size(), requests.size());
      allocators::MallocHeap heap;
      std::vector<allocators::MallocHeap::Chunk> chunks(requests.size());
      double sum = 0, real_sum = 0, peak = 0, real_peak = 0;
      for (std::size_t i = 0; i < requests.size(); ++i) {
        const auto& [block, bytes] = requests[i];
        if (bytes == 0)
          heap.release(chunks[block]);
        else
          chunks[block] = heap.allocate(bytes, 64);
        const auto level = static_cast<double>(heap.reserved()), seen = static_cast<double>(real[i]);
        sum += level, real_sum += seen;
        peak = std::max(peak, level), real_peak = std::max(real_peak, seen);
      }
      RecordProperty(fmt::format("kind{}_seed{}", kind, seed),
                     fmt::format("peak {:.4f} mean {:.4f}", peak / real_peak, sum / real_sum));
      EXPECT_NEAR(peak / real_peak, 1, 0.02) << "kind " << kind << " seed " << seed;
      EXPECT_NEAR(sum / real_sum, 1, 0.02) << "kind " << kind << " seed " << seed;
    }
}
// One request of a load that brings a tensor at a time: a block, or a free of it with bytes 0.
struct Request {
  std::size_t block = 0;
  std::uint64_t bytes = 0;
  std::uint64_t alignment = 16;
};

// A tensor of the host with its small objects, copied to a device tensor whose own outlive it, then freed: as
// PyTorch does it (traced: malloc(96), 80, 29, 176, 24, 184, 24 and malloc(96), 80, 29, 24, 184).
std::vector<Request> streamed_tensors(std::span<const std::uint64_t> sizes, std::uint64_t before) {
  std::vector<Request> requests = {{0, before}};
  std::size_t next = 1;
  for (const std::uint64_t bytes : sizes) {
    std::vector<std::size_t> tensor = {next};
    requests.push_back({next++, bytes, 64});
    for (const std::uint64_t object : {96u, 80u, 29u, 176u, 24u, 184u, 24u}) {
      tensor.push_back(next);
      requests.push_back({next++, object});
    }
    for (const std::uint64_t object : {96u, 80u, 29u, 24u, 184u}) requests.push_back({next++, object});
    for (const std::size_t block : tensor) requests.push_back({block, 0});
  }
  return requests;
}

// The most private memory that a fresh process has resident while it makes these requests and writes to each
// block, over what it had before.
std::uint64_t real_peak(const std::vector<Request>& requests, std::uint64_t threshold) {
  int ends[2];
  if (::pipe(ends) != 0) return 0;
  const pid_t child = ::fork();
  if (child == 0) {
    // the threshold moves on its own only where nobody has set it: freeing a mapping raises it
    void* volatile mapping = std::malloc(threshold);
    std::free(mapping);
    std::vector<void*> blocks(requests.size());
    const std::uint64_t start = io::read_process_memory().rss_anon;
    std::uint64_t most = start;
    for (const Request& request : requests) {
      if (request.bytes == 0) {
        std::free(blocks[request.block]);
        continue;
      }
      if (::posix_memalign(&blocks[request.block], request.alignment, request.bytes) != 0) ::_exit(1);
      std::memset(blocks[request.block], 1, request.bytes);
      if (request.bytes > 4096) most = std::max(most, io::read_process_memory().rss_anon);
    }
    most -= start;
    ::_exit(::write(ends[1], &most, sizeof most) == sizeof most ? 0 : 1);
  }
  ::close(ends[1]);
  std::uint64_t most = 0;
  const bool told = ::read(ends[0], &most, sizeof most) == sizeof most;
  ::close(ends[0]);
  ::waitpid(child, nullptr, 0);
  return told ? most : 0;
}

// The hole that a freed tensor leaves is too small for the next of its size, so that a load of one tensor at
// a time keeps nearly all that it freed, before glibc 2.39.
TEST(MallocHeap, KeepsStreamedTensorsAsGlibcDoes) {
  constexpr std::uint64_t kMiB = 1 << 20, kThreshold = 2 * kMiB;
  const bool joins = std::atof(gnu_get_libc_version()) > 2.385;
  const std::vector<std::vector<std::uint64_t>> loads = {
      std::vector<std::uint64_t>(40, kMiB),
      std::vector<std::uint64_t>(12, 9 * kMiB),
      {9 * kMiB, 24 * kMiB, 9 * kMiB, 24 * kMiB, 9 * kMiB, 24 * kMiB, 9 * kMiB, 48 * kMiB, 48 * kMiB}};
  for (const std::vector<std::uint64_t>& sizes : loads) {
    const std::vector<Request> requests = streamed_tensors(sizes, 2064);
    allocators::MallocHeap heap({.threshold = kThreshold, .remainders_join = joins});
    std::vector<allocators::MallocHeap::Chunk> chunks(requests.size());
    std::uint64_t most = 0;
    for (const Request& request : requests)
      if (request.bytes == 0) {
        heap.release(chunks[request.block]);
      } else {
        chunks[request.block] = heap.allocate(request.bytes, request.alignment);
        most = std::max(most, heap.resident());
      }
    const std::uint64_t real = real_peak(requests, kThreshold);
    RecordProperty(fmt::format("tensors{}", sizes.size()), fmt::format("{} {}", most, real));
    // where in a unit of 64 bytes the first tensor begins decides about one of them
    const auto largest = static_cast<double>(*std::ranges::max_element(sizes));
    EXPECT_NEAR(static_cast<double>(most), static_cast<double>(real),
                0.02 * static_cast<double>(real) + largest)
        << sizes.size() << " tensors";
    if (!joins) EXPECT_GT(most, 2 * *std::ranges::max_element(sizes) - kMiB) << sizes.size() << " tensors";
  }
}
#endif

TEST(MallocHeap, KeepsWhatLiesUnderTheTop) {
  allocators::MallocHeap heap;
  const auto low = heap.allocate(100 << 10), high = heap.allocate(100 << 10);
  const std::uint64_t before = heap.reserved();
  heap.release(low);
  EXPECT_EQ(heap.reserved(), before);  // freed, not returned
  EXPECT_LT(heap.used(), 110u << 10);
  heap.release(high);
  EXPECT_LE(heap.reserved(), 300u << 10);
  EXPECT_EQ(heap.used(), 0u);
  // a mapping goes at once, and makes the next of its size one of the heap
  const auto mapped = heap.allocate(20 << 20);
  EXPECT_TRUE(mapped.mapped());
  heap.release(mapped);
  EXPECT_LT(heap.reserved(), 1u << 20);
  EXPECT_FALSE(heap.allocate(20 << 20).mapped());
  EXPECT_TRUE(heap.allocate(40 << 20).mapped());
}

TEST(BlockPool, TakesOnlyWhatIsMissing) {
  std::vector<std::uint64_t> made;
  allocators::BlockPool pool(
      {.expected = {600ull << 20, {}}},
      [&](std::uint32_t, std::uint64_t wanted, std::uint64_t) {
        made.push_back(wanted);
        return allocators::PoolBlock{wanted, wanted};
      },
      [](std::uint32_t) {});
  std::vector<allocators::BlockPool::Range> ranges;
  for (int i = 0; i < 6; ++i) ranges.push_back(pool.allocate(100ull << 20));
  // two of 100 in each block of 256, and what then is missing of 600
  EXPECT_EQ(made, (std::vector<std::uint64_t>{256ull << 20, 256ull << 20, 100ull << 20, 100ull << 20}));
  EXPECT_EQ(pool.reserved(), 712ull << 20);
  for (const auto& range : ranges) pool.free(range);
  EXPECT_LE(pool.reserved(), 256ull << 20);  // one is kept
}

// The sizes of the blocks that a pool takes for `requests`, when it expects `expected` of them to stay, and
// `peak` bytes at once. All in MiB.
std::vector<std::uint64_t> blocks_for(const std::vector<std::uint64_t>& requests, std::uint64_t peak,
                                      const std::vector<std::uint64_t>& expected) {
  constexpr int kMiB = 20;
  std::vector<std::uint64_t> made;
  allocators::PoolForecast forecast = {.peak = peak << kMiB};
  for (const std::uint64_t bytes : expected) forecast.requests.push_back({.bytes = bytes << kMiB});
  allocators::BlockPool pool(
      {.expected = std::move(forecast), .block = 100ull << kMiB},
      [&](std::uint32_t, std::uint64_t wanted, std::uint64_t) {
        made.push_back(wanted >> kMiB);
        return allocators::PoolBlock{wanted, wanted};
      },
      [](std::uint32_t) {});
  for (const std::uint64_t bytes : requests) pool.allocate(bytes << kMiB);
  return made;
}

TEST(BlockPool, LeavesNoGapsWhereTheRequestsAreKnown) {
  using Sizes = std::vector<std::uint64_t>;
  const Sizes last_is_large = {40, 40, 30, 60, 60};
  EXPECT_EQ(blocks_for(last_is_large, 230, last_is_large), (Sizes{80, 90, 60}));
  EXPECT_EQ(blocks_for(last_is_large, 230, {}), (Sizes{100, 100, 60}));
  // those that are larger than a block have one of their own, and the others share across them
  const Sizes mixed = {10, 300, 20, 200, 30};
  EXPECT_EQ(blocks_for(mixed, 560, mixed), (Sizes{60, 300, 200}));
  // another load than expected: never less than asked for
  EXPECT_EQ(blocks_for({50, 70, 20}, 140, {10, 20, 30}), (Sizes{100, 70}));
  EXPECT_EQ(blocks_for({50, 70}, 120, {50}), (Sizes{50, 100}));
}

// Counts what a pool takes from its source.
struct CountedPool {
  explicit CountedPool(allocators::PoolForecast expected)
      : pool(
            {.expected = std::move(expected)},
            [this](std::uint32_t, std::uint64_t wanted, std::uint64_t) {
              ++taken;
              return allocators::PoolBlock{wanted, wanted};
            },
            [](std::uint32_t) {}) {}
  std::size_t taken = 0;
  allocators::BlockPool pool;
};

// One large weight, then small ones that take turns: the block of the large one does not stay, and small
// blocks are not taken again and again.
TEST(BlockPool, KeepsNoBlockFarLargerThanWhatFollows) {
  constexpr std::uint64_t kMiB = 1 << 20;
  allocators::PoolForecast expected = {.peak = 500 * kMiB};
  for (std::size_t i = 0; i < 20; ++i)
    expected.requests.push_back(
        {.bytes = (i == 3 ? 500 : 20) * kMiB, .stays = false, .passing_peak = (i <= 3 ? 500 : 20) * kMiB});
  CountedPool counted(expected);
  allocators::BlockPool& pool = counted.pool;
  for (std::size_t i = 0; i < expected.requests.size(); ++i) {
    const allocators::BlockPool::Range range = pool.allocate(expected.requests[i].bytes);
    if (i < 3) EXPECT_EQ(pool.reserved(), 240 * kMiB);  // 500 would be too much so early
    if (i == 3) EXPECT_EQ(pool.reserved(), 500 * kMiB);
    if (i > 3) EXPECT_EQ(pool.reserved(), 20 * kMiB);
    pool.free(range);
    if (i == 3) EXPECT_EQ(pool.reserved(), 0u);
  }
  EXPECT_EQ(counted.taken, 3u);
  EXPECT_EQ(pool.reserved(), 0u);
}

// Weights arrive one by one, each beside a copy that goes again: the copies leave no holes among the weights.
TEST(BlockPool, WhatPassesLiesApartFromWhatStays) {
  constexpr std::uint64_t kMiB = 1 << 20;
  allocators::PoolForecast expected = {.peak = 30 * 50 * kMiB + 50 * kMiB};
  for (std::size_t i = 0; i < 60; ++i)
    expected.requests.push_back({.bytes = 50 * kMiB, .stays = i % 2 == 1, .passing_peak = 50 * kMiB});
  CountedPool counted(expected);
  std::uint64_t most = 0;
  for (std::size_t i = 0; i < 30; ++i) {
    const allocators::BlockPool::Range copy = counted.pool.allocate(50 * kMiB);
    counted.pool.allocate(50 * kMiB);
    most = std::max(most, counted.pool.reserved());
    counted.pool.free(copy);
  }
  EXPECT_EQ(most, expected.peak);
  EXPECT_EQ(counted.pool.reserved(), 30 * 50 * kMiB);
  EXPECT_EQ(counted.taken, 1 + 30 / 5);
}

TEST(BlockPool, ADriverThatRoundsLeavesNoTensorOver) {
  std::vector<std::uint64_t> made;
  const std::vector<allocators::PoolRequest> requests(4, {.bytes = 100 << 20});
  allocators::BlockPool pool(
      {.expected = {400ull << 20, requests}},
      [&](std::uint32_t, std::uint64_t wanted, std::uint64_t) {
        made.push_back(wanted);
        return allocators::PoolBlock{wanted, wanted + (64 << 10)};
      },
      [](std::uint32_t) {});
  for (const allocators::PoolRequest& request : requests) pool.allocate(request.bytes);
  EXPECT_EQ(made, (std::vector<std::uint64_t>{200 << 20, 200 << 20}));
}

std::uint64_t overlaps(const plan::Plan& plan, const plan::Timeline& timeline, plan::Space space,
                       const plan::Arena& arena) {
  std::uint64_t count = 0;
  for (std::size_t a = 0; a < plan.blocks.size(); ++a)
    for (std::size_t b = 0; b < a; ++b) {
      if (plan.blocks[a].space != space || plan.blocks[b].space != space) continue;
      if (plan.blocks[a].bytes == 0 || plan.blocks[b].bytes == 0) continue;
      const plan::Lifetime &x = timeline.lifetimes[a], &y = timeline.lifetimes[b];
      const bool together = x.from_step < y.to_step && y.from_step < x.to_step;
      const bool touch = arena.offsets[a] < arena.offsets[b] + plan.blocks[b].bytes &&
                         arena.offsets[b] < arena.offsets[a] + plan.blocks[a].bytes;
      count += together && touch ? 1 : 0;
    }
  return count;
}

TEST(Arena, BlocksThatAreAliveTogetherDoNotMeet) {
  graph::MetaGraph graph;
  for (std::uint32_t i = 0; i < 4; ++i) {
    graph.storages.push_back(graph::shapes_only_storage(1000 * (i + 1)));
    graph.tensors.push_back({graph::Name("t" + std::to_string(i)),
                             graph::DType::u8,
                             {1000 * (i + 1)},
                             {},
                             graph::StorageId{i},
                             0});
  }
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    const plan::Plan plan = testing::random_plan(graph, seed, 150);
    plan::DryMachine machine;
    const plan::Timeline timeline = plan::run(plan, machine);
    for (const plan::Space space : {plan::Space::host, plan::Space::staging, plan::Space::device}) {
      Progress progress;
      const plan::Arena arena = plan::plan_arena(plan, timeline, space, progress);
      EXPECT_EQ(overlaps(plan, timeline, space, arena), 0u);
      EXPECT_GE(arena.height, arena.lower_bound);
      EXPECT_GE(arena.lower_bound, timeline.peaks[plan::index(space)].bytes);
      for (std::size_t b = 0; b < plan.blocks.size(); ++b) EXPECT_EQ(arena.offsets[b] % 256, 0u);
    }
  }
}

TEST(Allocators, NoneTakesLessThanWhatIsAsked) {
  graph::MetaGraph graph;
  std::mt19937_64 random(2);
  for (std::uint32_t i = 0; i < 40; ++i) {
    const std::uint64_t bytes = 1 + random() % (random() % 3 == 0 ? 3'000'000 : 20'000);
    graph.storages.push_back(graph::shapes_only_storage(bytes));
    graph.tensors.push_back(
        {graph::Name("t" + std::to_string(i)), graph::DType::u8, {bytes}, {}, graph::StorageId{i}, 0});
  }
  for (const allocators::AllocatorRow& row : allocators::allocators())
    for (const load::Method& method : load::methods()) {
      SCOPED_TRACE(std::string(row.id) + " " + std::string(method.id));
      const plan::Timeline timeline =
          load::project(graph, method, load::find_order("file"),
                        {.request = {.allocator = row.model, .activation_bytes = 5000}})
              .timeline;
      EXPECT_EQ(timeline.reserved_peak.has_value(), allocators::reserves(row.model));
      if (!timeline.reserved_peak) continue;
      for (std::size_t space = 0; space < plan::kSpaceCount; ++space) {
        EXPECT_GE((*timeline.reserved_peak)[space], timeline.peaks[space].bytes);
        EXPECT_GE((*timeline.reserved_final)[space], timeline.final_bytes[space]);
        EXPECT_LE((*timeline.reserved_final)[space], (*timeline.reserved_peak)[space]);
      }
    }
  EXPECT_THROW(allocators::load_allocator("jemalloc"), Error);
}

}  // namespace
}  // namespace loadline::tests
