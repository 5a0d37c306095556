// Long tasks: their rate, what runs once, threads and their priority, a loop on several threads, a periodic
// call beside them.
#pragma once

#include "core/base/error.h"
#include "core/base/progress.h"

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <stop_token>
#include <string>
#include <system_error>
#include <thread>
#include <utility>

namespace loadline {

// --- How fast a task has been lately.

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

// --- Does something once, whichever thread comes first.

// Not by the standard library: an exception on its way through pthread_once() ends the process where
// no memory is left. If the function throws, another call runs it again.
class Once {
 public:
  template <typename Function>
  void run(Function&& function) {
    if (done_.load(std::memory_order_acquire)) return;
    const std::scoped_lock lock(mutex_);
    if (done_.load(std::memory_order_relaxed)) return;
    std::forward<Function>(function)();
    done_.store(true, std::memory_order_release);
  }

 private:
  std::mutex mutex_;
  std::atomic<bool> done_ = false;
};

// --- How many threads are worth it, and starting one.

// The cores that this process may run on, at least 1. Asked once: the answer takes the system as long as
// opening a file.
std::size_t cores();

// Throws Error{limit} if the system gives no thread.
template <typename Function>
std::jthread start_thread(Function&& function) {
  try {
    return std::jthread(std::forward<Function>(function));
  } catch (const std::system_error& error) {
    throw Error(ErrorCode::limit,
                "cannot start a thread: {}; a limit on processes, threads or memory was reached",
                error.code().message());
  }
}

// --- Why a task ended.

// The exception that is being handled, as an Error for a person. Of other classes than Error it says the
// kind: a library's own text is for programmers.
Error current_error();

// --- Which threads the system prefers where there are more of them than cores.

// Lets other threads, such as the one that draws, run before this one. A hint: some systems cannot.
void yield_to_others();

// --- Runs the iterations of a loop on several threads.

// Runs turn(0) ... turn(count - 1), each once and in no fixed order, on `threads` threads. The constructor
// starts all but one; the caller of finish() is the last. If the system refuses a thread, those already
// started do the work.
class ParallelLoop {
 public:
  ParallelLoop(std::size_t count, std::size_t threads, std::function<void(std::size_t)> turn);
  // Skips the turns that have not begun and waits for those that have.
  ~ParallelLoop();
  ParallelLoop(const ParallelLoop&) = delete;
  ParallelLoop& operator=(const ParallelLoop&) = delete;

  // Takes part in the loop and returns when every turn has run. If turns threw, rethrows one of the
  // exceptions; turns that had not begun by then are skipped.
  void finish();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// --- Calls a function periodically on a thread of its own.

// From construction until finish() or destruction. An exception ends the calls.
class Watch {
 public:
  // Throws Error{limit} if the system gives no thread.
  Watch(std::chrono::microseconds period, std::function<void()> look);
  Watch(const Watch&) = delete;
  Watch& operator=(const Watch&) = delete;

  // Stops the calls. Rethrows the exception that ended them, if any.
  void finish();

 private:
  void repeat(const std::stop_token& stop);

  std::chrono::microseconds period_;
  std::function<void()> look_;
  std::mutex mutex_;
  std::condition_variable_any sleep_;
  std::exception_ptr failure_;  // read only after the thread is joined
  std::jthread thread_;
};

}  // namespace loadline
