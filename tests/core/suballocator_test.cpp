// Offsets never overlap, gaps merge, and nothing is lost.
#include "core/allocators/free_ranges.h"

#include <map>
#include <random>

#include <gtest/gtest.h>

namespace loadline {
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
