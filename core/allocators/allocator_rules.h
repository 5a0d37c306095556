// How glibc's malloc and PyTorch's cache take memory, request by request.
#pragma once

#include "core/allocators/free_ranges.h"

#include <array>
#include <cstdint>
#include <deque>
#include <list>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

namespace loadline::allocators {

// --- glibc's malloc as the system sees it: the memory that it reserves, the pages of it that were touched,
// and when it returns them. Source: malloc/malloc.c and malloc/arena.c of glibc 2.36.

// An arena for the main thread and one for each other. Small requests are cut from heaps that grow and shrink
// only at their ends: one without a limit for the main thread, of 64 MiB for others. Large requests get
// mappings of their own, which are returned on free. Each freed mapping raises the size from which requests
// are mapped, up to 32 MiB: after a load frees a tensor of 20 MiB, the next one of that size comes from the
// heap.
class MallocHeap {
 public:
  static constexpr std::int32_t kMapped = -1;
  struct Rules {
    std::uint64_t threshold = 128 << 10;  // requests from this size on are mapped at first; trimming at twice
    // What an aligned request cuts off joins its free neighbors at once (glibc 2.39, bug 30723). Before,
    // small objects of the process take it, and what is freed later is no range that another such request
    // fits.
    bool remainders_join = false;
  };
  struct Chunk {
    std::uint64_t address = 0;  // in its arena
    std::uint64_t bytes = 0;
    std::int32_t arena = kMapped;
    std::uint32_t lead = 0;     // of a mapping: the offset that an alignment adds
    std::uint64_t touched = 0;  // of a mapping: bytes in whole pages

    bool mapped() const { return arena == kMapped; }
  };
  MallocHeap() = default;
  MallocHeap(const MallocHeap&) = delete;  // free chunks point into lists
  MallocHeap& operator=(const MallocHeap&) = delete;
  explicit MallocHeap(Rules rules)
      : threshold_(rules.threshold),
        trim_(rules.threshold > kLeastThreshold ? 2 * rules.threshold : kLeastThreshold),
        remainders_join_(rules.remainders_join) {}

  // An `alignment` over 16 is handled as in torch's requests: 64 bytes, through posix_memalign. `thread`: 0
  // is the main thread. A block that is not `touched` costs no pages.
  Chunk allocate(std::uint64_t bytes, std::uint64_t alignment = 16, std::uint32_t thread = 0,
                 bool touched = true);
  void release(const Chunk& chunk, std::uint32_t thread = 0);

  // Bytes that the system counts for heaps and mappings, touched or not.
  std::uint64_t reserved() const { return reserved_; }
  // The part of reserved() that is given out.
  std::uint64_t used() const { return used_; }
  // The pages of reserved() that were touched: what the process has resident.
  std::uint64_t resident() const { return resident_; }

 private:
  static constexpr std::uint64_t kLeastThreshold = 128 << 10;
  static constexpr std::size_t kCachedSizes = 66, kFastSizes = 9;  // in units of 16 bytes

  // A range of pages: that of the main arena, or one of up to 64 MiB.
  struct Heap {
    std::uint64_t base = 0, bytes = 0;
    std::uint64_t first = 0;                       // address of the first chunk
    std::uint64_t old_top = 0, old_top_bytes = 0;  // of the heap before, when this one was opened
    std::vector<std::uint64_t> touched = {};       // a bit a page
  };
  struct FreeChunk {
    std::uint64_t bytes = 0;
    std::optional<std::list<std::uint64_t>::iterator> unsorted = {};  // not yet in `by_size`
  };
  struct Arena {
    std::uint32_t number = 0;
    bool main = false;
    std::vector<Heap> heaps = {};
    std::uint64_t top = 0, top_bytes = 0;
    std::map<std::uint64_t, FreeChunk> free = {};  // by address; none touches the top
    std::set<std::pair<std::uint64_t, std::uint64_t>> by_size = {};
    std::list<std::uint64_t> unsorted = {};
    std::array<std::vector<std::uint64_t>, kFastSizes> fast = {};
    std::size_t fast_count = 0;
    std::uint64_t last_remainder = 0;
  };
  struct Cached {
    std::uint64_t address = 0;
    std::int32_t arena = 0;
  };
  using Cache = std::array<std::vector<Cached>, kCachedSizes>;

  std::uint32_t arena_of(std::uint32_t thread);
  std::optional<Chunk> cut(std::uint32_t arena, std::uint64_t bytes);
  std::optional<Chunk> cut_free(Arena& arena, std::uint32_t number, std::uint64_t bytes);
  Chunk split(Arena& arena, std::uint32_t number, std::uint64_t address, std::uint64_t bytes);
  Chunk map(std::uint64_t bytes);
  Chunk align(const Chunk& room, std::uint64_t bytes, std::uint64_t alignment, std::uint32_t thread);
  void give_remainder(const Chunk& rest, std::uint32_t thread);
  bool grow(Arena& arena, std::uint64_t bytes);
  bool open_heap(Arena& arena, std::uint64_t bytes);
  std::uint64_t merge(Arena& arena, std::uint64_t address, std::uint64_t bytes);
  void add_free(Arena& arena, std::uint64_t address, std::uint64_t bytes);
  std::uint64_t take_free(Arena& arena, std::map<std::uint64_t, FreeChunk>::iterator at);
  void consolidate(Arena& arena);
  void trim(Arena& arena);
  void trim_heaps(Arena& arena);
  void shrink(Arena& arena, std::uint64_t bytes);
  void touch(Chunk& chunk, std::uint64_t bytes);
  static Heap& heap_at(Arena& arena, std::uint64_t address);

  std::deque<Arena> arenas_;                         // which stay where they are
  std::map<std::uint32_t, std::uint32_t> arena_of_;  // by thread
  std::map<std::uint32_t, Cache> caches_;            // by thread
  std::uint64_t next_range_ = std::uint64_t{1} << 44;
  std::uint64_t mappings_ = 0;
  std::uint64_t reserved_ = 0, used_ = 0, resident_ = 0;
  std::uint64_t threshold_ = kLeastThreshold, trim_ = kLeastThreshold;
  bool remainders_join_ = false;
};

// --- The accounting of PyTorch's caching allocator on a device. Source: c10/cuda/CUDACachingAllocator.cpp
// (rounding, the 2 MiB and 20 MiB segments, when a remainder is split off).

// Blocks in multiples of 512 bytes, cut from the segments of two pools. Nothing is ever returned to the
// driver.
class TorchCache {
 public:
  struct Block {
    Hole room = {};
    bool small = false;
  };

  Block allocate(std::uint64_t bytes);
  void release(const Block& block);

  std::uint64_t reserved() const { return reserved_; }  // equals torch.cuda.memory_reserved()
  // Equals torch.cuda.memory_allocated(): a remainder too small to split off counts with its block.
  std::uint64_t allocated() const { return allocated_; }

 private:
  Holes small_, large_;
  std::uint64_t segments_ = 0;
  std::uint64_t reserved_ = 0;
  std::uint64_t allocated_ = 0;
};

}  // namespace loadline::allocators
