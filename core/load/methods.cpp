// The table of load methods; methods.h says what the symbols of their laws are.
#include "core/load/methods.h"

#include "core/base/lookup.h"
#include "core/load/methods/programs.h"

#include <array>

namespace loadline {
namespace {

constexpr std::array<Method, 27> kMethods = {{
    {"to_device",
     "model loaded on the host, then .to(device)",
     "device V + Q, host V (cast: V + w*)",
     "The checkpoint is loaded into a model in host memory (torch.load to the CPU), which then moves to the "
     "device parameter by parameter, each host copy going as its turn is over. The device never holds more "
     "than the model; the host holds all of it once.",
     load_to_device,
     {.casts = true},
     true},
    {"state_dict", "model on the device, then load_state_dict of a second copy there",
     "device max(2W, W + Q), host W",
     "The model is built in host memory and moved to the device; the checkpoint is then loaded to the same "
     "device (torch.load with map_location) and copied over the weights. Until the state dict is dropped the "
     "device holds everything twice.",
     load_state_dict},
    {"sequential",
     "model on the device, state dict on the host, copied tensor by tensor",
     "device W + max(w*, Q), host W",
     "The model is built and moved to the device; the checkpoint is read whole into host memory and each "
     "tensor "
     "goes over through one temporary on the device. The device holds one extra tensor at a time; the host "
     "still "
     "holds the whole checkpoint.",
     load_sequential,
     {.order_free = true},
     true},
    {"meta_map_location", "empty model on the device, state dict beside it", "device max(2W, W + Q), host w*",
     "The model is made on the meta device and gets empty memory on the real one (to_empty); torch.load with "
     "map_location then brings the whole state dict to the same device before it is copied over. The host is "
     "spared, the device holds everything twice.",
     load_meta_map_location},
    {"mmap_assign",
     "empty model, mapped file, tensors assigned",
     "device W + Q, page cache W",
     "The model starts on the meta device without memory; the file is mapped (torch.load with mmap=True and "
     "assign=True) and each tensor is copied from the mapped pages to its place. Nothing is anonymous "
     "memory, "
     "but the mapped pages count as resident until the system drops them.",
     load_mmap_assign,
     {.order_free = true},
     true},
    {"mmap_copy",
     "mapped file copied into a model on the host, then .to(device)",
     "device W + Q, host W, page cache W",
     "The model is built in host memory, the file is mapped and copied over it without assign=True, and the "
     "model moves to the device. Mapping saves nothing here: the process counts the model and the mapped "
     "pages at once.",
     load_mmap_copy,
     {.order_free = true}},
    {"mmap_state_dict",
     "mapped file brought to the device beside the model",
     "device max(2W, W + Q), host W, page cache W",
     "The model is on the device already when the mapped file is loaded there with map_location: mapping "
     "spares the host a copy of the state dict, and the device holds everything twice all the same.",
     load_mmap_state_dict,
     {.order_free = true}},
    {"per_tensor",
     "empty model on the device, one tensor read at a time",
     "device V + Q, host w* (cast: c*)",
     "The model is allocated on the device without initialising it, then each tensor is read into host "
     "memory, "
     "copied over and freed. The host needs the largest tensor only.",
     load_per_tensor,
     {.casts = true, .order_free = true}},
    {"staged_ring",
     "empty model on the device, fed through a ring of pinned slots",
     "device V + Q, staging B",
     "The model is allocated on the device; the files are read straight into a small ring of staging slots, "
     "many "
     "tensors to a slot and large ones over several, while earlier slots are still being transferred. No "
     "host "
     "copy exists and the ring's size does not depend on the model.",
     load_staged_ring,
     {.casts = true, .ring = true, .order_free = true},
     true},
    {"executorch_before",
     "device tensors and activations first, then prepack from host copies",
     "unified 2W + Q + w* + T",
     "ExecuTorch's Vulkan delegate up to mid-2025: file data on the host, all device tensors and the "
     "activations "
     "allocated at once, then each tensor goes through a staging buffer of its size and its host copy is "
     "freed.",
     load_executorch_before,
     {.activations_first = true, .flushes = true},
     false,
     executorch_waits},
    {"executorch_after",
     "each device tensor allocated just before its prepack",
     "unified max(W + 2w* + F, W + Q) + T",
     "The same delegate since: a device tensor is allocated just before it is filled and its host copy freed "
     "straight after, and the activations come last, so the three copies exist for one tensor at a time.",
     load_executorch_after,
     {.flushes = true},
     true,
     executorch_waits},
    {"accelerate",
     "file by file: mapped, copied tensor by tensor, unmapped",
     "device V + Q (cast: V + max(S*, Q)), host H (disk: + v*; pickled: + S*), page cache S* (pickled: 0)",
     "load_checkpoint_and_dispatch of accelerate: an empty model gets its tensors from one file at a time, "
     "mapped if it is safetensors, else loaded whole to the host, and its sources stay until the file is "
     "done; "
     "with a cast they stay on the device too, beside what they became. What the map places on the host "
     "stays "
     "there, what it places on disk passes through, one tensor at a time. S* is the largest shard.",
     load_accelerate,
     {.casts = true, .offloads = true, .shards = true},
     true},
    {"fastsafetensors",
     "files read whole to the device, tensors as views into them",
     "device W + Q, staging B",
     "Each file's body is read to the device in one piece, through a ring of pinned slots where the disk "
     "cannot write there itself, and the tensors are views into it: nothing is copied again, and nothing of "
     "a file can be freed before all of it.",
     load_fastsafetensors,
     {.ring = true, .shards = true, .order_free = true}},
    {"fastsafetensors_copy",
     "files read whole beside a model that they are copied into",
     "device max(W + S*, W + Q), staging B",
     "The same, for an engine whose parameters exist already: each file's body is on the device beside them "
     "until its tensors are copied. S* is the largest shard, so that small ones keep the extra small.",
     load_fastsafetensors_copy,
     {.ring = true, .shards = true, .order_free = true}},
    {"runai",
     "a buffer on the host that threads fill and the loader empties",
     "device W + Q, host min(max(limit, w*), W)",
     "The Run:ai streamer: threads read ahead into one host buffer of limited size (40 GB by "
     "default, which for most models means all of it) and the loader takes tensor after tensor to the "
     "device. At the least limit the buffer holds the largest tensor.",
     load_runai,
     {.limit = true, .order_free = true}},
    {"llama_cpp_ring",
     "four pinned buffers of 1 MiB",
     "device V + Q, host H + D, staging 4 MiB",
     "llama.cpp without mmap on a backend with asynchronous uploads: the model is allocated, the file is "
     "read piece by piece into four pinned buffers of 1 MiB in turn. The same as staged_ring with a ring "
     "that nobody chooses.",
     load_llama_cpp_ring,
     {.offloads = true, .order_free = true}},
    {"llama_cpp_mmap",
     "files mapped whole, every tensor to the device, unmapped at the end",
     "device V + Q, page cache W",
     "llama.cpp with mmap and all layers on the device: the file is mapped whole and each tensor copied from "
     "there; the mapping goes when all is done. Its pages count as resident until then, unless the system "
     "takes them back.",
     load_llama_cpp_mmap,
     {.offloads = true, .order_free = true},
     true},
    {"pinned_pool",
     "the whole checkpoint in pinned chunks, then to the device",
     "device W + Q, staging slots(W)",
     "What ServerlessLLM does to load again fast: the checkpoint stays in a pool of pinned chunks (of the "
     "ring's slot size) from which the device is filled. All of it is pinned at once and can be swapped by "
     "nobody.",
     load_pinned_pool,
     {.ring = true, .order_free = true}},
    {"from_pretrained",
     "model built on the host, filled shard by shard, then .to(device)",
     "device V + Q, host V + S*",
     "from_pretrained of transformers 4 without low_cpu_mem_usage: the model is built with its initial "
     "weights "
     "in host memory, each shard's state dict is loaded beside it, copied over and dropped, and the model "
     "moves "
     "to the device. A checkpoint in one file needs everything twice; S* is the largest shard.",
     load_from_pretrained,
     {.casts = true, .shards = true, .order_free = true}},
    {"transformers_v5",
     "experts gathered, stacked and concatenated on the device",
     "device V + max(2g*, Q), host 0 (cast: v*), page cache W",
     "from_pretrained of transformers 5: the allocator is warmed up with one block of the model's size, then "
     "tensors come from the files, which stay mapped until all are there. The experts of a mixture become "
     "one "
     "tensor: all sources, their stacks and the result exist at once, so that the group g* with the most "
     "bytes "
     "needs three times its size while it is made. Its threads may bring tensors earlier than here, where "
     "one "
     "follows the other: that moves the peak within what the law says.",
     load_transformers_v5,
     {.casts = true},
     true},
    {"fused_in_place",
     "fused tensors allocated first, each expert copied to its place in them",
     "device V + Q, host v*",
     "What a fusing loader could do instead: allocate the fused tensor, read each expert into host memory, "
     "copy "
     "it to its place and free it at once. Fusing then costs one tensor on the host and nothing on the "
     "device.",
     load_fused_in_place,
     {.casts = true}},
    {"cast_on_host",
     "checkpoint on the host, each tensor cast to the device and freed",
     "device V + Q, host W",
     "The checkpoint is read whole into host memory; each tensor is cast into its place on the device and "
     "its "
     "source freed. On unified memory the order matters: what shrinks should go smallest first, what grows "
     "largest first.",
     load_cast_on_host,
     {.casts = true}},
    {"cast_on_device",
     "each tensor brought over as stored and cast into memory of its own",
     "device V + max(w*, Q), host w*",
     "Each tensor is brought to the device as it is stored and cast there into a second block, then the "
     "first "
     "goes. The device holds one tensor more than the model while it does: least if the largest goes first, "
     "before the others are there.",
     load_cast_on_device,
     {.casts = true}},
    {"layer_streaming",
     "one layer on the device at a time",
     "device x* + Q, host x*",
     "For models larger than the device (AirLLM): a layer is read, brought to the device, used and dropped, "
     "and the next one follows; weights are read again for every token. x* is the largest unit, often the "
     "embedding or the head and no layer. Nothing stays on the device.",
     load_layer_streaming,
     {.streams = true, .activations_first = true, .order_free = true}},
    {"layer_streaming_prefetch",
     "the same, with the next layer read ahead",
     "device x* + Q, host y*",
     "Layer streaming that reads the next layer into host memory while one runs: reading hides behind "
     "computing, and the host holds two units at once.",
     load_layer_streaming_prefetch,
     {.streams = true, .activations_first = true, .order_free = true}},
    {"direct",
     "files read straight into mapped device memory",
     "device W + Q",
     "Where the host can see all of the device's memory (unified memory, resizable BAR) the files are read "
     "straight to where the tensors stay: no host copy, no staging, no transfer.",
     load_direct,
     {.order_free = true}},
    {"host_import",
     "file pages imported by the device and copied from",
     "device W + Q, staging w*",
     "A tensor's file pages are mapped and imported as memory that the device can read "
     "(VK_EXT_external_memory_host), it copies from them, and they are given back. While they are imported "
     "they cannot be dropped: they count as staging, not as page cache.",
     load_host_import,
     {.order_free = true, .imports = true}},
}};

}  // namespace

std::span<const Method> methods() { return kMethods; }

const Method& find_method(std::string_view id) { return find_row(methods(), id, "method"); }

}  // namespace loadline
