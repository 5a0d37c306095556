// The allocators whose behaviour can be simulated, for loads and for forward passes alike.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace loadline {

enum class AllocatorModel : std::uint8_t {
  exact,        // takes what is requested and returns it at once
  torch,        // PyTorch's caching allocator (torch_cache.h); of a load, on the device
  malloc,       // glibc's malloc, which returns late (malloc_heap.h); of a load, on the host
  vulkan,       // blocks of up to 256 MiB cut at multiples of 256 bytes, as the uploader takes them
  arena,        // one range per space, with offsets planned ahead
  ggml,         // ggml's graph allocator: one buffer, best fit
  onnxruntime,  // onnxruntime's memory pattern: one buffer for what is planned, the rest beside it
};

struct AllocatorRow {
  std::string_view id;
  AllocatorModel model = AllocatorModel::exact;
  std::string_view summary;
  bool of_loads = false;   // can be simulated for a load
  bool of_passes = false;  // can be named by a profile of forward passes
};
std::span<const AllocatorRow> allocators();
// Those of loads. Throws Error{usage} that lists their ids.
AllocatorModel load_allocator(std::string_view id);
std::string_view allocator_id(AllocatorModel model);

}  // namespace loadline
