// The memory that an allocator holds at its worst for values with known sizes and lifetimes.
#pragma once

#include "core/allocators/allocator.h"

#include <cstdint>
#include <span>

namespace loadline {

// One value. Alive during the ticks [first, end); nothing is allocated where that is empty or bytes is 0.
struct Allocation {
  std::uint32_t first = 0;
  std::uint32_t end = 0;
  std::uint64_t bytes = 0;
  // Part of the buffer that onnxruntime plans ahead; inputs, outputs and temporaries are not.
  bool planned = true;
};

// The most bytes held while the ticks pass in order: each tick allocates what begins with it, in the order of
// `lives`, and then frees what ends with it. `model` is one of those for forward passes. The sizes have a sum
// below 2^62. Sources: ggml/src/ggml-alloc.c (blocks of 32 bytes, the last hole only if no other fits);
// onnxruntime/core/framework/mem_pattern_planner.h (blocks of 256 bytes; the buffer is held throughout, from
// the second run on); for torch see torch_cache.h.
std::uint64_t reserved_bytes(std::span<const Allocation> lives, AllocatorModel model);

}  // namespace loadline
