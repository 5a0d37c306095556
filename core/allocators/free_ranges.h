// Free ranges by address and by size, best fit in a range without an end, best fit inside one block.
#pragma once

#include "core/base/checked_arithmetic.h"

#include <compare>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <unordered_map>
#include <utility>

namespace loadline::allocators {

// --- The free ranges (holes) of an allocator, indexed by address and by size, because a file may cause very
// many.

struct Place {
  std::uint64_t segment = 0;  // number of the range that the allocator got from the system
  std::uint64_t offset = 0;   // inside the segment
  auto operator<=>(const Place&) const = default;
};

struct Hole {
  Place place = {};
  std::uint64_t bytes = 0;
  std::uint64_t end() const { return place.offset + bytes; }
};

// No two holes touch. Each call takes logarithmic time.
class Holes {
 public:
  enum class Of : std::uint8_t { first, last };  // of equal holes, that with the lowest or the highest place
  // Removes and returns the smallest hole of at least `bytes` bytes.
  std::optional<Hole> take(std::uint64_t bytes, Of equals = Of::first);
  // Adds a free range and merges it with the holes that it touches. Returns the resulting hole.
  Hole add(Hole hole);
  // Removes the hole that begins at `place`.
  void remove(const Place& place);
  // The hole that ends at `end`, if one does: nothing may be free behind it.
  std::optional<Hole> ending_at(std::uint64_t end) const;
  // Size of the largest hole; 0 if there is none.
  std::uint64_t largest() const { return by_size_.empty() ? 0 : by_size_.rbegin()->first; }

 private:
  std::map<Place, std::uint64_t> by_place_;
  std::set<std::pair<std::uint64_t, Place>> by_size_;
};

// --- Best fit in a range of bytes without an upper end.

// What is free behind the last block: not yet used, or a hole up to the highest end so far, which is taken
// only if no smaller hole is large enough.
enum class Tail : std::uint8_t { unused, hole };

// The holes in the used part, and the end of that part.
class BestFit {
 public:
  // Everything from `base` on is unused.
  explicit BestFit(std::uint64_t base = 0, Holes::Of equals = Holes::Of::first, Tail tail = Tail::unused)
      : end_(base), equals_(equals), tail_(tail) {}

  // The offset of `bytes` in the smallest hole that is large enough, else behind the last block.
  std::uint64_t take(std::uint64_t bytes, std::uint64_t alignment = 1) {
    // a hole of this size contains an aligned start at any offset
    const auto hole = holes_.take(bytes + (alignment - 1), equals_);
    if (!hole) {
      if (const auto tail = holes_.ending_at(end_)) {
        holes_.remove(tail->place);
        end_ = tail->place.offset;
      }
    }
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
    if (tail_ == Tail::hole || hole.end() != end_) return;
    holes_.remove(hole.place);  // memory from the end on is unused
    end_ = hole.place.offset;
  }

  std::uint64_t end() const { return end_; }  // of the used part

 private:
  Holes holes_;
  std::uint64_t end_;
  Holes::Of equals_;
  Tail tail_;
};

// --- Allocates offsets inside one range of bytes: best fit, with free neighbors merged.

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

}  // namespace loadline::allocators
