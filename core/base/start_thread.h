// Starts a thread, or says that the system gives none.
#pragma once

#include "core/base/error.h"

#include <string>
#include <system_error>
#include <thread>
#include <utility>

namespace loadline {

// Throws Error{limit} if the system refuses.
template <typename Function>
std::jthread start_thread(Function&& function) {
  try {
    return std::jthread(std::forward<Function>(function));
  } catch (const std::system_error& error) {
    throw Error(ErrorCode::limit,
                "cannot start a thread: {}; a limit of processes, threads or memory is reached",
                error.code().message());
  }
}

}  // namespace loadline
