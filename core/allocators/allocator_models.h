// The table of allocators that can be simulated, and the bytes that each holds for values with lifetimes.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace loadline::allocators {

// --- The allocators that can be simulated, for loads and for forward passes.

enum class AllocatorModel : std::uint8_t {
  exact,        // reserves exactly what is requested and releases it at once
  heap,         // as exact, with a range of what a default process keeps on the host (plan::HeapForecast)
  torch,        // PyTorch's caching allocator (allocator_rules.h); in a load, on the device
  malloc,       // glibc's malloc, which releases memory late (allocator_rules.h); in a load, on the host
  vulkan,       // blocks of up to 256 MiB, divided at multiples of 256 bytes, as the uploader allocates
  arena,        // one range per space with offsets planned ahead
  ggml,         // ggml's graph allocator: one buffer, best fit
  onnxruntime,  // onnxruntime's memory pattern: one buffer for planned values, the rest beside it
};

struct AllocatorRow {
  std::string_view id;
  AllocatorModel model = AllocatorModel::exact;
  std::string_view summary;
  bool of_loads = false;   // can be simulated for a load
  bool of_passes = false;  // can be named by the profile of a forward pass
};
std::span<const AllocatorRow> allocators();
// The allocator of loads with this id. Throws Error{usage} that lists the ids.
AllocatorModel load_allocator(std::string_view id);
std::string_view allocator_id(AllocatorModel model);
// Whether the allocator takes other bytes from the system than those requested.
constexpr bool reserves(AllocatorModel model) {
  return model != AllocatorModel::exact && model != AllocatorModel::heap;
}

// --- The peak memory that an allocator holds for values with known sizes and lifetimes.

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
// the buffer is held throughout, from the second run on); for torch see allocator_rules.h.
std::uint64_t reserved_bytes(std::span<const Allocation> lives, AllocatorModel model);

}  // namespace loadline::allocators
