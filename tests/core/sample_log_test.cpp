// What a log of samples keeps, and that a long one takes no memory while it is filled.
#include "core/io/system_memory.h"
#include "core/load/measure/rehearse.h"

#include <algorithm>

#include <gtest/gtest.h>

namespace loadline {
namespace {

MemorySample sample(std::size_t at) {
  const std::uint64_t peak = at == 777 ? 1000 : 0;
  return {static_cast<double>(at), {.rss_anon = at, .rss_file = peak, .rss_shmem = 7}};
}

TEST(SampleLog, KeepsAllWhileThereIsRoom) {
  SampleLog log(4);
  for (std::size_t i = 0; i < 4; ++i) log.add(sample(i), 10 * i);
  const auto [samples, steps] = log.take();
  EXPECT_EQ(steps, (std::vector<std::size_t>{0, 10, 20, 30}));
  ASSERT_EQ(samples.size(), 4u);
  EXPECT_EQ(samples[3].memory.rss_anon, 3u);
  EXPECT_EQ(samples[3].seconds, 3);
}

TEST(SampleLog, ShowsWhatItHoldsWithoutLosingIt) {
  SampleLog log(4);
  for (std::size_t i = 0; i < 6; ++i) {
    MemorySample with_count = sample(i);
    with_count.device_counted = i == 3 ? 50 : 0;
    log.add(with_count, i);
  }
  const auto [samples, steps] = log.entries();
  EXPECT_EQ(steps, (std::vector<std::size_t>{0, 2, 4}));
  ASSERT_EQ(samples.size(), 3u);
  EXPECT_EQ(samples[1].device_counted, 50u);
  EXPECT_EQ(log.take().steps, steps);
}

// Also of one that had halved what it holds: a new one stands for single samples again.
TEST(SampleLog, IsAsNewWhenItWasEmptied) {
  SampleLog log(4);
  for (std::size_t i = 0; i < 6; ++i) log.add(sample(i), i);
  EXPECT_EQ(log.take().steps, (std::vector<std::size_t>{0, 2, 4}));
  EXPECT_TRUE(log.take().steps.empty());
  for (std::size_t i = 7; i < 11; ++i) log.add(sample(i), i);
  const auto [samples, steps] = log.take();
  EXPECT_EQ(steps, (std::vector<std::size_t>{7, 8, 9, 10}));
  EXPECT_EQ(samples.front().memory.rss_anon, 7u);
}

TEST(SampleLog, LosesNoPeakAndKeepsTheOrderWhenItIsFull) {
  for (const std::size_t count : {5u, 9u, 64u, 1000u, 1023u}) {
    SampleLog log(4);
    for (std::size_t i = 0; i < count; ++i) log.add(sample(i), i / 3);
    const auto [samples, steps] = log.take();
    ASSERT_EQ(samples.size(), steps.size());
    EXPECT_LE(samples.size(), 4u);
    EXPECT_TRUE(std::is_sorted(steps.begin(), steps.end()));
    EXPECT_EQ(steps.front(), 0u);
    EXPECT_EQ(samples.back().memory.rss_anon, count - 1);
    std::uint64_t most = 0;
    for (const MemorySample& kept : samples) most = std::max(most, kept.memory.rss_file);
    EXPECT_EQ(most, count > 777 ? 1000u : 0u);
  }
}

// Twenty minutes at a thousand a second would be 46 MiB if each were kept.
TEST(SampleLog, DoesNotGrowWhileItIsFilled) {
  SampleLog log;
  const std::uint64_t before = read_process_memory().rss_anon;
  if (before == 0) GTEST_SKIP() << "the system does not say";
  for (std::size_t i = 0; i < 1'200'000; ++i) log.add(sample(i), i);
  const std::uint64_t after = read_process_memory().rss_anon;
  EXPECT_LE(after, before + (1 << 20));
}

}  // namespace
}  // namespace loadline
