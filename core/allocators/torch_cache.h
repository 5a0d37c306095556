// The accounting of PyTorch's caching allocator on a device. Source: c10/cuda/CUDACachingAllocator.cpp
// (rounding, the 2 MiB and 20 MiB segments, when a remainder is split off).
#pragma once

#include "core/allocators/holes.h"

#include <cstdint>

namespace loadline {

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

}  // namespace loadline
