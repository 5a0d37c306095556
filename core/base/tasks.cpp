// Threads that each take the next index until none is left.
#include "core/base/parallel.h"

#include <atomic>
#include <exception>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

namespace loadline {

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
  } catch (const std::system_error&) {
    // no more threads to be had: the started ones and the caller do the work
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

}  // namespace loadline
