// The allocated ranges, and the holes between them.
#include "core/allocators/suballocator.h"

#include "core/base/checked_arithmetic.h"

#include <cassert>

namespace loadline {

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

}  // namespace loadline
