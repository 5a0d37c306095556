// Sorts indices by keys with vector instructions.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include <hwy/contrib/sort/vqsort.h>

namespace loadline {

// Reuses its memory between calls.
class KeyOrder {
 public:
  // The indices 0, 1, ... sorted by keys[i]; equal keys by index. Fewer than 2^32 keys. The result is valid
  // until the next call.
  std::span<const std::uint32_t> sort(std::span<const std::uint64_t> keys);

 private:
  hwy::Sorter sorter_;  // its construction asks the system for random numbers
  std::vector<std::uint64_t> packed_;
  std::vector<std::uint32_t> order_;
};

}  // namespace loadline
