// The rows of the table; the policies of malloc and PyTorch; the replay of lifetimes.
#include "core/allocators/allocator_models.h"

#include "core/allocators/allocator_rules.h"
#include "core/allocators/free_ranges.h"
#include "core/base/checked_arithmetic.h"
#include "core/base/option.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cassert>
#include <functional>
#include <iterator>
#include <optional>
#include <set>
#include <utility>
#include <vector>

namespace loadline::allocators {

// --- The table of allocators.

namespace {

constexpr std::array<AllocatorRow, 9> kAllocators = {{
    {"heap", AllocatorModel::heap,
     "the bytes requested, with what glibc's heap keeps in a process that is started without settings", true,
     false},
    {"exact", AllocatorModel::exact, "exactly the bytes requested", true, true},
    {"fixed", AllocatorModel::exact, "as exact: what a process takes with MALLOC_MMAP_THRESHOLD_=131072",
     true, false},
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

// --- Chunks of heaps, their tops, and mappings.

namespace {

constexpr std::uint64_t kPage = 4096;
constexpr std::uint64_t kMostCached = 1040;  // largest chunk that a thread's cache holds
constexpr std::size_t kCachedOfASize = 7;
constexpr std::uint64_t kMostFast = 128;  // largest chunk that is not merged when it is freed
constexpr std::uint64_t kLeastLarge = 1024;
constexpr std::uint64_t kHeader = 8;  // at the start of each chunk, before the user's bytes
constexpr std::uint64_t kUnit = 16;   // offset of the user's bytes in a chunk, and their alignment
constexpr std::uint64_t kLeastChunk = 32;
constexpr std::uint64_t kTopPad = 128 << 10;
constexpr std::uint64_t kMostThreshold = 32 << 20;
constexpr std::uint64_t kConsolidation = 64 << 10;  // trim runs only after a freed chunk of this size
constexpr std::uint64_t kMostMappings = 65536;
constexpr std::uint64_t kHeapBytes = 64 << 20;               // of a thread's arena
constexpr std::uint64_t kHeapHead = 48;                      // before the chunks of such a heap
constexpr std::uint64_t kArenaHead = 0x8f0;                  // in the first heap of an arena
constexpr std::uint64_t kMainBase = std::uint64_t{1} << 40;  // any address without a neighbor

std::uint64_t chunk_bytes(std::uint64_t bytes) {
  return std::max(align_up(bytes + kHeader, kUnit), kLeastChunk);
}

}  // namespace

MallocHeap::Chunk MallocHeap::allocate(std::uint64_t bytes, std::uint64_t alignment, std::uint32_t thread,
                                       bool touched) {
  const bool moves = alignment > kUnit;
  const std::uint64_t exact = chunk_bytes(bytes);
  if (!moves && exact <= kMostCached)
    if (std::vector<Cached>& cached = caches_[thread][exact / kUnit]; !cached.empty()) {
      const Cached chunk = cached.back();
      cached.pop_back();
      used_ += exact;
      return {chunk.address, exact, chunk.arena};
    }
  // posix_memalign requests extra room to align the chunk
  const std::uint64_t room = moves ? chunk_bytes(exact + alignment + kLeastChunk) : exact;
  const std::optional<Chunk> found = cut(arena_of(thread), room);
  Chunk chunk = found ? *found : map(room);
  if (moves && found) chunk = align(chunk, exact, alignment, thread);
  if (moves && !found) chunk.lead = static_cast<std::uint32_t>(alignment - kUnit);
  used_ += chunk.bytes;
  if (touched) touch(chunk, bytes);
  return chunk;
}

std::uint32_t MallocHeap::arena_of(std::uint32_t thread) {
  const auto [known, is_new] = arena_of_.try_emplace(thread, static_cast<std::uint32_t>(arenas_.size()));
  if (!is_new) return known->second;
  Arena& arena = arenas_.emplace_back();
  arena.number = known->second;
  arena.main = thread == 0;
  if (!arena.main) return known->second;
  arena.heaps.push_back({.base = kMainBase, .first = kMainBase});
  arena.top = kMainBase;
  return known->second;
}

// A chunk of at least that size. Nothing: a mapping is wanted.
std::optional<MallocHeap::Chunk> MallocHeap::cut(std::uint32_t number, std::uint64_t bytes) {
  Arena& arena = arenas_[number];
  if (bytes <= kMostFast)
    if (std::vector<std::uint64_t>& fast = arena.fast[bytes / kUnit]; !fast.empty()) {
      const std::uint64_t address = fast.back();
      fast.pop_back();
      --arena.fast_count;
      return Chunk{address, bytes, static_cast<std::int32_t>(number)};
    }
  if (bytes >= kLeastLarge && arena.fast_count > 0) consolidate(arena);
  while (true) {
    if (auto chunk = cut_free(arena, number, bytes)) return chunk;
    if (arena.top_bytes >= bytes + kLeastChunk) break;
    if (arena.fast_count > 0)
      consolidate(arena);
    else if (grow(arena, bytes))
      break;
    else
      return std::nullopt;
  }
  const Chunk chunk{arena.top, bytes, static_cast<std::int32_t>(number)};
  arena.top += bytes;
  arena.top_bytes -= bytes;
  return chunk;
}

// From the free chunks. Those freed last are looked at in their order: one of just that size is taken, the
// others are sorted by size.
std::optional<MallocHeap::Chunk> MallocHeap::cut_free(Arena& arena, std::uint32_t number,
                                                      std::uint64_t bytes) {
  const bool small = bytes < kLeastLarge;
  const auto fitting = arena.by_size.lower_bound({bytes, 0});
  if (small && fitting != arena.by_size.end() && fitting->first == bytes)
    return split(arena, number, fitting->second, bytes);
  while (!arena.unsorted.empty()) {
    const std::uint64_t address = arena.unsorted.front();
    FreeChunk& chunk = arena.free.at(address);
    const bool is_remainder = small && arena.unsorted.size() == 1 && address == arena.last_remainder;
    if (chunk.bytes == bytes || (is_remainder && chunk.bytes > bytes + kLeastChunk))
      return split(arena, number, address, bytes);
    arena.unsorted.pop_front();
    chunk.unsorted.reset();
    arena.by_size.emplace(chunk.bytes, address);
  }
  const auto best = arena.by_size.lower_bound({bytes, 0});
  if (best == arena.by_size.end()) return std::nullopt;
  return split(arena, number, best->second, bytes);
}

// Takes a free chunk; what is left of it stays free.
MallocHeap::Chunk MallocHeap::split(Arena& arena, std::uint32_t number, std::uint64_t address,
                                    std::uint64_t bytes) {
  const std::uint64_t whole = take_free(arena, arena.free.find(address));
  if (whole - bytes < kLeastChunk) return {address, whole, static_cast<std::int32_t>(number)};
  add_free(arena, address + bytes, whole - bytes);
  if (bytes < kLeastLarge) arena.last_remainder = address + bytes;
  return {address, bytes, static_cast<std::int32_t>(number)};
}

MallocHeap::Chunk MallocHeap::map(std::uint64_t bytes) {
  const std::uint64_t mapped = align_up(bytes + kHeader, kPage);
  reserved_ += mapped;
  ++mappings_;
  return {0, mapped};
}

// Cuts an aligned chunk out of a larger one. The parts before and after it are freed.
MallocHeap::Chunk MallocHeap::align(const Chunk& room, std::uint64_t bytes, std::uint64_t alignment,
                                    std::uint32_t thread) {
  std::uint64_t lead = (2 * alignment - kUnit - room.address % alignment) % alignment;
  if (lead > 0 && lead < kLeastChunk) lead += alignment;
  Chunk chunk{room.address + lead, room.bytes - lead, room.arena};
  if (lead > 0) give_remainder({room.address, lead, room.arena}, thread);
  if (chunk.bytes > bytes + kLeastChunk) {
    give_remainder({chunk.address + bytes, chunk.bytes - bytes, room.arena}, thread);
    chunk.bytes = bytes;
  }
  return chunk;
}

void MallocHeap::give_remainder(const Chunk& rest, std::uint32_t thread) {
  if (remainders_join_) {
    merge(arenas_[static_cast<std::size_t>(rest.arena)], rest.address, rest.bytes);
    return;
  }
  used_ += rest.bytes;
  release(rest, thread);
}

bool MallocHeap::grow(Arena& arena, std::uint64_t bytes) {
  if (bytes >= threshold_ && mappings_ < kMostMappings) return false;
  if (!arena.main &&
      (arena.heaps.empty() ||
       arena.heaps.back().bytes + align_up(bytes + kLeastChunk - arena.top_bytes, kPage) > kHeapBytes))
    return open_heap(arena, bytes);
  const std::uint64_t wanted = bytes + kLeastChunk + (arena.main ? kTopPad : 0);
  const std::uint64_t more = align_up(wanted - std::min(wanted, arena.top_bytes), kPage);
  arena.heaps.back().bytes += more;
  arena.top_bytes += more;
  reserved_ += more;
  return true;
}

// Opens another heap of a thread's arena. What the last one has left becomes a free chunk, but for its end.
bool MallocHeap::open_heap(Arena& arena, std::uint64_t bytes) {
  const std::uint64_t wanted = bytes + kLeastChunk + kHeapHead;
  if (wanted > kHeapBytes) return false;
  const std::uint64_t base = next_range_;
  next_range_ += kHeapBytes;
  Heap& heap = arena.heaps.emplace_back();
  heap.base = base;
  heap.bytes = wanted + kTopPad <= kHeapBytes ? align_up(wanted + kTopPad, kPage) : kHeapBytes;
  heap.first = base + (arena.heaps.size() > 1 ? kHeapHead : kArenaHead);
  heap.old_top = arena.top;
  heap.old_top_bytes = arena.top_bytes;
  reserved_ += heap.bytes;
  arena.top = heap.first;
  arena.top_bytes = heap.bytes - (heap.first - base);
  Chunk head{heap.first, kUnit, static_cast<std::int32_t>(arena.number)};
  touch(head, 0);
  const Heap& opened = arena.heaps.back();
  if (arena.heaps.size() == 1 || opened.old_top_bytes < 2 * kLeastChunk) return true;
  std::uint64_t address = opened.old_top, left = (opened.old_top_bytes - kLeastChunk) / kUnit * kUnit;
  if (const auto next = arena.free.lower_bound(address); next != arena.free.begin()) {
    const auto before = std::prev(next);
    if (before->first + before->second.bytes == address) {
      address = before->first;
      left += take_free(arena, before);
    }
  }
  add_free(arena, address, left);
  return true;
}

void MallocHeap::release(const Chunk& chunk, std::uint32_t thread) {
  used_ -= chunk.bytes;
  if (chunk.arena == kMapped) {
    reserved_ -= chunk.bytes;
    resident_ -= chunk.touched;
    --mappings_;
    const std::uint64_t bytes = chunk.bytes - chunk.lead;
    if (bytes <= threshold_ || bytes > kMostThreshold) return;
    threshold_ = bytes;
    trim_ = 2 * bytes;
    return;
  }
  const std::size_t units = chunk.bytes / kUnit;
  if (chunk.bytes <= kMostCached)
    if (std::vector<Cached>& cached = caches_[thread][units]; cached.size() < kCachedOfASize)
      return cached.push_back({chunk.address, chunk.arena});
  Arena& arena = arenas_[static_cast<std::size_t>(chunk.arena)];
  if (chunk.bytes <= kMostFast) {
    ++arena.fast_count;
    return arena.fast[units].push_back(chunk.address);
  }
  if (merge(arena, chunk.address, chunk.bytes) < kConsolidation) return;
  if (arena.fast_count > 0) consolidate(arena);
  trim(arena);
}

// Frees a range and merges it with free neighbors and the top; returns the size of the merged range.
std::uint64_t MallocHeap::merge(Arena& arena, std::uint64_t address, std::uint64_t bytes) {
  auto next = arena.free.lower_bound(address);
  if (next != arena.free.begin()) {
    const auto before = std::prev(next);
    if (before->first + before->second.bytes == address) {
      address = before->first;
      bytes += take_free(arena, before);
    }
  }
  if (address + bytes == arena.top) {
    arena.top = address;
    return arena.top_bytes += bytes;
  }
  next = arena.free.lower_bound(address);
  if (next != arena.free.end() && next->first == address + bytes) bytes += take_free(arena, next);
  add_free(arena, address, bytes);
  return bytes;
}

void MallocHeap::add_free(Arena& arena, std::uint64_t address, std::uint64_t bytes) {
  arena.free[address] = {bytes, arena.unsorted.insert(arena.unsorted.end(), address)};
}

// Removes a free chunk from all lists; returns its size.
std::uint64_t MallocHeap::take_free(Arena& arena, std::map<std::uint64_t, FreeChunk>::iterator at) {
  const auto [address, chunk] = *at;
  if (chunk.unsorted)
    arena.unsorted.erase(*chunk.unsorted);
  else
    arena.by_size.erase({chunk.bytes, address});
  if (arena.last_remainder == address) arena.last_remainder = 0;
  arena.free.erase(at);
  return chunk.bytes;
}

void MallocHeap::consolidate(Arena& arena) {
  arena.fast_count = 0;
  for (std::size_t units = 0; units < arena.fast.size(); ++units)
    for (const std::uint64_t address : std::exchange(arena.fast[units], {}))
      merge(arena, address, units * kUnit);
}

// Returns pages at the top to the system, except the padding.
void MallocHeap::trim(Arena& arena) {
  if (!arena.main) trim_heaps(arena);
  if (arena.top_bytes < trim_ || arena.top_bytes <= kLeastChunk + 1 + kTopPad) return;
  shrink(arena, (arena.top_bytes - kLeastChunk - 1 - kTopPad) / kPage * kPage);
}

// Returns the last heaps of a thread's arena while they are empty and the one before has little left.
void MallocHeap::trim_heaps(Arena& arena) {
  while (arena.heaps.size() > 1 && arena.top == arena.heaps.back().first) {
    const Heap& last = arena.heaps.back();
    const Heap& before = arena.heaps[arena.heaps.size() - 2];
    const bool has_rest = last.old_top_bytes >= 2 * kLeastChunk;
    const std::uint64_t posts =
        last.old_top + (has_rest ? (last.old_top_bytes - kLeastChunk) / kUnit * kUnit : 0);
    const std::uint64_t end = before.base + before.bytes;
    auto rest = arena.free.lower_bound(posts);
    rest = rest == arena.free.begin() ? arena.free.end() : std::prev(rest);
    if (rest != arena.free.end() && rest->first + rest->second.bytes != posts) rest = arena.free.end();
    const std::uint64_t left = end - posts + (rest != arena.free.end() ? rest->second.bytes : 0);
    if (left + kHeapBytes - before.bytes < kTopPad + kLeastChunk + kPage) return;
    shrink(arena, last.bytes);
    arena.heaps.pop_back();
    arena.top = rest != arena.free.end() ? rest->first : posts;
    if (rest != arena.free.end()) take_free(arena, rest);
    arena.top_bytes = end - arena.top;
  }
}

// Gives `bytes` bytes at the end of the last heap back.
void MallocHeap::shrink(Arena& arena, std::uint64_t bytes) {
  Heap& heap = arena.heaps.back();
  heap.bytes -= bytes;
  arena.top_bytes -= std::min(arena.top_bytes, bytes);
  reserved_ -= bytes;
  const std::uint64_t page = align_up(heap.bytes, kPage) / kPage;
  for (std::uint64_t word = page / 64; word < heap.touched.size(); ++word) {
    const std::uint64_t gone =
        word == page / 64 ? heap.touched[word] & (~std::uint64_t{0} << page % 64) : heap.touched[word];
    resident_ -= kPage * static_cast<std::uint64_t>(std::popcount(gone));
    heap.touched[word] &= ~gone;
  }
  heap.touched.resize(std::min<std::size_t>(heap.touched.size(), page / 64 + 1));
}

// Counts the pages of a chunk with that many bytes of the user's.
void MallocHeap::touch(Chunk& chunk, std::uint64_t bytes) {
  if (chunk.arena == kMapped) {
    chunk.touched = align_up(bytes, kPage);
    resident_ += chunk.touched;
    return;
  }
  Heap& heap = heap_at(arenas_[static_cast<std::size_t>(chunk.arena)], chunk.address);
  const std::uint64_t from = (chunk.address - heap.base) / kPage,
                      to = (chunk.address - heap.base + bytes + kUnit - 1) / kPage + 1;
  if (heap.touched.size() < to / 64 + 1) heap.touched.resize(to / 64 + 1);
  for (std::uint64_t word = from / 64; word * 64 < to; ++word) {
    std::uint64_t mask = ~std::uint64_t{0};
    if (word == from / 64) mask &= ~std::uint64_t{0} << from % 64;
    if ((word + 1) * 64 > to) mask &= ~std::uint64_t{0} >> (64 - to % 64);
    resident_ += kPage * static_cast<std::uint64_t>(std::popcount(mask & ~heap.touched[word]));
    heap.touched[word] |= mask;
  }
}

MallocHeap::Heap& MallocHeap::heap_at(Arena& arena, std::uint64_t address) {
  const auto behind = std::ranges::upper_bound(arena.heaps, address, {}, &Heap::base);
  return *std::prev(behind);
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
