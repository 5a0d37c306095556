// The table of methods, and the check that one supports a request.

#include "core/base/error.h"
#include "core/base/option.h"
#include "core/load/methods/builder.h"
#include "core/load/request/method.h"

#include <array>
#include <utility>

namespace loadline::load {

// --- The table of load methods. The manual's page `methods` explains each of them.

namespace {

constexpr std::array<Method, 36> kMethods = {{
    {"to_device",
     "model built on the host, state dict copied into it, .to(device)",
     "device V + Q, host V + H + max(W, h)",
     load_to_device,
     {.casts = true, .offloads = true, .order_free = true},
     true},
    {"shard_by_shard",
     "the same, with the state dict of one file at a time",
     "device V + Q, host V + H + max(S*, h)",
     load_shard_by_shard,
     {.casts = true, .offloads = true, .shards = true, .order_free = true}},
    {"meta_assign",
     "empty model, state dict assigned on the host, .to(device)",
     "device V + Q, host W",
     load_meta_assign,
     {.offloads = true, .order_free = true}},
    {"state_dict", "model on the device, then load_state_dict of a second copy there",
     "device max(2W, W + Q), host W + h", load_state_dict},
    {"sequential",
     "model on the device, state dict on the host, copied tensor by tensor",
     "device W + max(w*, Q), host W + h",
     load_sequential,
     {.order_free = true},
     true},
    {"meta_map_location", "empty model on the device, state dict beside it",
     "device h + max(2W, W + Q), host w*", load_meta_map_location},
    {"mmap_assign",
     "empty model, mapped file, tensors assigned, .to(device)",
     "device V + Q, page cache M + S* (used: M + max(S*, H))",
     load_mmap_assign,
     {.offloads = true, .shards = true, .views = true},
     true},
    {"mmap_copy",
     "mapped file copied into a model on the host, then .to(device)",
     "device V + Q, host V + H + h, page cache S*",
     load_mmap_copy,
     {.casts = true, .offloads = true, .shards = true, .order_free = true}},
    {"mmap_state_dict",
     "mapped file brought to the device beside the model",
     "device max(2W, W + Q), host W + h, page cache S*",
     load_mmap_state_dict,
     {.shards = true}},
    {"safetensors_bytes",
     "file read as bytes, parsed into tensors, assigned, .to(device)",
     "device V + Q, host W + S*",
     load_safetensors_bytes,
     {.offloads = true, .shards = true}},
    {"per_tensor",
     "empty model on the device, one tensor read at a time",
     "device V + Q, host w* (cast: c*)",
     load_per_tensor,
     {.casts = true, .order_free = true}},
    {"staged_ring",
     "empty model on the device, fed through a ring of pinned slots",
     "device V + Q, staging B",
     load_staged_ring,
     {.casts = true, .ring = true, .order_free = true},
     true},
    {"executorch_before",
     "device tensors and activations first, then prepack from host copies",
     "unified 2W + Q + w* + T",
     load_executorch_before,
     {.activations_first = true, .flushes = true},
     false,
     executorch_waits},
    {"executorch_after",
     "each device tensor allocated just before its prepack",
     "unified max(W + 2w* + F, W + Q) + T",
     load_executorch_after,
     {.flushes = true},
     true,
     executorch_waits},
    {"accelerate",
     "file by file: mapped, copied tensor by tensor, unmapped",
     "device V + Q (cast: V + max(S*, Q); pickled: V + Q; brought: + o*), "
     "host 0 (kept: H; disk: H; pickled: H + S* + w*; cast: + v*; disk: + v*), "
     "page cache S* (used: max(S*, H); pickled: 0; disk: + w*)",
     load_accelerate,
     {.casts = true, .offloads = true, .disk = true, .maps = true, .shards = true, .views = true},
     true},
    {"fastsafetensors",
     "files read whole to the device, tensors as views into them",
     "device W + Q, staging B",
     load_fastsafetensors,
     {.ring = true, .shards = true, .order_free = true}},
    {"fastsafetensors_copy",
     "file by file, read whole beside a model and copied into it",
     "device max(W + S*, W + Q), staging B",
     load_fastsafetensors_copy,
     {.ring = true, .shards = true, .order_free = true}},
    {"fastsafetensors_all",
     "all files read whole beside a model that they are copied into",
     "device max(2W, W + Q), staging B",
     load_fastsafetensors_all,
     {.ring = true, .order_free = true}},
    {"runai",
     "requests into host buffers that the loader empties",
     "device W + Q, host R",
     load_runai,
     {.limit = true},
     false,
     [](const LoadRequest&) { return true; }},
    {"llama_cpp_ring",
     "read; four pinned buffers of 1 MiB for the device",
     "device V + Q, host N + H + D (repack: + e + w*), staging 4 MiB",
     load_llama_cpp_ring,
     {.offloads = true, .disk = true, .layers = true, .repacks = true, .order_free = true}},
    {"llama_cpp_direct",
     "read past the page cache; four pinned buffers of 64 MiB",
     "device V + Q, host N + H + D + min(o*, 64 MiB) (repack: + e + w*), staging 256 MiB",
     load_llama_cpp_direct,
     {.offloads = true, .disk = true, .layers = true, .repacks = true}},
    {"llama_cpp_mmap",
     "files mapped whole, tensors to the device, unmapped at the end",
     "device V + Q, host N (repack: + P), page cache W",
     load_llama_cpp_mmap,
     {.offloads = true, .disk = true, .layers = true, .repacks = true, .order_free = true},
     true},
    {"pinned_pool",
     "the whole checkpoint in pinned chunks, then to the device",
     "device W + Q, staging slots(W)",
     load_pinned_pool,
     {.ring = true, .order_free = true}},
    {"transformers_v4_early",
     "model built on the host, mapped files copied into it, .to(device)",
     "device V + Q, host V + H, page cache S*",
     load_transformers_v4_early,
     {.casts = true, .offloads = true, .shards = true}},
    {"transformers_v4",
     "empty model, mapped tensors its parameters, .to(device)",
     "device V + Q, host 0 (cast: V + H), page cache M + S* (used: M + max(S*, H); partly: W)",
     load_transformers_v4,
     {.casts = true, .offloads = true, .shards = true, .views = true}},
    {"transformers_v5",
     "straight to the device (device_map), experts fused there",
     "device V + max(g*, Q) (brought: + o*), host 0 (kept: H + g*; disk: + g*; cast: + u*), page cache W",
     load_transformers_v5,
     {.casts = true,
      .offloads = true,
      .disk = true,
      .maps = true,
      .views = true,
      .workers = true,
      .order_free = true},
     true},
    {"transformers_v5_to",
     "loaded on the host, experts fused there, then .to(device)",
     "device V + Q, host 0 (fused: G + g*; cast: V + H + g*), "
     "page cache M + S* (used: M + max(S*, H); cast: W; fused: W)",
     load_transformers_v5_to,
     {.casts = true, .offloads = true, .shards = true, .views = true}},
    {"fused_in_place",
     "fused tensors allocated first, each expert copied to its place in them",
     "device V + Q, host v*",
     load_fused_in_place,
     {.casts = true}},
    {"engine_repack",
     "engine's parameters filled from mapped files, fused groups repacked",
     "device W + max(g*, Q), page cache S*",
     load_engine_repack,
     {.shards = true, .order_free = true}},
    {"engine_repack_all",
     "the same, the old groups freed after the last",
     "device W + max(G, Q), page cache S*",
     load_engine_repack_all,
     {.shards = true, .order_free = true}},
    {"cast_on_host",
     "checkpoint on the host, each tensor cast to the device and freed",
     "device V + Q, host W",
     load_cast_on_host,
     {.casts = true}},
    {"cast_on_device",
     "each tensor brought over as stored and cast into memory of its own",
     "device V + max(w*, Q), host w*",
     load_cast_on_device,
     {.casts = true}},
    {"layer_streaming",
     "one layer on the device at a time",
     "device x* + Q, host x*",
     load_layer_streaming,
     {.streams = true, .activations_first = true, .order_free = true}},
    {"layer_streaming_prefetch",
     "the same, with the next layer read ahead",
     "device x* + Q, host y*",
     load_layer_streaming_prefetch,
     {.streams = true, .activations_first = true, .order_free = true}},
    {"direct",
     "files read straight into mapped device memory",
     "device W + Q",
     load_direct,
     {.order_free = true}},
    {"host_import",
     "file pages imported by the device and copied from",
     "device W + Q, staging w*",
     load_host_import,
     {.order_free = true, .imports = true}},
}};

}  // namespace

bool supports_placement(const Method& method, const LoadRequest& request) {
  const MethodTraits& traits = method.traits;
  return (!request.gpu_layers || traits.layers) && (!request.auto_map || traits.maps) &&
         (request.place.empty() || traits.offloads);
}

std::span<const Method> methods() { return kMethods; }

const Method& find_method(std::string_view id) { return find_row(methods(), id, "method"); }

// --- Checks that a method supports the request, then makes its plan.

std::uint32_t loading_threads(const LoadInputs& inputs) {
  return inputs.placement.leaves_on_disk() ? 1 : inputs.request.workers;
}

plan::Plan make_plan(const graph::MetaGraph& graph, const Method& method, const StorageOrder& order,
                     const LoadInputs& inputs, plan::Plan used) {
  check_request(inputs.request);
  if (inputs.request.cast && !method.traits.casts)
    throw Error(ErrorCode::unsupported, "the method does not cast weights");
  if (!inputs.placement.all_on_device() && !method.traits.offloads)
    throw Error(ErrorCode::unsupported, "the method places all weights on the device");
  if (!supports_placement(method, inputs.request))
    throw Error(ErrorCode::unsupported, inputs.request.gpu_layers
                                            ? "only llama.cpp counts layers on the device"
                                            : "the method has no automatic device map");
  if (!method.traits.disk && inputs.placement.leaves_on_disk())
    throw Error(ErrorCode::unsupported, "the method leaves no weights on disk");
  MethodBuilder builder(graph, order, inputs, std::move(used));
  plan::Plan plan = method.make(builder);
  return inputs.request.prepack ? with_prepacks(std::move(plan), graph, *inputs.request.prepack) : plan;
}

}  // namespace loadline::load
