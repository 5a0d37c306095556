// Cuts blocks out of segments.
#include "core/allocators/torch_cache.h"

#include "core/base/checked_arithmetic.h"

#include <algorithm>

namespace loadline {
namespace {

constexpr std::uint64_t kRound = 512;
constexpr std::uint64_t kSmall = 1 << 20;         // largest request that the small pool serves
constexpr std::uint64_t kSmallSegment = 2 << 20;  // segment size of the small pool
constexpr std::uint64_t kLarge = 10 << 20;        // smaller requests share segments of kLargeSegment
constexpr std::uint64_t kLargeSegment = 20 << 20;
constexpr std::uint64_t kStep = 2 << 20;  // larger requests get a segment of their own, a multiple of this

}  // namespace

TorchCache::Block TorchCache::allocate(std::uint64_t asked) {
  const std::uint64_t bytes = align_up(std::max<std::uint64_t>(asked, 1), kRound);
  const bool small = bytes <= kSmall;
  Holes& pool = small ? small_ : large_;
  Hole room = pool.take(bytes).value_or(Hole{});
  if (room.bytes == 0) {
    const std::uint64_t segment = small            ? kSmallSegment
                                  : bytes < kLarge ? kLargeSegment
                                                   : align_up(bytes, kStep);
    reserved_ += segment;
    room = {{segments_++, 0}, segment};
  }
  const std::uint64_t rest = room.bytes - bytes;
  if (small ? rest >= kRound : rest > kSmall) {
    room.bytes = bytes;
    pool.add({{room.place.segment, room.end()}, rest});
  }
  allocated_ += room.bytes;
  return {room, small};
}

void TorchCache::release(const Block& block) {
  allocated_ -= block.room.bytes;
  (block.small ? small_ : large_).add(block.room);
}

}  // namespace loadline
