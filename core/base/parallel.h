// Runs the iterations of a loop on several threads.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>

namespace loadline {

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

}  // namespace loadline
