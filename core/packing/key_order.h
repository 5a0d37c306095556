// Sorts numbers by keys, as fast as the machine's vectors allow.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include <hwy/contrib/sort/vqsort.h>

namespace loadline {

// Keeps its memory from one call to the next.
class KeyOrder {
 public:
  // 0, 1, ... by keys[0], keys[1], ..., equal ones by number. Fewer than 2^32 keys. Valid until the next
  // call.
  std::span<const std::uint32_t> sort(std::span<const std::uint64_t> keys);

 private:
  hwy::Sorter sorter_;  // asks the system for random numbers when it is made
  std::vector<std::uint64_t> packed_;
  std::vector<std::uint32_t> order_;
};

}  // namespace loadline
