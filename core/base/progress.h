// Progress of a long task and the request to cancel it; shared by the worker and any watcher.
#pragma once

#include <atomic>
#include <cstdint>
#include <stop_token>
#include <utility>

namespace loadline {

// The worker adds bytes and checks for cancellation; a watcher on another thread reads fraction(). Must
// outlive both. Not copyable. All members may be used from any thread.
class Progress {
 public:
  Progress() = default;
  explicit Progress(std::stop_token stop) : stop_(std::move(stop)) {}
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  // Announces work: a task in several parts adds each part's total before the part starts.
  void add_total(std::uint64_t total) { total_ += total; }
  void add(std::uint64_t amount) { done_ += amount; }

  std::uint64_t done() const { return done_; }
  std::uint64_t total() const { return total_; }
  // In [0, 1]; 0 while the total is unknown.
  double fraction() const;

  // For sub-tasks that count their own progress.
  const std::stop_token& stop_token() const { return stop_; }
  bool canceled() const { return stop_.stop_requested(); }
  // Throws Error{canceled} once a stop was requested.
  void check_canceled() const;

 private:
  std::atomic<std::uint64_t> done_ = 0;
  std::atomic<std::uint64_t> total_ = 0;
  std::stop_token stop_;
};

}  // namespace loadline
