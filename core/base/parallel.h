// A loop whose turns run on several threads at once.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>

namespace loadline {

// Runs turn(0) ... turn(count - 1), each once, in no order, on `threads` threads: all but one start at once,
// the last is the caller's in finish(). Where the system gives no more threads, fewer do the work.
class ParallelLoop {
 public:
  ParallelLoop(std::size_t count, std::size_t threads, std::function<void(std::size_t)> turn);
  // Leaves turns that have not begun.
  ~ParallelLoop();
  ParallelLoop(const ParallelLoop&) = delete;
  ParallelLoop& operator=(const ParallelLoop&) = delete;

  // Takes part in the loop and returns when every turn has run. What a turn threw is thrown here (one of
  // them, if several did), and turns that had not begun are left.
  void finish();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace loadline
