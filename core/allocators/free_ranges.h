// Best fit in a range of bytes without an upper end.
#pragma once

#include "core/allocators/holes.h"
#include "core/base/checked_arithmetic.h"

#include <cstdint>

namespace loadline {

// The holes in the used part, and the end of that part; no hole touches the end.
class BestFit {
 public:
  // Everything from `base` on is unused.
  explicit BestFit(std::uint64_t base = 0, Holes::Of equals = Holes::Of::first)
      : end_(base), equals_(equals) {}

  // The offset of `bytes` in the smallest hole that is large enough, else at the end of the used part.
  std::uint64_t take(std::uint64_t bytes, std::uint64_t alignment = 1) {
    // a hole of this size contains an aligned start at any offset
    const auto hole = holes_.take(bytes + (alignment - 1), equals_);
    const std::uint64_t from = hole ? hole->place.offset : end_;
    const std::uint64_t start = align_up(from, alignment);
    if (start > from) holes_.add({{0, from}, start - from});
    if (!hole) {
      end_ = start + bytes;
    } else if (hole->end() > start + bytes) {
      holes_.add({{0, start + bytes}, hole->end() - (start + bytes)});
    }
    return start;
  }

  void give_back(std::uint64_t offset, std::uint64_t bytes) {
    const Hole hole = holes_.add({{0, offset}, bytes});
    if (hole.end() != end_) return;
    holes_.remove(hole.place);  // memory from the end on is unused
    end_ = hole.place.offset;
  }

  std::uint64_t end() const { return end_; }  // of the used part

 private:
  Holes holes_;
  std::uint64_t end_;
  Holes::Of equals_;
};

}  // namespace loadline
