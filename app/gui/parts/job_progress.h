// The progress of a job that moves bytes: a bar with a button that stops it, its rate and the time left.
#pragma once

#include "app/gui/parts/ui.h"
#include "app/gui/state/base/jobs.h"
#include "core/base/recent_rate.h"

#include <cstdint>

namespace loadline::gui {

// Keeps the rate from frame to frame.
class JobProgress {
 public:
  // True when the button that stops the job was pressed.
  bool draw(const Ui& ui, const JobView& job);

 private:
  RecentRate rate_;
  std::uint64_t rated_ = 0;  // bytes at the last frame
};

}  // namespace loadline::gui
