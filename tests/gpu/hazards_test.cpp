// Interval sets against a bitmap, and which pairs of copies conflict.
#include "core/gpu/transfer_queue.h"

#include <random>
#include <vector>

#include <gtest/gtest.h>

namespace loadline::gpu {
namespace {

TEST(RangeSet, MergesAndAnswersLikeABitmap) {
  std::mt19937 random(5);
  for (int round = 0; round < 300; ++round) {
    RangeSet set;
    std::vector<bool> bits(64, false);
    for (int step = 0; step < 30; ++step) {
      const std::uint64_t begin = random() % 64, end = begin + random() % (65 - begin);
      bool any = false;
      for (std::uint64_t i = begin; i < end; ++i) any = any || bits[i];
      ASSERT_EQ(set.overlaps(begin, end), any);
      if (random() % 2 == 0) continue;
      set.insert(begin, end);
      for (std::uint64_t i = begin; i < end; ++i) bits[i] = true;
      std::size_t runs = 0;
      for (std::size_t i = 0; i < bits.size(); ++i) runs += bits[i] && (i == 0 || !bits[i - 1]) ? 1 : 0;
      ASSERT_EQ(set.size(), runs);
    }
  }
}

TEST(HazardTracker, ReadsMayOverlapNothingElseMay) {
  HazardTracker tracker;
  tracker.add({1, 0, 10}, {2, 0, 10});
  EXPECT_FALSE(tracker.conflicts({1, 0, 10}, {3, 0, 10}));   // read after read
  EXPECT_FALSE(tracker.conflicts({1, 0, 10}, {2, 10, 20}));  // beside it
  EXPECT_TRUE(tracker.conflicts({2, 9, 10}, {3, 0, 1}));     // read after write
  EXPECT_TRUE(tracker.conflicts({3, 0, 1}, {2, 9, 10}));     // write after write
  EXPECT_TRUE(tracker.conflicts({3, 0, 1}, {1, 0, 1}));      // write after read
  tracker.clear();
  EXPECT_FALSE(tracker.conflicts({2, 9, 10}, {1, 0, 1}));
}

TEST(PendingUses, TheHostWaitsForWhatItTouches) {
  PendingUses uses;
  uses.add(0, 100, 1, false);
  uses.add(100, 200, 2, true);
  EXPECT_EQ(uses.before_read(0, 100), 0u);  // the device only reads there
  EXPECT_EQ(uses.before_write(0, 100), 1u);
  EXPECT_EQ(uses.before_read(50, 101), 2u);
  EXPECT_EQ(uses.before_write(200, 300), 0u);
  uses.complete(1);
  EXPECT_EQ(uses.before_write(0, 100), 0u);
  EXPECT_EQ(uses.before_write(0, 101), 2u);
  uses.complete(2);
  EXPECT_TRUE(uses.empty());
}

TEST(PendingUses, TheNewestUseOfAByteCounts) {
  PendingUses uses;
  for (std::uint64_t value = 1; value <= 5; ++value)
    for (std::uint64_t i = 0; i < 1000; ++i) uses.add(i * 8, i * 8 + 4, value, value % 2 == 0);
  EXPECT_EQ(uses.before_write(0, 1), 5u);
  EXPECT_EQ(uses.before_read(0, 1), 4u);
  EXPECT_EQ(uses.before_write(4, 8), 0u);  // between two of them
  uses.complete(4);
  EXPECT_EQ(uses.before_read(0, 8000), 0u);
  EXPECT_EQ(uses.before_write(7999, 8000), 0u);
}

}  // namespace
}  // namespace loadline::gpu
