// A table of fixed size; each entry is the maximum of a group of samples, and groups double when the table is
// full.
#include "core/load/measure/sample_log.h"

#include <algorithm>
#include <cassert>
#include <utility>

namespace loadline {
namespace {

void raise(MemorySample& most, const MemorySample& sample) {
  most.memory.rss_anon = std::max(most.memory.rss_anon, sample.memory.rss_anon);
  most.memory.rss_file = std::max(most.memory.rss_file, sample.memory.rss_file);
  most.memory.rss_shmem = std::max(most.memory.rss_shmem, sample.memory.rss_shmem);
  most.device_counted = std::max(most.device_counted, sample.device_counted);
}

}  // namespace

// Zero-initialised vectors have all their pages touched.
SampleLog::SampleLog(std::size_t most) : samples_(most), steps_(most) { assert(most >= 2 && most % 2 == 0); }

void SampleLog::add(const MemorySample& sample, std::size_t step) {
  if (in_group_ > 0) {
    raise(samples_[count_ - 1], sample);
  } else {
    if (count_ == samples_.size()) halve();
    samples_[count_] = sample;
    steps_[count_++] = step;
  }
  in_group_ = (in_group_ + 1) % group_;
}

void SampleLog::halve() {
  for (std::size_t i = 0; i < count_ / 2; ++i) {
    MemorySample sample = samples_[2 * i];
    raise(sample, samples_[2 * i + 1]);
    samples_[i] = sample;
    steps_[i] = steps_[2 * i];
  }
  count_ /= 2;
  group_ *= 2;
}

SampleLog::Entries SampleLog::entries() const {
  const auto end = static_cast<std::ptrdiff_t>(count_);
  return {{samples_.begin(), samples_.begin() + end}, {steps_.begin(), steps_.begin() + end}};
}

SampleLog::Entries SampleLog::take() {
  SampleLog taken = std::exchange(*this, SampleLog(samples_.size()));
  taken.samples_.resize(taken.count_);
  taken.steps_.resize(taken.count_);
  return {std::move(taken.samples_), std::move(taken.steps_)};
}

}  // namespace loadline
