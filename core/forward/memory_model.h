// What an allocator makes of values that come and go: the memory it holds at its worst.
#pragma once

#include "core/forward/lifetimes.h"

#include <cstdint>
#include <span>
#include <string_view>

namespace loadline {

enum class MemoryModel : std::uint8_t {
  sum,       // exactly what is alive
  best_fit,  // one buffer, each value at the smallest hole that takes it (ggml's graph allocator)
  pattern,   // one buffer by best fit for all but inputs, outputs and temporaries (onnxruntime's memory
             // pattern)
  torch,     // blocks of 512 bytes cut out of segments that are kept (PyTorch's caching allocator)
};

// "sum", "best_fit", "pattern", "torch"; nothing for another name.
std::optional<MemoryModel> memory_model(std::string_view name);

// The most that the allocator holds while the operators run in order, each allocating its outputs and
// temporaries and then giving back what ends with it. Values of unknown size are left out. Sources:
// ggml/src/ggml-alloc.c (blocks of 32 bytes, the last hole only if no other fits);
// onnxruntime/core/framework/ mem_pattern_planner.h (blocks of 256 bytes; the buffer is there throughout,
// from the second run on); torch/csrc c10/cuda/CUDACachingAllocator (rounding, the 2 MiB and 20 MiB segments,
// when a rest is split off).
std::uint64_t reserved_bytes(const ForwardGraph& graph, std::span<const OpRange> lives,
                             std::span<const std::optional<std::uint64_t>> sizes, MemoryModel model);

}  // namespace loadline
