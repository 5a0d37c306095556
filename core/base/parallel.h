// A loop whose turns run on several threads at once.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>

namespace loadline {

// Runs turn(0) ... turn(count - 1), each once, in no order. `threads` threads of its own start at once;
// with 0 or 1 nothing runs before finish(). `turn` must not throw.
class ParallelLoop {
 public:
  ParallelLoop(std::size_t count, std::size_t threads, std::function<void(std::size_t)> turn);
  // Leaves turns that have not begun.
  ~ParallelLoop();
  ParallelLoop(const ParallelLoop&) = delete;
  ParallelLoop& operator=(const ParallelLoop&) = delete;

  // Takes part in the loop and returns when every turn has run.
  void finish();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace loadline
