// Calls a function periodically on a thread of its own.
#pragma once

#include <chrono>
#include <condition_variable>
#include <exception>
#include <functional>
#include <mutex>
#include <stop_token>
#include <thread>

namespace loadline {

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
