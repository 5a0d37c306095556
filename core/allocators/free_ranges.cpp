// The indices of free ranges; allocation and freeing inside one block.
#include "core/allocators/free_ranges.h"

#include "core/base/checked_arithmetic.h"

#include <cassert>
#include <iterator>

namespace loadline::allocators {

// --- Keeps the holes in two trees, by place and by size.

std::optional<Hole> Holes::take(std::uint64_t bytes, Of equals) {
  auto best = by_size_.lower_bound({bytes, Place{}});
  if (best == by_size_.end()) return std::nullopt;
  constexpr Place kLast = {UINT64_MAX, UINT64_MAX};
  if (equals == Of::last) best = std::prev(by_size_.upper_bound({best->first, kLast}));
  const Hole hole = {best->second, best->first};
  remove(hole.place);
  return hole;
}

Hole Holes::add(Hole hole) {
  const auto after = by_place_.find({hole.place.segment, hole.end()});
  if (after != by_place_.end()) {
    hole.bytes += after->second;
    remove(after->first);
  }
  const auto behind = by_place_.lower_bound(hole.place);
  if (behind != by_place_.begin()) {
    const Hole before = {std::prev(behind)->first, std::prev(behind)->second};
    if (before.place.segment == hole.place.segment && before.end() == hole.place.offset) {
      remove(before.place);
      hole = {before.place, before.bytes + hole.bytes};
    }
  }
  by_place_.emplace(hole.place, hole.bytes);
  by_size_.emplace(hole.bytes, hole.place);
  return hole;
}

std::optional<Hole> Holes::ending_at(std::uint64_t end) const {
  if (by_place_.empty()) return std::nullopt;
  const Hole last = {by_place_.rbegin()->first, by_place_.rbegin()->second};
  return last.end() == end ? std::optional(last) : std::nullopt;
}

void Holes::remove(const Place& place) {
  const auto hole = by_place_.find(place);
  by_size_.erase({hole->second, hole->first});
  by_place_.erase(hole);
}

// --- The allocated ranges, and the holes between them.

Suballocator::Suballocator(std::uint64_t capacity, std::uint64_t alignment) : alignment_(alignment) {
  assert(alignment > 0 && capacity % alignment == 0);
  if (capacity > 0) gaps_.add({{0, 0}, capacity});
}

std::optional<std::uint64_t> Suballocator::allocate(std::uint64_t bytes) {
  assert(bytes > 0);
  const auto rounded = checked_align_up(bytes, alignment_);
  if (!rounded) return std::nullopt;
  const auto gap = gaps_.take(*rounded);
  if (!gap) return std::nullopt;
  const std::uint64_t offset = gap->place.offset;
  if (gap->bytes > *rounded) gaps_.add({{0, offset + *rounded}, gap->bytes - *rounded});
  taken_.emplace(offset, *rounded);
  used_ += *rounded;
  return offset;
}

void Suballocator::free(std::uint64_t offset) {
  const auto found = taken_.find(offset);
  assert(found != taken_.end() && "freed an offset that is not allocated");
  used_ -= found->second;
  gaps_.add({{0, offset}, found->second});
  taken_.erase(found);
}

}  // namespace loadline::allocators
