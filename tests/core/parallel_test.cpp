// Loops over several threads.
#include "core/base/tasks.h"

#include <atomic>
#include <stdexcept>
#include <vector>

#include <gtest/gtest.h>

namespace loadline {
namespace {

TEST(ParallelLoop, RunsEveryTurnOnce) {
  for (const std::size_t threads : {0U, 1U, 2U, 7U}) {
    std::vector<std::atomic<int>> runs(1000);
    ParallelLoop(runs.size(), threads, [&](std::size_t i) { ++runs[i]; }).finish();
    for (const std::atomic<int>& run : runs) ASSERT_EQ(run, 1);
  }
}

TEST(ParallelLoop, ThrowsWhatATurnThrew) {
  for (const std::size_t threads : {1U, 4U}) {
    ParallelLoop loop(100, threads, [](std::size_t i) {
      if (i == 40) throw std::runtime_error("forty");
    });
    EXPECT_THROW(loop.finish(), std::runtime_error);
  }
}

TEST(ParallelLoop, MayBeLeftWithoutAnEnd) {
  std::atomic<int> runs = 0;
  {
    ParallelLoop loop(1'000'000, 2, [&](std::size_t) { ++runs; });
  }
  EXPECT_LE(runs, 1'000'000);
}

}  // namespace
}  // namespace loadline
