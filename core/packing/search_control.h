// When a search must end without an answer.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <optional>
#include <stop_token>

namespace loadline {

// Polled by a running search; any number of threads may do so.
struct StopRule {
  std::optional<std::chrono::steady_clock::time_point> deadline = {};
  std::stop_token stop = {};
  // Among parallel attempts the one with the lowest number that finishes counts: later ones may stop.
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
