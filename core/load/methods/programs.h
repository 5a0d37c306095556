// The functions that make the plans for the table of methods, grouped by origin; for methods.cpp only. Each
// follows the allocations and copies of its framework or loader step by step.
#pragma once

#include "core/load/methods/builder.h"

namespace loadline {

// PyTorch recipes.
Plan load_to_device(MethodBuilder& b);
Plan load_shard_by_shard(MethodBuilder& b);
Plan load_meta_assign(MethodBuilder& b);
Plan load_safetensors_bytes(MethodBuilder& b);
Plan load_state_dict(MethodBuilder& b);
Plan load_sequential(MethodBuilder& b);
Plan load_meta_map_location(MethodBuilder& b);
Plan load_mmap_assign(MethodBuilder& b);
Plan load_mmap_copy(MethodBuilder& b);
Plan load_mmap_state_dict(MethodBuilder& b);
Plan load_per_tensor(MethodBuilder& b);

// ExecuTorch's Vulkan delegate.
bool executorch_waits(const LoadRequest& request);
Plan load_executorch_before(MethodBuilder& b);
Plan load_executorch_after(MethodBuilder& b);

// Loads that differ in where weights are cast.
Plan load_cast_on_host(MethodBuilder& b);
Plan load_cast_on_device(MethodBuilder& b);

// transformers and accelerate.
Plan load_transformers_v4(MethodBuilder& b);
Plan load_transformers_v4_early(MethodBuilder& b);
Plan load_transformers_v5(MethodBuilder& b);
Plan load_transformers_v5_to(MethodBuilder& b);
Plan load_fused_in_place(MethodBuilder& b);
Plan load_accelerate(MethodBuilder& b);

// Serving engines.
Plan load_engine_repack(MethodBuilder& b);
Plan load_engine_repack_all(MethodBuilder& b);

// Weights that are on the device only while in use.
Plan load_layer_streaming(MethodBuilder& b);
Plan load_layer_streaming_prefetch(MethodBuilder& b);

// No copy of the weights on the host.
Plan load_direct(MethodBuilder& b);
Plan load_host_import(MethodBuilder& b);

// llama.cpp.
Plan load_llama_cpp_ring(MethodBuilder& b);
Plan load_llama_cpp_direct(MethodBuilder& b);
Plan load_llama_cpp_mmap(MethodBuilder& b);

// Loaders that stream.
Plan load_staged_ring(MethodBuilder& b);
Plan load_fastsafetensors(MethodBuilder& b);
Plan load_fastsafetensors_copy(MethodBuilder& b);
Plan load_fastsafetensors_all(MethodBuilder& b);
Plan load_runai(MethodBuilder& b);
Plan load_pinned_pool(MethodBuilder& b);

}  // namespace loadline
