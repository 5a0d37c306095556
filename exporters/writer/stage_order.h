// Tells ThreadSanitizer what a thread library orders: the library itself is not built with it.
#pragma once

#include <utility>
#include <vector>

#if defined(__SANITIZE_THREAD__)
#define LOADLINE_THREAD_SANITIZER 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define LOADLINE_THREAD_SANITIZER 1
#endif
#endif

#ifdef LOADLINE_THREAD_SANITIZER
#include <sanitizer/tsan_interface.h>
#endif

namespace loadline {

// Everything done by this thread until now happens before take_over() of the same address by any thread.
inline void hand_over([[maybe_unused]] const void* what) {
#ifdef LOADLINE_THREAD_SANITIZER
  __tsan_release(const_cast<void*>(what));
#endif
}

inline void take_over([[maybe_unused]] const void* what) {
#ifdef LOADLINE_THREAD_SANITIZER
  __tsan_acquire(const_cast<void*>(what));
#endif
}

// A stage's turn: what is handed over is taken over first. In other builds it does nothing.
class Turn {
 public:
  explicit Turn(const void* what) : what_(what) { take_over(what_); }
  ~Turn() { hand_over(what_); }
  Turn(const Turn&) = delete;
  Turn& operator=(const Turn&) = delete;

 private:
  const void* what_;
};

// All turns of a run: the thread that starts it hands over what it did, and takes over what they did.
class Turns {
 public:
  explicit Turns(std::vector<const void*> what) : what_(std::move(what)) {
    for (const void* each : what_) hand_over(each);
  }
  ~Turns() {
    for (const void* each : what_) take_over(each);
  }
  Turns(const Turns&) = delete;
  Turns& operator=(const Turns&) = delete;

 private:
  std::vector<const void*> what_;
};

}  // namespace loadline
