#include "core/base/watch.h"

#include "core/base/start_thread.h"

#include <algorithm>
#include <utility>

namespace loadline {

Watch::Watch(std::chrono::microseconds period, std::function<void()> look)
    : period_(period), look_(std::move(look)), thread_(start_thread([this](const std::stop_token& stop) {
        try {
          repeat(stop);
        } catch (...) {
          failure_ = std::current_exception();
        }
      })) {}

void Watch::repeat(const std::stop_token& stop) {
  using Clock = std::chrono::steady_clock;
  Clock::time_point next = Clock::now();
  while (!stop.stop_requested()) {
    look_();
    next = std::max(next + period_, Clock::now());  // a late call delays the later ones
    std::unique_lock lock(mutex_);
    sleep_.wait_until(lock, stop, next, [] { return false; });
  }
}

void Watch::finish() {
  thread_.request_stop();
  thread_.join();
  if (failure_) std::rethrow_exception(failure_);
}

}  // namespace loadline
