// Progress arithmetic, the parallel loop, the watch's thread.
#include "core/base/tasks.h"

#include "core/base/error.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <filesystem>
#include <mutex>
#include <new>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#ifdef __linux__
#include <sys/resource.h>
#include <unistd.h>
#endif

namespace loadline {

// --- Progress arithmetic and the cancellation error.

double Progress::fraction() const {
  const std::uint64_t total = total_;
  return total == 0 ? 0.0 : std::min(1.0, static_cast<double>(done_) / static_cast<double>(total));
}

void Progress::check_canceled() const {
  if (canceled()) throw Error(ErrorCode::canceled, "canceled");
}

// --- Exceptions of the standard library, and of others.

Error current_error() {
  try {
    throw;
  } catch (const Error& error) {
    return error;
  } catch (const std::filesystem::filesystem_error& error) {
    return system_error(error.path1().string(), "use", error.code().value());
  } catch (const std::system_error& error) {  // of a library's threads
    return Error(ErrorCode::limit, "the system refuses: {}", error.code().message());
  } catch (const std::bad_alloc&) {
    return Error(ErrorCode::limit, "out of memory");
  } catch (...) {
    return Error(ErrorCode::io, "unexpected failure: a fault of this program");
  }
}

std::size_t cores() {
  static const std::size_t count = std::max(std::thread::hardware_concurrency(), 1u);
  return count;
}

// --- On Linux each thread has a nice value of its own.

void yield_to_others() {
#ifdef __linux__
  constexpr int kNice = 5;
  (void)setpriority(PRIO_PROCESS, static_cast<id_t>(gettid()), kNice);
#endif
}

// --- Threads that each take the next index until none is left.

struct ParallelLoop::State {
  std::size_t count = 0;
  std::function<void(std::size_t)> turn;
  std::atomic<std::size_t> next = 0;
  std::mutex mutex = {};
  std::exception_ptr failure = {};
  std::vector<std::jthread> threads = {};

  void work() {
    try {
      for (std::size_t i = next++; i < count; i = next++) turn(i);
    } catch (...) {
      next = count;
      const std::lock_guard lock(mutex);
      if (!failure) failure = std::current_exception();
    }
  }
};

ParallelLoop::ParallelLoop(std::size_t count, std::size_t threads, std::function<void(std::size_t)> turn)
    : state_(std::make_unique<State>()) {
  state_->count = count;
  state_->turn = std::move(turn);
  try {
    for (std::size_t i = 1; i < threads; ++i)
      state_->threads.emplace_back([state = state_.get()] { state->work(); });
  } catch (const std::exception&) {
    // no more threads or memory for them to be had: the started ones and the caller do the work
  }
}

ParallelLoop::~ParallelLoop() {
  state_->next = state_->count;
  state_->threads.clear();
}

void ParallelLoop::finish() {
  state_->work();
  state_->threads.clear();
  if (state_->failure) std::rethrow_exception(state_->failure);
}

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
