// A log of memory samples from a run of any length, in memory that is allocated and touched before the run.
#pragma once

#include "core/plan/timeline.h"

#include <cstddef>
#include <vector>

namespace loadline {

// Keeps every sample while there is room. When full, merges neighbouring samples in pairs: each pair keeps
// the first one's time and step and the maximum of each counter. From then on each entry covers twice as many
// samples. No peak is lost.
class SampleLog {
 public:
  // `most`: capacity in samples, an even number of at least 2. The default takes 3 MiB.
  explicit SampleLog(std::size_t most = 1 << 16);

  void add(const MemorySample& sample, std::size_t step);
  // The samples and, parallel to them, the steps at which they were taken. take() leaves the log empty.
  struct Entries {
    std::vector<MemorySample> samples = {};
    std::vector<std::size_t> steps = {};
  };
  Entries take();
  // The same, without emptying the log: the figures up to now of a run that goes on.
  Entries entries() const;

 private:
  void halve();

  std::vector<MemorySample> samples_;
  std::vector<std::size_t> steps_;
  std::size_t count_ = 0;
  std::size_t group_ = 1;     // samples per entry
  std::size_t in_group_ = 0;  // samples in the last entry; 0: it is full
};

}  // namespace loadline
