// System calls that signals interrupt.
#pragma once

#include <cerrno>

namespace loadline::io {

// Makes a call again while a signal interrupts it, but not for ever. Returns its last result.
template <typename Call>
auto uninterrupted(Call call) {
  constexpr int kMostTries = 1000;
  auto result = call();
  for (int tries = 1; result < 0 && errno == EINTR && tries < kMostTries; ++tries) result = call();
  return result;
}

}  // namespace loadline::io
