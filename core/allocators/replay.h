// The peak memory that an allocator holds for values with known sizes and lifetimes.
#pragma once

#include "core/allocators/allocator.h"

#include <cstdint>
#include <span>

namespace loadline {

// One value, alive in the ticks [first, end). Nothing is allocated if that range is empty or `bytes` is 0.
struct Allocation {
  std::uint32_t first = 0;
  std::uint32_t end = 0;
  std::uint64_t bytes = 0;
  // Belongs to the buffer that onnxruntime plans ahead; false for inputs, outputs and temporaries.
  bool planned = true;
};

// The most bytes held at any time. Each tick in turn allocates the values that begin with it, in the order of
// `lives`, then frees those that end with it. `model` must be one for forward passes. The sum of all sizes
// must be below 2^62. Sources: ggml/src/ggml-alloc.c (blocks of 32 bytes, the last of equal holes, the hole
// at the end only if no other fits); onnxruntime/core/framework/mem_pattern_planner.h (blocks of 256 bytes;
// the buffer is held throughout, from the second run on); for torch see torch_cache.h.
std::uint64_t reserved_bytes(std::span<const Allocation> lives, AllocatorModel model);

}  // namespace loadline
