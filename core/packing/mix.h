// A bijection of 64-bit numbers in which every bit of the result depends on every bit of the argument.
#pragma once

#include <cstdint>

namespace loadline {

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

}  // namespace loadline
