// The samples of an upload that runs, for the window to draw meanwhile.
#pragma once

#include "core/load/answer/projection.h"
#include "core/load/measure/sample_log.h"

#include <cstddef>
#include <memory>
#include <mutex>
#include <utility>

namespace loadline::gui {

// One thread adds samples while another reads them. All memory is taken and touched when it is made: none of
// it grows while the process is measured.
class LiveUpload {
 public:
  explicit LiveUpload(std::shared_ptr<const Projection> projection) : projection_(std::move(projection)) {}

  const std::shared_ptr<const Projection>& projection() const { return projection_; }
  void add(const MemorySample& sample, std::size_t step) {
    const std::lock_guard lock(mutex_);
    log_.add(sample, step);
  }
  SampleLog::Entries samples() const {
    const std::lock_guard lock(mutex_);
    return log_.entries();
  }

 private:
  static constexpr std::size_t kMostSamples = 2048;  // about as many as a plot has columns

  std::shared_ptr<const Projection> projection_;
  mutable std::mutex mutex_;
  SampleLog log_{kMostSamples};
};

}  // namespace loadline::gui
