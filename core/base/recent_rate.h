// How fast a task has been lately.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <utility>

namespace loadline {

// The rate of the last few seconds: an average since the start would hide a disk that has become slow.
class RecentRate {
 public:
  // Bytes per second, after `done` bytes in all. Call it a few times a second; 0 at the first call.
  double add(std::uint64_t done) {
    const auto now = std::chrono::steady_clock::now();
    samples_.emplace_back(now, done);
    while (samples_.size() > 2 && now - samples_.front().first > kSpan) samples_.pop_front();
    const std::chrono::duration<double> time = now - samples_.front().first;
    return time.count() <= 0 ? 0 : static_cast<double>(done - samples_.front().second) / time.count();
  }
  void reset() { samples_.clear(); }

 private:
  static constexpr std::chrono::seconds kSpan{5};
  std::deque<std::pair<std::chrono::steady_clock::time_point, std::uint64_t>> samples_;
};

}  // namespace loadline
