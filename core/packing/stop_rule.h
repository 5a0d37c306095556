// When a search has to end without an answer.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <optional>
#include <stop_token>

namespace loadline {

// Asked now and then while a search runs; any number of threads may ask.
struct StopRule {
  std::optional<std::chrono::steady_clock::time_point> deadline = {};
  std::stop_token stop = {};
  // Of attempts that run beside each other the first that ends counts: those after it need not go on.
  const std::atomic<std::uint64_t>* first_ended = nullptr;
  std::uint64_t attempt = 0;

  bool out_of_time() const {
    return stop.stop_requested() || (deadline && std::chrono::steady_clock::now() >= *deadline);
  }
  bool due() const {
    return (first_ended != nullptr && first_ended->load(std::memory_order_relaxed) < attempt) ||
           out_of_time();
  }
};

}  // namespace loadline
