// Ends a test program that stands still, and tells what it did last.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <string>
#include <thread>
#include <utility>

namespace loadline::gui {

class Watchdog {
 public:
  explicit Watchdog(std::chrono::seconds patience) : patience_(patience), thread_([this] { watch(); }) {}
  Watchdog(const Watchdog&) = delete;
  Watchdog& operator=(const Watchdog&) = delete;
  ~Watchdog() {
    {
      const std::lock_guard lock(mutex_);
      done_ = true;
    }
    changed_.notify_all();
    thread_.join();
  }

  // It moves: this is done next. Aborts if nothing is said for longer than the patience.
  void say(std::string words) {
    const std::lock_guard lock(mutex_);
    words_ = std::move(words);
    last_ = std::chrono::steady_clock::now();
  }

 private:
  void watch() {
    std::unique_lock lock(mutex_);
    while (!changed_.wait_for(lock, std::chrono::seconds(1), [this] { return done_; })) {
      if (std::chrono::steady_clock::now() - last_ < patience_) continue;
      std::fprintf(stderr, "stands still since: %s\n", words_.c_str());
      std::abort();  // not exit(): a debugger or a core shows where
    }
  }

  const std::chrono::seconds patience_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::string words_ = "the start";
  std::chrono::steady_clock::time_point last_ = std::chrono::steady_clock::now();
  bool done_ = false;
  std::thread thread_;
};

}  // namespace loadline::gui
