// PyTorch's caching allocator on a device, as far as its books go. Source: c10/cuda/CUDACachingAllocator.cpp
// (rounding, the 2 MiB and 20 MiB segments, when a rest is split off).
#pragma once

#include "core/allocators/holes.h"

#include <cstdint>

namespace loadline {

// Blocks of 512 bytes cut out of the segments of two pools; nothing is ever given back to the driver.
class TorchCache {
 public:
  struct Block {
    Hole room = {};
    bool small = false;
  };

  Block allocate(std::uint64_t bytes);
  void release(const Block& block);

  std::uint64_t reserved() const { return reserved_; }  // what torch.cuda.memory_reserved() says
  // What torch.cuda.memory_allocated() says: rests that are too small to be split off count with their block.
  std::uint64_t allocated() const { return allocated_; }

 private:
  Holes small_, large_;
  std::uint64_t segments_ = 0;
  std::uint64_t reserved_ = 0;
  std::uint64_t allocated_ = 0;
};

}  // namespace loadline
