// Offsets inside one range of bytes: best fit with merging of free neighbours. No Vulkan in it.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <utility>

namespace loadline {

// Every offset and every reserved size is a multiple of the alignment. Each call takes O(log n).
class Suballocator {
 public:
  // `alignment` is a power of two that divides `capacity`.
  Suballocator(std::uint64_t capacity, std::uint64_t alignment);

  // The offset of `bytes` (> 0) in the smallest gap that holds them, or nothing.
  std::optional<std::uint64_t> allocate(std::uint64_t bytes);
  // `offset` is one that allocate() gave and that was not freed since.
  void free(std::uint64_t offset);

  std::uint64_t capacity() const { return capacity_; }
  std::uint64_t used() const { return used_; }  // rounding included
  bool empty() const { return used_ == 0; }
  std::uint64_t largest_gap() const { return gaps_by_size_.empty() ? 0 : gaps_by_size_.rbegin()->first; }

 private:
  void add_gap(std::uint64_t offset, std::uint64_t bytes);
  void remove_gap(std::uint64_t offset, std::uint64_t bytes);

  std::uint64_t capacity_;
  std::uint64_t alignment_;
  std::uint64_t used_ = 0;
  std::map<std::uint64_t, std::uint64_t> taken_;                    // offset -> bytes
  std::map<std::uint64_t, std::uint64_t> gaps_;                     // offset -> bytes; no two touch
  std::set<std::pair<std::uint64_t, std::uint64_t>> gaps_by_size_;  // bytes, offset
};

}  // namespace loadline
