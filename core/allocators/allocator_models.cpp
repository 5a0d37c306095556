// Chunks of the heap, its top, and mappings.
#include "core/allocators/allocator_models.h"

#include "core/base/checked_arithmetic.h"

#include <algorithm>

namespace loadline {
namespace {

constexpr std::uint64_t kPage = 4096;
constexpr std::uint64_t kMostCached = 1040;  // largest chunk that the thread's cache holds
constexpr int kCachedOfASize = 7;
constexpr std::uint64_t kHeader = 8;  // at the start of each chunk, before the user's bytes
constexpr std::uint64_t kUnit = 16;   // offset of the user's bytes in a chunk, and their alignment
constexpr std::uint64_t kLeastChunk = 32;
constexpr std::uint64_t kTopPad = 128 << 10;
constexpr std::uint64_t kMostThreshold = 32 << 20;
constexpr std::uint64_t kConsolidation = 64 << 10;  // trim runs only after a freed chunk of this size

std::uint64_t chunk_bytes(std::uint64_t bytes) {
  return std::max(align_up(bytes + kHeader, kUnit), kLeastChunk);
}

}  // namespace

MallocHeap::Chunk MallocHeap::allocate(std::uint64_t bytes, std::uint64_t alignment) {
  // posix_memalign requests extra room to align the chunk
  const bool moves = alignment > kUnit;
  const std::uint64_t room =
      chunk_bytes(moves ? chunk_bytes(bytes) + alignment + kLeastChunk - kHeader : bytes);
  if (const auto hole = holes_.take(room)) {
    const std::uint64_t rest = hole->bytes - room;
    if (rest < kLeastChunk) return cut(hole->place.offset, hole->bytes, bytes, alignment);
    holes_.add({{0, hole->place.offset + room}, rest});
    return cut(hole->place.offset, room, bytes, alignment);
  }
  if (heap_ - top_ < room + kLeastChunk) {
    if (room >= mmap_threshold_) {
      const std::uint64_t mapped = align_up(room + kHeader, kPage);
      mapped_ += mapped;
      used_ += mapped;
      return {moves ? alignment - kUnit : 0, mapped, true};
    }
    grow(room);
  }
  const std::uint64_t offset = top_;
  top_ += room;
  return cut(offset, room, bytes, alignment);
}

// Cuts the chunk out of a piece of the heap; the parts before and after it become free again.
MallocHeap::Chunk MallocHeap::cut(std::uint64_t offset, std::uint64_t room, std::uint64_t bytes,
                                  std::uint64_t alignment) {
  Chunk chunk{offset, room, false};
  if (alignment > kUnit) {
    std::uint64_t lead = (2 * alignment - kUnit - offset % alignment) % alignment;
    if (lead > 0 && lead < kLeastChunk) lead += alignment;
    if (lead > 0) give(offset, lead);
    chunk = {offset + lead, room - lead, false};
    if (const std::uint64_t exact = chunk_bytes(bytes); chunk.bytes > exact + kLeastChunk) {
      give(chunk.offset + exact, chunk.bytes - exact);
      chunk.bytes = exact;
    }
  }
  used_ += chunk.bytes;
  return chunk;
}

void MallocHeap::grow(std::uint64_t bytes) {
  heap_ += align_up(bytes + kTopPad + kLeastChunk - (heap_ - top_), kPage);
}

void MallocHeap::release(const Chunk& chunk) {
  used_ -= chunk.bytes;
  if (!chunk.mapped) {
    if (give(chunk.offset, chunk.bytes) >= kConsolidation) trim();
    return;
  }
  mapped_ -= chunk.bytes;
  const std::uint64_t bytes = chunk.bytes - chunk.offset;  // without the offset that alignment added
  if (bytes <= mmap_threshold_ || bytes > kMostThreshold) return;
  mmap_threshold_ = bytes;
  trim_threshold_ = 2 * bytes;
}

// Frees a range and merges it with free neighbours; returns the size of the merged range. A few small pieces
// of each size stay in the thread's cache unmerged: one such piece keeps all memory below it from joining the
// top.
std::uint64_t MallocHeap::give(std::uint64_t offset, std::uint64_t bytes) {
  if (bytes <= kMostCached && cached_[bytes / kUnit] < kCachedOfASize) {
    ++cached_[bytes / kUnit];
    return 0;
  }
  const Hole hole = holes_.add({{0, offset}, bytes});
  if (hole.end() != top_) return hole.bytes;
  holes_.remove(hole.place);
  top_ = hole.place.offset;
  return heap_ - top_;
}

// Returns pages at the top to the system, except the padding.
void MallocHeap::trim() {
  const std::uint64_t room = heap_ - top_;
  if (room < trim_threshold_ || room <= kLeastChunk + kTopPad) return;
  heap_ -= (room - kLeastChunk - kTopPad) / kPage * kPage;
}

}  // namespace loadline
