// Allocates offsets inside one range of bytes: best fit, with free neighbours merged.
#pragma once

#include "core/allocators/holes.h"

#include <cstdint>
#include <optional>
#include <unordered_map>

namespace loadline {

// Every offset and every reserved size is a multiple of the alignment. Each call takes O(log n).
class Suballocator {
 public:
  // `alignment` is a power of two that divides `capacity`.
  Suballocator(std::uint64_t capacity, std::uint64_t alignment);

  // The offset of `bytes` (> 0) in the smallest gap that is large enough; nothing if there is none.
  std::optional<std::uint64_t> allocate(std::uint64_t bytes);
  // `offset` must come from allocate() and not have been freed since.
  void free(std::uint64_t offset);

  std::uint64_t used() const { return used_; }  // rounding included
  bool empty() const { return used_ == 0; }
  std::uint64_t largest_gap() const { return gaps_.largest(); }

 private:
  std::uint64_t alignment_;
  std::uint64_t used_ = 0;
  std::unordered_map<std::uint64_t, std::uint64_t> taken_;  // offset -> bytes
  Holes gaps_;
};

}  // namespace loadline
