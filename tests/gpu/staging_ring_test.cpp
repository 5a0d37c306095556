// The ring's states, by hand and against a model of every slot.
#include "core/gpu/device_memory.h"

#include <algorithm>
#include <random>
#include <vector>

#include <gtest/gtest.h>

namespace loadline::gpu {
namespace {

TEST(StagingRing, SlotsTakeTurnsAndWaitForTheirValue) {
  StagingRing ring(2, 256);
  for (std::uint64_t value = 1; value <= 6; ++value) {
    const std::uint64_t needs = ring.next_needs();
    EXPECT_EQ(needs, value <= 2 ? 0 : value - 2);
    ring.begin(needs);
    EXPECT_EQ(ring.take(256, 64).slot, (value - 1) % 2);
    EXPECT_EQ(ring.room(), 0u);
    ring.submit(value);
  }
  EXPECT_EQ(ring.next_needs(), 5u);
}

TEST(StagingRing, PiecesShareASlotOnAlignedOffsets) {
  StagingRing ring(3, 256);
  ring.begin(0);
  ring.submit(1);
  ring.begin(1);
  const StagingRing::Piece a = ring.take(1, 64), b = ring.take(65, 64), c = ring.take(1000, 64);
  EXPECT_EQ(a.slot, 1u);
  EXPECT_EQ(a.offset, 256u);
  EXPECT_EQ(a.bytes, 1u);
  EXPECT_EQ(b.offset, 256u + 64);
  EXPECT_EQ(b.bytes, 65u);
  EXPECT_EQ(c.offset, 256u + 192);
  EXPECT_EQ(c.bytes, 64u);  // what is left
  EXPECT_EQ(ring.room(), 0u);
}

TEST(StagingRing, OneSlot) {
  StagingRing ring(1, 64);
  ring.begin(0);
  ring.take(64, 64);
  ring.submit(3);
  EXPECT_EQ(ring.next_needs(), 3u);
  ring.begin(3);
  EXPECT_TRUE(ring.filling());
}

// Every sequence of begin/submit with random completions keeps to the law: a slot is never handed out
// while its last value is not complete, and pieces of one filling never overlap.
TEST(StagingRing, RandomUseAgainstAModel) {
  std::mt19937 random(7);
  for (int round = 0; round < 200; ++round) {
    const auto slots = static_cast<std::uint32_t>(1 + random() % 5);
    const std::uint64_t slot_bytes = 64 * (1 + random() % 8);
    StagingRing ring(slots, slot_bytes);
    std::vector<std::uint64_t> busy(slots, 0);
    std::uint64_t value = 0, completed = 0;
    for (std::uint32_t turn = 0; turn < 50; ++turn) {
      const std::uint32_t slot = turn % slots;
      ASSERT_EQ(ring.next_needs(), busy[slot]);
      completed = std::max(completed, ring.next_needs());
      if (random() % 2 == 0) completed = value;
      ring.begin(completed);
      std::uint64_t end = slot * slot_bytes;
      while (ring.room() > 0 && random() % 4 != 0) {
        const StagingRing::Piece piece = ring.take(1 + random() % 200, 64);
        ASSERT_EQ(piece.slot, slot);
        ASSERT_GE(piece.offset, end);
        ASSERT_EQ(piece.offset % 64, 0u);
        end = piece.offset + piece.bytes;
        ASSERT_LE(end, (slot + 1) * slot_bytes);
      }
      value += random() % 3;  // several slots may end with one submission
      ring.submit(value);
      busy[slot] = value;
    }
  }
}

#ifndef NDEBUG
TEST(StagingRingDeathTest, MisuseIsAsserted) {
  StagingRing ring(2, 64);
  EXPECT_DEATH(ring.submit(1), "being filled");
  EXPECT_DEATH(ring.take(1, 64), "");
  ring.begin(0);
  EXPECT_DEATH(ring.begin(0), "one slot");
  ring.submit(5);
  ring.begin(0);
  EXPECT_DEATH(ring.submit(4), "never decrease");
  ring.submit(5);
  EXPECT_DEATH(ring.begin(4), "still in flight");
}
#endif

}  // namespace
}  // namespace loadline::gpu
