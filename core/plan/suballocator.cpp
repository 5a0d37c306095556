// Gaps indexed by place, to merge, and by size, to choose.
#include "core/plan/suballocator.h"

#include "core/base/checked.h"

#include <cassert>
#include <iterator>

namespace loadline {

Suballocator::Suballocator(std::uint64_t capacity, std::uint64_t alignment)
    : capacity_(capacity), alignment_(alignment) {
  assert(alignment > 0 && capacity % alignment == 0);
  if (capacity > 0) add_gap(0, capacity);
}

void Suballocator::add_gap(std::uint64_t offset, std::uint64_t bytes) {
  gaps_.emplace(offset, bytes);
  gaps_by_size_.emplace(bytes, offset);
}

void Suballocator::remove_gap(std::uint64_t offset, std::uint64_t bytes) {
  gaps_.erase(offset);
  gaps_by_size_.erase({bytes, offset});
}

std::optional<std::uint64_t> Suballocator::allocate(std::uint64_t bytes) {
  assert(bytes > 0);
  const auto rounded = checked_align_up(bytes, alignment_);
  if (!rounded) return std::nullopt;
  const auto fit = gaps_by_size_.lower_bound({*rounded, 0});
  if (fit == gaps_by_size_.end()) return std::nullopt;
  const auto [gap_bytes, offset] = *fit;
  remove_gap(offset, gap_bytes);
  if (gap_bytes > *rounded) add_gap(offset + *rounded, gap_bytes - *rounded);
  taken_.emplace(offset, *rounded);
  used_ += *rounded;
  return offset;
}

void Suballocator::free(std::uint64_t offset) {
  const auto found = taken_.find(offset);
  assert(found != taken_.end() && "freed an offset that is not allocated");
  std::uint64_t begin = offset, end = offset + found->second;
  used_ -= found->second;
  taken_.erase(found);

  if (const auto after = gaps_.find(end); after != gaps_.end()) {
    end += after->second;
    remove_gap(after->first, after->second);
  }
  if (const auto later = gaps_.lower_bound(begin); later != gaps_.begin()) {
    const auto [before, bytes] = *std::prev(later);
    if (before + bytes == begin) {
      remove_gap(before, bytes);
      begin = before;
    }
  }
  add_gap(begin, end - begin);
}

}  // namespace loadline
