// The programs behind the rows of the table of methods, by where they come from; for methods.cpp only. Each
// follows its row in PyTorch's, ExecuTorch's or a loader's own events.
#pragma once

#include "core/load/methods.h"

namespace loadline {

// PyTorch recipes.
Plan load_to_device(const MetaGraph& graph, const StorageOrder& order, const LoadInputs& inputs);
Plan load_state_dict(const MetaGraph& graph, const StorageOrder& order, const LoadInputs& inputs);
Plan load_sequential(const MetaGraph& graph, const StorageOrder& order, const LoadInputs& inputs);
Plan load_meta_map_location(const MetaGraph& graph, const StorageOrder& order, const LoadInputs& inputs);
Plan load_mmap_assign(const MetaGraph& graph, const StorageOrder& order, const LoadInputs& inputs);
Plan load_mmap_copy(const MetaGraph& graph, const StorageOrder& order, const LoadInputs& inputs);
Plan load_mmap_state_dict(const MetaGraph& graph, const StorageOrder& order, const LoadInputs& inputs);
Plan load_per_tensor(const MetaGraph& graph, const StorageOrder& order, const LoadInputs& inputs);

// ExecuTorch's Vulkan delegate.
bool executorch_waits(const LoadRequest& request);
Plan load_executorch_before(const MetaGraph& graph, const StorageOrder& order, const LoadInputs& inputs);
Plan load_executorch_after(const MetaGraph& graph, const StorageOrder& order, const LoadInputs& inputs);

// Loads whose point is the cast.
Plan load_cast_on_host(const MetaGraph& graph, const StorageOrder& order, const LoadInputs& inputs);
Plan load_cast_on_device(const MetaGraph& graph, const StorageOrder& order, const LoadInputs& inputs);

// transformers and accelerate.
Plan load_from_pretrained(const MetaGraph& graph, const StorageOrder& order, const LoadInputs& inputs);
Plan load_transformers_v5(const MetaGraph& graph, const StorageOrder& order, const LoadInputs& inputs);
Plan load_fused_in_place(const MetaGraph& graph, const StorageOrder& order, const LoadInputs& inputs);
Plan load_accelerate(const MetaGraph& graph, const StorageOrder& order, const LoadInputs& inputs);

// Weights that come and go.
Plan load_layer_streaming(const MetaGraph& graph, const StorageOrder& order, const LoadInputs& inputs);
Plan load_layer_streaming_prefetch(const MetaGraph& graph, const StorageOrder& order,
                                   const LoadInputs& inputs);

// Without a copy on the host.
Plan load_direct(const MetaGraph& graph, const StorageOrder& order, const LoadInputs& inputs);
Plan load_host_import(const MetaGraph& graph, const StorageOrder& order, const LoadInputs& inputs);

// llama.cpp.
Plan load_llama_cpp_ring(const MetaGraph& graph, const StorageOrder& order, const LoadInputs& inputs);
Plan load_llama_cpp_mmap(const MetaGraph& graph, const StorageOrder& order, const LoadInputs& inputs);

// Loaders that stream.
Plan load_staged_ring(const MetaGraph& graph, const StorageOrder& order, const LoadInputs& inputs);
Plan load_fastsafetensors(const MetaGraph& graph, const StorageOrder& order, const LoadInputs& inputs);
Plan load_fastsafetensors_copy(const MetaGraph& graph, const StorageOrder& order, const LoadInputs& inputs);
Plan load_runai(const MetaGraph& graph, const StorageOrder& order, const LoadInputs& inputs);
Plan load_pinned_pool(const MetaGraph& graph, const StorageOrder& order, const LoadInputs& inputs);

}  // namespace loadline
