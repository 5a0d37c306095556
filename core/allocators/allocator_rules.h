// How glibc's malloc and PyTorch's cache take memory, request by request.
#pragma once

#include "core/allocators/free_ranges.h"

#include <array>
#include <cstdint>

namespace loadline::allocators {

// --- glibc's malloc as the system sees it: the memory that it reserves and when it returns it. Source:
// malloc/malloc.c of glibc 2.36 (sysmalloc, systrim, munmap_chunk, the moving mmap threshold).

// One arena and one thread, as in a loader's main loop. Small requests are cut from a heap that grows and
// shrinks only at its top. Large requests get mappings of their own, which are returned on free. Each freed
// mapping raises the size from which requests are mapped, up to 32 MiB: after a load frees a tensor of 20
// MiB, the next one of that size comes from the heap.
class MallocHeap {
 public:
  struct Chunk {
    std::uint64_t offset = 0;  // in the heap, or in its mapping
    std::uint64_t bytes = 0;
    bool mapped = false;
  };

  // An `alignment` over 16 is handled as in torch's requests: 64 bytes, through posix_memalign.
  Chunk allocate(std::uint64_t bytes, std::uint64_t alignment = 16);
  void release(const Chunk& chunk);

  // Bytes that the system counts for the heap and the mappings, touched or not.
  std::uint64_t reserved() const { return heap_ + mapped_; }
  // The part of reserved() that is given out.
  std::uint64_t used() const { return used_; }

 private:
  Chunk cut(std::uint64_t offset, std::uint64_t room, std::uint64_t bytes, std::uint64_t alignment);
  std::uint64_t give(std::uint64_t offset, std::uint64_t bytes);
  void grow(std::uint64_t bytes);
  void trim();

  // Number of pieces in the thread's cache, by size in units. They are never reused here: they are at most 1
  // KiB and seven of each size, and a load's requests are larger or few. The heap is overestimated by at most
  // 240 kB.
  std::array<int, 66> cached_ = {};
  Holes holes_;             // below the top; none touches the top
  std::uint64_t top_ = 0;   // start of the free range at the end of the heap
  std::uint64_t heap_ = 0;  // bytes of the heap
  std::uint64_t mapped_ = 0;
  std::uint64_t used_ = 0;
  std::uint64_t mmap_threshold_ = 128 << 10;
  std::uint64_t trim_threshold_ = 128 << 10;
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
