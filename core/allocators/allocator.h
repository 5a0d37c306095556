// The allocators that can be simulated, for loads and for forward passes.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace loadline {

enum class AllocatorModel : std::uint8_t {
  exact,        // reserves exactly what is requested and releases it at once
  torch,        // PyTorch's caching allocator (torch_cache.h); in a load, on the device
  malloc,       // glibc's malloc, which releases memory late (malloc_heap.h); in a load, on the host
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

}  // namespace loadline
