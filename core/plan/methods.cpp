// The table of load methods; w is a tensor's bytes, W their sum, w* the largest, Q the activations.
#include "core/plan/methods.h"

#include "core/base/error.h"
#include "core/base/lookup.h"
#include "core/base/text.h"
#include "core/plan/method_programs.h"

#include <array>

#include <fmt/format.h>

namespace loadline {
namespace {

constexpr std::array<Method, 18> kMethods = {{
    {"to_device", "model loaded on the host, then .to(device)", "device W + Q, host W",
     "The checkpoint is loaded into a model in host memory (torch.load to the CPU), which then moves to the "
     "device parameter by parameter, each host copy going as its turn is over. The device never holds more "
     "than the model; the host holds all of it once.",
     load_to_device},
    {"state_dict", "model on the device, then load_state_dict of a second copy there",
     "device max(2W, W + Q), host W",
     "The model is built in host memory and moved to the device; the checkpoint is then loaded to the same "
     "device (torch.load with map_location) and copied over the weights. Until the state dict is dropped the "
     "device holds everything twice.",
     load_state_dict},
    {"sequential", "model on the device, state dict on the host, copied tensor by tensor",
     "device W + max(w*, Q), host W",
     "The model is built and moved to the device; the checkpoint is read whole into host memory and each "
     "tensor "
     "goes over through one temporary on the device. The device holds one extra tensor at a time; the host "
     "still "
     "holds the whole checkpoint.",
     load_sequential},
    {"meta_map_location", "empty model on the device, state dict beside it", "device max(2W, W + Q), host w*",
     "The model is made on the meta device and gets empty memory on the real one (to_empty); torch.load with "
     "map_location then brings the whole state dict to the same device before it is copied over. The host is "
     "spared, the device holds everything twice.",
     load_meta_map_location},
    {"mmap_assign", "empty model, mapped file, tensors assigned", "device W + Q, page cache W",
     "The model starts on the meta device without memory; the file is mapped (torch.load with mmap=True and "
     "assign=True) and each tensor is copied from the mapped pages to its place. Nothing is anonymous "
     "memory, "
     "but the mapped pages count as resident until the system drops them.",
     load_mmap_assign},
    {"mmap_copy", "mapped file copied into a model on the host, then .to(device)",
     "device W + Q, host W, page cache W",
     "The model is built in host memory, the file is mapped and copied over it without assign=True, and the "
     "model moves to the device. Mapping saves nothing here: the process counts the model and the mapped "
     "pages at once.",
     load_mmap_copy},
    {"mmap_state_dict", "mapped file brought to the device beside the model",
     "device max(2W, W + Q), host W, page cache W",
     "The model is on the device already when the mapped file is loaded there with map_location: mapping "
     "spares the host a copy of the state dict, and the device holds everything twice all the same.",
     load_mmap_state_dict},
    {"per_tensor", "empty model on the device, one tensor read at a time", "device W + Q, host w*",
     "The model is allocated on the device without initialising it, then each tensor is read into host "
     "memory, "
     "copied over and freed. The host needs the largest tensor only.",
     load_per_tensor},
    {"staged_ring", "empty model on the device, fed through a ring of pinned slots",
     "device W + Q, staging r*c",
     "The model is allocated on the device; the files are read straight into a small ring of staging slots, "
     "many "
     "tensors to a slot and large ones over several, while earlier slots are still being transferred. No "
     "host "
     "copy exists and the ring's size does not depend on the model.",
     load_staged_ring},
    {"executorch_before", "device tensors and activations first, then prepack from host copies",
     "unified <= 2W + Q + w*",
     "ExecuTorch's Vulkan delegate up to mid-2025: file data on the host, all device tensors and the "
     "activations "
     "allocated at once, then each tensor goes through a staging buffer of its size and its host copy is "
     "freed.",
     load_executorch_before},
    {"executorch_after", "each device tensor allocated just before its prepack",
     "unified max(W + 2w*, W + Q)",
     "The same delegate since: a device tensor is allocated just before it is filled and its host copy freed "
     "straight after, and the activations come last, so the three copies exist for one tensor at a time.",
     load_executorch_after},
    {"accelerate", "file by file: mapped, copied tensor by tensor, unmapped", "device W + Q, page cache S*",
     "load_checkpoint_and_dispatch of accelerate, one device and no cast: an empty model gets its tensors "
     "from one mapped file at a time, whose pages stay until the file is done. Smaller shards mean fewer "
     "pages at once; S* is the largest file.",
     load_accelerate},
    {"fastsafetensors", "files read whole to the device, tensors as views into them",
     "device W + Q, staging r*c",
     "Each file's body is read to the device in one piece, through a ring of pinned slots where the disk "
     "cannot write there itself, and the tensors are views into it: nothing is copied again, and nothing of "
     "a file can be freed before all of it.",
     load_fastsafetensors},
    {"fastsafetensors_copy", "files read whole beside a model that they are copied into",
     "device max(W + S*, W + Q), staging r*c",
     "The same, for an engine whose parameters exist already: each file's body is on the device beside them "
     "until its tensors are copied. S* is the largest file, so that small shards keep the extra small.",
     load_fastsafetensors_copy},
    {"runai", "a buffer on the host that threads fill and the loader empties",
     "device W + Q, host min(max(limit, w*), W)",
     "The Run:ai streamer: threads read ahead into one host buffer of at most --memory-limit (40 GB by "
     "default, which for most models means all of it) and the loader takes tensor after tensor to the "
     "device. At the least limit the buffer holds the largest tensor.",
     load_runai},
    {"llama_cpp_ring", "four pinned buffers of 1 MiB", "device W + Q, staging 4 MiB",
     "llama.cpp without mmap on a backend with asynchronous uploads: the model is allocated, the file is "
     "read piece by piece into four pinned buffers of 1 MiB in turn. The same as staged_ring with a ring "
     "that nobody chooses.",
     load_llama_cpp_ring},
    {"llama_cpp_mmap", "files mapped whole, every tensor to the device, unmapped at the end",
     "device W + Q, page cache W",
     "llama.cpp with mmap and all layers on the device: the file is mapped whole and each tensor copied from "
     "there; the mapping goes when all is done. Its pages count as resident until then, unless the system "
     "takes them back.",
     load_llama_cpp_mmap},
    {"pinned_pool", "the whole checkpoint in pinned chunks, then to the device", "device W + Q, staging W",
     "What ServerlessLLM does to load again fast: the checkpoint stays in a pool of pinned chunks (of the "
     "ring's slot size) from which the device is filled. All of it is pinned at once and can be swapped by "
     "nobody.",
     load_pinned_pool},
}};

}  // namespace

std::span<const Method> methods() { return kMethods; }

const Method& find_method(std::string_view id) { return find_row(methods(), id, "method"); }

void check_options(const MethodOptions& options) {
  constexpr std::uint64_t kLeastSlot = 4096;
  constexpr std::uint32_t kMostSlots = 1024;
  if (options.slots == 0 || options.slots > kMostSlots)
    throw Error(ErrorCode::usage,
                fmt::format("a ring needs 1 to {} slots, {} were asked for", kMostSlots, options.slots));
  if (options.staging_bytes / options.slots < kLeastSlot)
    throw Error(
        ErrorCode::usage,
        fmt::format("a ring of {} bytes in {} slots has slots of {} bytes, the least is {}",
                    options.staging_bytes, options.slots, options.staging_bytes / options.slots, kLeastSlot));
  if (options.activation_bytes >> 60 != 0)
    throw Error(ErrorCode::usage, fmt::format("activations of {} are over the limit of 1 EiB",
                                              format_bytes(options.activation_bytes)));
  if (options.staging_bytes > std::uint64_t{1} << 40)
    throw Error(ErrorCode::usage,
                fmt::format("a ring of {} is over the limit of 1 TiB", format_bytes(options.staging_bytes)));
}

Plan make_plan(const MetaGraph& graph, const Method& method, const StorageOrder& order,
               const MethodOptions& options) {
  check_options(options);
  if (options.cast && !method.traits.casts)
    throw Error(ErrorCode::unsupported, fmt::format("{} loads weights as they are stored", method.id));
  if (!options.placement.all_on_device() && !method.traits.offloads)
    throw Error(ErrorCode::unsupported, fmt::format("{} loads everything onto the device", method.id));
  return method.make(graph, order, options);
}

}  // namespace loadline
