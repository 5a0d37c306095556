// Samples of a run of any length in memory that is all taken, and touched, beforehand.
#pragma once

#include "core/plan/timeline.h"

#include <cstddef>
#include <vector>

namespace loadline {

// Keeps every sample while there is room; then two neighbours become one, at the first one's time and step
// with the most of each count, and from then on as many of the new ones. No peak is lost.
class SampleLog {
 public:
  // `most` samples, an even number of at least 2. The default takes 2.5 MiB.
  explicit SampleLog(std::size_t most = 1 << 16);

  void add(const MemorySample& sample, std::size_t step);
  // The samples, and parallel to them the steps at which they were taken. Leaves the log as it was made.
  struct Entries {
    std::vector<MemorySample> samples = {};
    std::vector<std::size_t> steps = {};
  };
  Entries take();

 private:
  void halve();

  std::vector<MemorySample> samples_;
  std::vector<std::size_t> steps_;
  std::size_t count_ = 0;
  std::size_t group_ = 1;     // samples that one entry stands for
  std::size_t in_group_ = 0;  // of the last entry
};

}  // namespace loadline
