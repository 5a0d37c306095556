// When a search must stop; random numbers that are the same on every machine.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <optional>
#include <stop_token>

namespace loadline::packing {

// --- When a search must end without an answer.

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

// --- A bijection of 64-bit numbers in which every bit of the result depends on every bit of the argument.

// The finaliser of splitmix64 (Steele, Lea, Flood 2014), with D. Stafford's constants.
constexpr std::uint64_t mixed(std::uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

// A sequence of numbers that is the same on every machine.
class MixedSequence {
 public:
  explicit MixedSequence(std::uint64_t seed) : state_(mixed(seed)) {}
  std::uint64_t next() { return mixed(state_ += 0x9e3779b97f4a7c15u); }
  // In [0, bound), bound > 0.
  std::uint64_t below(std::uint64_t bound) { return next() % bound; }
  // In [0, 1).
  double fraction() { return static_cast<double>(next() >> 11) * 0x1p-53; }

 private:
  std::uint64_t state_;
};

}  // namespace loadline::packing
