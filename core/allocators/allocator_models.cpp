// The rows of the table; the policies of malloc and PyTorch; the replay of lifetimes.
#include "core/allocators/allocator_models.h"

#include "core/allocators/allocator_rules.h"
#include "core/allocators/free_ranges.h"
#include "core/base/checked_arithmetic.h"
#include "core/base/option.h"

#include <algorithm>
#include <array>
#include <cassert>
#include <functional>
#include <vector>

namespace loadline::allocators {

// --- The table of allocators.

namespace {

constexpr std::array<AllocatorRow, 7> kAllocators = {{
    {"exact", AllocatorModel::exact, "exactly the bytes requested", true, true},
    {"torch", AllocatorModel::torch,
     "device memory by PyTorch's caching allocator: multiples of 512 bytes from segments of 2 and 20 MiB",
     true, true},
    {"malloc", AllocatorModel::malloc, "host memory by glibc's malloc, which often keeps freed memory", true,
     false},
    {"vulkan", AllocatorModel::vulkan,
     "device and staging memory in blocks of up to 256 MiB, as `upload` allocates them", true, false},
    {"arena", AllocatorModel::arena, "each space as one range with offsets planned ahead", true, false},
    {"ggml", AllocatorModel::ggml, "one buffer by best fit, as ggml's graph allocator", false, true},
    {"onnxruntime", AllocatorModel::onnxruntime, "onnxruntime's memory pattern", false, true},
}};

}  // namespace

std::span<const AllocatorRow> allocators() { return kAllocators; }

AllocatorModel load_allocator(std::string_view id) {
  std::vector<AllocatorRow> rows;
  for (const AllocatorRow& row : kAllocators)
    if (row.of_loads) rows.push_back(row);
  return find_row(std::span<const AllocatorRow>(rows), id, "allocator").model;
}

std::string_view allocator_id(AllocatorModel model) {
  const auto row = std::ranges::find(kAllocators, model, &AllocatorRow::model);
  assert(row != kAllocators.end());
  return row->id;
}

// --- Chunks of the heap, its top, and mappings.

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

// Frees a range and merges it with free neighbors; returns the size of the merged range. A few small pieces
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

// --- Cuts blocks out of segments.

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

// --- Replays allocations and frees in order on simulated buffers.

namespace {

// Calls `allocate` and `release` with indices into `lives`, tick by tick.
void replay(std::span<const Allocation> lives, const std::function<void(std::size_t)>& allocate,
            const std::function<void(std::size_t)>& release) {
  std::uint32_t ticks = 0;
  for (const Allocation& life : lives) ticks = std::max(ticks, life.end);
  std::vector<std::vector<std::uint32_t>> begins(ticks + std::size_t{1}), ends(ticks + std::size_t{1});
  for (std::uint32_t i = 0; i < lives.size(); ++i) {
    if (lives[i].first >= lives[i].end || lives[i].bytes == 0) continue;
    begins[lives[i].first].push_back(i);
    ends[lives[i].end].push_back(i);
  }
  for (std::size_t tick = 0; tick < ticks; ++tick) {
    for (const std::uint32_t i : begins[tick]) allocate(i);
    for (const std::uint32_t i : ends[tick + 1]) release(i);
  }
}

std::uint64_t exact_bytes(std::span<const Allocation> lives) {
  std::uint64_t alive = 0, most = 0;
  replay(
      lives, [&](std::size_t i) { most = std::max(most, alive += lives[i].bytes); },
      [&](std::size_t i) { alive -= lives[i].bytes; });
  return most;
}

std::uint64_t best_fit_bytes(std::span<const Allocation> lives, std::uint64_t alignment, Holes::Of equals,
                             Tail tail) {
  BestFit buffer(0, equals, tail);
  std::uint64_t most = 0;
  std::vector<std::uint64_t> offsets(lives.size());
  const auto allocate = [&](std::size_t i) {
    offsets[i] = buffer.take(align_up(lives[i].bytes, alignment));
    most = std::max(most, buffer.end());
  };
  replay(lives, allocate,
         [&](std::size_t i) { buffer.give_back(offsets[i], align_up(lives[i].bytes, alignment)); });
  return most;
}

// In onnxruntime 1.32 what is free behind the last block is a gap like others, up to the most bytes so far: a
// value goes there where the gaps before it are larger.
std::uint64_t pattern_bytes(std::span<const Allocation> lives) {
  constexpr std::uint64_t kAlignment = 256;
  std::vector<Allocation> planned, beside;
  for (const Allocation& life : lives) (life.planned ? planned : beside).push_back(life);
  return exact_bytes(beside) + best_fit_bytes(planned, kAlignment, Holes::Of::first, Tail::hole);
}

std::uint64_t torch_bytes(std::span<const Allocation> lives) {
  TorchCache cache;
  std::vector<TorchCache::Block> blocks(lives.size());
  replay(
      lives, [&](std::size_t i) { blocks[i] = cache.allocate(lives[i].bytes); },
      [&](std::size_t i) { cache.release(blocks[i]); });
  return cache.reserved();
}

}  // namespace

std::uint64_t reserved_bytes(std::span<const Allocation> lives, AllocatorModel model) {
  constexpr std::uint64_t kGgmlAlignment = 32;
  switch (model) {
    case AllocatorModel::ggml:
      return best_fit_bytes(lives, kGgmlAlignment, Holes::Of::last, Tail::unused);
    case AllocatorModel::onnxruntime:
      return pattern_bytes(lives);
    case AllocatorModel::torch:
      return torch_bytes(lives);
    default:
      assert(model == AllocatorModel::exact && "not an allocator of forward passes");
      return exact_bytes(lives);
  }
}

}  // namespace loadline::allocators
