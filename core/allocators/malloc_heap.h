// glibc's malloc, as far as its books with the system go: what it has taken, and when it gives back. Source:
// malloc/malloc.c of glibc 2.36 (sysmalloc, systrim, munmap_chunk, the moving mmap threshold).
#pragma once

#include "core/allocators/holes.h"

#include <array>
#include <cstdint>

namespace loadline {

// One arena and one thread, as a loader's main loop has. Small requests are cut from a heap that grows at its
// top and shrinks only there; large ones are mappings of their own, which go back at once, but each mapping
// that is freed raises the size from which on there are mappings, up to 32 MiB: a load that frees a tensor of
// 20 MiB keeps the next of that size in its heap.
class MallocHeap {
 public:
  struct Chunk {
    std::uint64_t offset = 0;  // in the heap, or in its mapping
    std::uint64_t bytes = 0;
    bool mapped = false;
  };

  // Aligned as torch asks for it when `alignment` is more than 16: 64 bytes.
  Chunk allocate(std::uint64_t bytes, std::uint64_t alignment = 16);
  void release(const Chunk& chunk);

  // What the system counts as this process's because of the heap, touched or not.
  std::uint64_t reserved() const { return heap_ + mapped_; }
  // Of that, what is given out.
  std::uint64_t used() const { return used_; }

 private:
  Chunk cut(std::uint64_t offset, std::uint64_t room, std::uint64_t bytes, std::uint64_t alignment);
  std::uint64_t give(std::uint64_t offset, std::uint64_t bytes);
  void grow(std::uint64_t bytes);
  void trim();

  // Pieces that the thread's cache holds, by size in units. None is taken out again: they are of at most 1
  // KiB, seven of a size, and requests of a load are larger or few; the heap counts at most 240 kB too much
  // for it.
  std::array<int, 66> cached_ = {};
  Holes holes_;             // below the top; none touches it
  std::uint64_t top_ = 0;   // where what is free to the end begins
  std::uint64_t heap_ = 0;  // bytes of the heap
  std::uint64_t mapped_ = 0;
  std::uint64_t used_ = 0;
  std::uint64_t mmap_threshold_ = 128 << 10;
  std::uint64_t trim_threshold_ = 128 << 10;
};

}  // namespace loadline
