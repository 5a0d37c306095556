// The table of methods, and the check that one supports a request.

#include "core/base/checked_arithmetic.h"
#include "core/base/error.h"
#include "core/base/option.h"
#include "core/load/methods/builder.h"
#include "core/load/request/method.h"

#include <algorithm>
#include <array>
#include <initializer_list>
#include <string>
#include <utility>

#include <fmt/core.h>

namespace loadline::load {

// --- The table of load methods. The manual's page `methods` explains each of them.

namespace {

// What laws are written with. A sum beyond 64 bits is an Error{limit}.

std::uint64_t whole(const std::optional<std::uint64_t>& bytes) {
  if (!bytes) throw Error(ErrorCode::limit, "the peak by a method's law does not fit in 64 bits");
  return *bytes;
}

LawBytes joined(LawBytes a, const LawBytes& b, std::uint64_t bytes, std::string text) {
  a.bytes = bytes;
  a.text = std::move(text);
  a.words.insert(a.words.end(), b.words.begin(), b.words.end());
  return a;
}

LawBytes operator+(const LawBytes& a, const LawBytes& b) {
  return joined(a, b, whole(checked_add(a.bytes, b.bytes)), a.text + " + " + b.text);
}

LawBytes operator*(std::uint64_t factor, const LawSize& size) {
  LawBytes product = size;
  product.bytes = whole(checked_mul(factor, size.bytes));
  product.text = fmt::format("{} * {}", factor, size.name);
  return product;
}

LawBytes max(const LawBytes& a, const LawBytes& b) {
  return joined(a, b, std::max(a.bytes, b.bytes), fmt::format("max({}, {})", a.text, b.text));
}

LawBytes min(const LawBytes& a, const LawBytes& b) {
  return joined(a, b, std::min(a.bytes, b.bytes), fmt::format("min({}, {})", a.text, b.text));
}

LawBytes mebibytes(std::uint64_t number) {
  LawBytes size;
  size.bytes = number << 20;
  size.text = number == 0 ? "0" : fmt::format("{} MiB", number);
  return size;
}

// Where the condition holds, the bytes of a part are these, or with kMore these more.
struct LawCase {
  LawCondition when;
  LawBytes bytes;
  bool more = false;
};
constexpr bool kMore = true;
using LawCases = std::initializer_list<LawCase>;
using Sizes = const LawSizes&;

LawPart part(std::optional<plan::Space> space, LawBytes bytes, LawCases cases) {
  LawPart made = {space, std::move(bytes)};
  for (const LawCase& one : cases) {
    if (one.when.holds)
      made.bytes.bytes = one.more ? whole(checked_add(made.bytes.bytes, one.bytes.bytes)) : one.bytes.bytes;
    made.cases += fmt::format("{}{}: {}{}", made.cases.empty() ? " (" : "; ", one.when.name,
                              one.more ? "+ " : "", one.bytes.text);
    made.bytes.words.push_back(one.when);
    made.bytes.words.insert(made.bytes.words.end(), one.bytes.words.begin(), one.bytes.words.end());
  }
  if (!made.cases.empty()) made.cases += ")";
  return made;
}

LawPart device(LawBytes bytes, LawCases cases = {}) {
  return part(plan::Space::device, std::move(bytes), cases);
}
LawPart host(LawBytes bytes, LawCases cases = {}) { return part(plan::Space::host, std::move(bytes), cases); }
LawPart page_cache(LawBytes bytes, LawCases cases = {}) {
  return part(plan::Space::page_cache, std::move(bytes), cases);
}
LawPart staging(LawBytes bytes) { return part(plan::Space::staging, std::move(bytes), {}); }
LawPart unified(LawBytes bytes) { return part(std::nullopt, std::move(bytes), {}); }
template <class... Parts>
PeakLaw law(const Parts&... parts) {
  return {parts...};
}

// Files beside the model are read weight by weight for what is packed; the rest stays mapped.
LawPart onnx_pages(Sizes s) {
  return page_cache(s.largest_outside_packed, {{s.used, max(s.largest_outside_packed, s.outside_mapped)}});
}
constexpr MethodTraits kOnnxSession = {.runtime = Runtime::processor,
                                       .opens = opened::kOnnx,
                                       .views = true,
                                       .order_free = true,
                                       .host_only = true};

constexpr MethodTraits kExecuTorch = {
    .runtime = Runtime::processor, .opens = opened::kExecuTorch, .order_free = true, .host_only = true};
constexpr MethodTraits kAdapters = {.views = true, .order_free = true, .host_only = true, .adapts = true};

constexpr std::array<Method, 51> kMethods = {{
    {"to_device",
     "builds the model on the host, copies the checkpoint into it, then .to(device)",
     [](Sizes s) {
       return law(device(s.device_weights + s.pass),
                  host(s.device_weights + s.host_weights + max(s.weights, s.untied_head)));
     },
     load_to_device,
     {.casts = true, .offloads = true, .order_free = true, .heap = Heap::torch},
     true},
    {"shard_by_shard",
     "as to_device, with one file of the checkpoint in memory at a time",
     [](Sizes s) {
       return law(device(s.device_weights + s.pass),
                  host(s.device_weights + s.host_weights + max(s.largest_shard, s.untied_head)));
     },
     load_shard_by_shard,
     {.casts = true, .offloads = true, .shards = true, .order_free = true, .heap = Heap::torch}},
    {"meta_assign",
     "builds the model empty, assigns the checkpoint on the host, then .to(device)",
     [](Sizes s) { return law(device(s.device_weights + s.pass), host(s.weights)); },
     load_meta_assign,
     {.offloads = true, .order_free = true, .heap = Heap::torch}},
    {"state_dict", "model on the device; a second copy is loaded there and copied over it",
     [](Sizes s) {
       return law(device(max(2 * s.weights, s.weights + s.pass)), host(s.weights + s.untied_head));
     },
     load_state_dict,
     {.heap = Heap::torch}},
    {"sequential",
     "model on the device; checkpoint on the host, copied over tensor by tensor",
     [](Sizes s) {
       return law(device(s.weights + max(s.largest_weight, s.pass)), host(s.weights + s.untied_head));
     },
     load_sequential,
     {.order_free = true, .heap = Heap::torch},
     true},
    {"meta_map_location", "builds the model empty on the device; the checkpoint is loaded beside it",
     [](Sizes s) {
       return law(device(s.untied_head + max(2 * s.weights, s.weights + s.pass)), host(s.largest_weight));
     },
     load_meta_map_location,
     {.heap = Heap::torch}},
    {"mmap_assign",
     "maps the file, assigns its tensors to an empty model, then .to(device)",
     [](Sizes s) {
       return law(device(s.device_weights + s.pass),
                  page_cache(s.still_mapped + s.largest_shard,
                             {{s.used, s.still_mapped + max(s.largest_shard, s.host_weights)}}));
     },
     load_mmap_assign,
     {.opens = opened::kMappable, .offloads = true, .shards = true, .views = true, .heap = Heap::torch},
     true},
    {"mmap_copy",
     "maps the file, copies it into a model on the host, then .to(device)",
     [](Sizes s) {
       return law(device(s.device_weights + s.pass), host(s.device_weights + s.host_weights + s.untied_head),
                  page_cache(s.largest_shard));
     },
     load_mmap_copy,
     {.casts = true, .opens = opened::kMappable, .offloads = true, .shards = true, .order_free = true, .heap = Heap::torch}},
    {"mmap_state_dict",
     "maps the file and brings it to the device beside the model",
     [](Sizes s) {
       return law(device(max(2 * s.weights, s.weights + s.pass)), host(s.weights + s.untied_head),
                  page_cache(s.largest_shard));
     },
     load_mmap_state_dict,
     {.opens = opened::kMappable, .shards = true, .heap = Heap::torch}},
    {"safetensors_bytes",
     "reads the file as bytes, parses them into tensors, then .to(device)",
     [](Sizes s) { return law(device(s.device_weights + s.pass), host(s.weights + s.largest_shard)); },
     load_safetensors_bytes,
     {.opens = opened::kSafetensors | opened::kNoFile, .offloads = true, .shards = true, .heap = Heap::torch}},
    {"per_tensor",
     "reads one tensor at a time into a model on the device",
     [](Sizes s) {
       return law(device(s.device_weights + s.pass),
                  host(s.largest_weight, {{s.cast, s.largest_stored_and_loaded}}));
     },
     load_per_tensor,
     {.casts = true, .runtime = Runtime::any, .opens = opened::kAll, .order_free = true}},
    {"staged_ring",
     "reads through a ring of pinned slots into a model on the device",
     [](Sizes s) { return law(device(s.device_weights + s.pass), staging(s.own_ring)); },
     load_staged_ring,
     {.casts = true, .runtime = Runtime::own, .opens = opened::kAll, .ring = true, .order_free = true},
     true},
    {"executorch_before",
     "allocates device tensors and activations first, then prepacks host copies",
     [](Sizes s) { return law(unified(2 * s.weights + s.pass + s.largest_weight + s.tied_copies)); },
     load_executorch_before,
     {.runtime = Runtime::executorch,
      .opens = opened::kExecuTorch | opened::kExecuTorchTensors | opened::kNoFile,
      .activations_first = true,
      .flushes = true},
     false,
     executorch_waits},
    {"executorch_after",
     "allocates each device tensor just before it is prepacked",
     [](Sizes s) {
       return law(unified(max(s.weights + 2 * s.largest_weight + s.flush_threshold, s.weights + s.pass) +
                          s.tied_copies));
     },
     load_executorch_after,
     {.runtime = Runtime::executorch,
      .opens = opened::kExecuTorch | opened::kExecuTorchTensors | opened::kNoFile,
      .flushes = true},
     true,
     executorch_waits},
    {"accelerate",
     "maps one file at a time and copies it tensor by tensor",
     [](Sizes s) {
       return law(
           device(s.device_weights + s.pass, {{s.cast, s.device_weights + max(s.largest_shard, s.pass)},
                                              {s.pickled, s.device_weights + s.pass},
                                              {s.brought, s.largest_off_device, kMore}}),
           host(mebibytes(0), {{s.converted_on_host, s.host_weights},
                               {s.disk, s.host_weights},
                               {s.pickled, s.host_weights + s.largest_shard + s.largest_weight},
                               {s.cast, s.largest_loaded, kMore},
                               {s.disk, s.largest_loaded, kMore}}),
           page_cache(s.largest_shard, {{s.used, max(s.largest_shard, s.host_weights)},
                                        {s.pickled, mebibytes(0)},
                                        {s.disk, s.largest_weight, kMore}}));
     },
     load_accelerate,
     {.casts = true, .offloads = true, .disk = true, .auto_maps = true, .shards = true, .views = true, .heap = Heap::accelerate},
     true},
    {"fastsafetensors",
     "reads files whole to the device; tensors are views into them",
     [](Sizes s) { return law(device(s.weights + s.pass), staging(s.ring)); },
     load_fastsafetensors,
     {.opens = opened::kSafetensors | opened::kNoFile, .ring = true, .shards = true, .order_free = true}},
    {"fastsafetensors_copy",
     "reads one file at a time to the device and copies it into the model",
     [](Sizes s) {
       return law(device(max(s.weights + s.largest_shard, s.weights + s.pass)), staging(s.ring));
     },
     load_fastsafetensors_copy,
     {.opens = opened::kSafetensors | opened::kNoFile, .ring = true, .shards = true, .order_free = true}},
    {"fastsafetensors_all",
     "reads all files to the device beside the model, then copies them into it",
     [](Sizes s) { return law(device(max(2 * s.weights, s.weights + s.pass)), staging(s.ring)); },
     load_fastsafetensors_all,
     {.opens = opened::kSafetensors | opened::kNoFile, .ring = true, .order_free = true}},
    {"runai",
     "reads requests into host buffers that the loader empties into the model",
     [](Sizes s) { return law(device(s.weights + s.pass), host(s.requests)); },
     load_runai,
     {.opens = opened::kSafetensors | opened::kNoFile, .limit = true},
     false,
     [](const LoadRequest&) { return true; }},
    {"llama_cpp_ring",
     "reads to the host; four pinned buffers of 1 MiB feed the device",
     [](Sizes s) {
       return law(device(s.device_weights + s.pass),
                  host(s.vocabulary + s.host_weights + s.disk_weights,
                       {{s.by_rows, s.vocabulary + s.read_weights},
                        {s.repacked, s.repacked_head + s.largest_weight, kMore}}),
                  staging(mebibytes(4)));
     },
     load_llama_cpp_ring,
     {.runtime = Runtime::llama_cpp,
      .opens = opened::kGguf | opened::kNoFile,
      .offloads = true,
      .disk = true,
      .layers = true,
      .repacks = true,
      .order_free = true}},
    {"llama_cpp_direct",
     "reads past the page cache; four pinned buffers of 64 MiB feed the device",
     [](Sizes s) {
       return law(
           device(s.device_weights + s.pass),
           host(s.vocabulary + s.host_weights + s.disk_weights + min(s.largest_off_device, mebibytes(64)),
                {{s.by_rows, s.vocabulary + s.read_weights + mebibytes(64)},
                 {s.repacked, s.repacked_head + s.largest_weight, kMore}}),
           staging(mebibytes(256)));
     },
     load_llama_cpp_direct,
     {.runtime = Runtime::llama_cpp,
      .opens = opened::kGguf | opened::kNoFile,
      .offloads = true,
      .disk = true,
      .layers = true,
      .repacks = true}},
    {"llama_cpp_mmap",
     "maps the files, copies tensors to the device, unmaps at the end",
     [](Sizes s) {
       return law(device(s.device_weights + s.pass),
                  host(s.vocabulary, {{s.repacked, s.repacked_weights, kMore}}),
                  page_cache(s.weights, {{s.by_rows, s.mapped_weights}}));
     },
     load_llama_cpp_mmap,
     {.runtime = Runtime::llama_cpp,
      .opens = opened::kGguf | opened::kNoFile,
      .offloads = true,
      .disk = true,
      .layers = true,
      .repacks = true,
      .order_free = true},
     true},
    {"onnxruntime", "a session on the processor: weights become tensors, matrices are packed",
     [](Sizes s) {
       return law(host(s.inside +
                       max(max(s.largest_inside, s.outside_packed), s.reordered + 3 * s.largest_reordered)),
                  onnx_pages(s));
     },
     load_onnxruntime, kOnnxSession, true},
    {"onnxruntime_unpacked", "as onnxruntime, with session.disable_prepacking",
     [](Sizes s) {
       return law(host(s.inside + max(s.largest_inside, s.reordered + 3 * s.largest_reordered)),
                  page_cache(s.largest_outside_reordered,
                             {{s.used, max(s.largest_outside_reordered, s.outside_unordered)}}));
     },
     load_onnxruntime_unpacked, kOnnxSession},
    {"onnxruntime_bytes", "a session of a file's bytes, which are copied, parsed and kept",
     [](Sizes s) {
       return law(host(s.inside + max(max(2 * s.inside, s.inside + s.outside_packed),
                                      s.inside + s.reordered + 3 * s.largest_reordered)),
                  onnx_pages(s));
     },
     load_onnxruntime_bytes, kOnnxSession},
    {"openvino", "a model compiled for the processor: matrices are packed in BF16",
     [](Sizes s) {
       return law(host(max(2 * s.inside, s.inside + s.bf16_matrices),
                       {{s.used, max(2 * s.inside, s.inside + 2 * s.bf16_matrices)}}),
                  page_cache(s.outside));
     },
     load_openvino,
     {.runtime = Runtime::processor, .opens = opened::kOnnx, .order_free = true, .host_only = true}},
    {"executorch_mapped", "a program on the processor: mapped whole, values in planned arenas",
     [](Sizes s) { return law(host(s.planned), page_cache(s.weights)); }, load_executorch_mapped,
     kExecuTorch},
    {"executorch_bytes", "as executorch_mapped, with a program that was read to the host",
     [](Sizes s) { return law(host(s.weights + s.planned)); }, load_executorch_bytes, kExecuTorch},
    {"executorch_xnnpack", "a program for XNNPACK, which packs the weights of the mapped file",
     [](Sizes s) { return law(host(s.delegated + s.planned), page_cache(s.weights)); },
     load_executorch_xnnpack, kExecuTorch},
    {"litert",
     "an interpreter on the processor; XNNPACK packs the weights of the mapped file",
     [](Sizes s) { return law(host(s.weights), page_cache(s.weights)); },
     load_litert,
     {.runtime = Runtime::processor, .opens = opened::kLiteRt, .order_free = true, .host_only = true},
     true},
    {"litert_plain",
     "an interpreter without XNNPACK: weights stay views of the mapped file",
     [](Sizes s) { return law(page_cache(mebibytes(0), {{s.used, s.weights}})); },
     load_litert_plain,
     {.runtime = Runtime::processor,
      .opens = opened::kLiteRt,
      .views = true,
      .order_free = true,
      .host_only = true}},
    {"torch_export",
     "torch.export.load(): the tensors of the archive are read to the host",
     [](Sizes s) { return law(host(s.weights)); },
     load_arrays,
     {.opens = opened::kTorchExport, .order_free = true, .host_only = true},
     true},
    {"numpy_npz",
     "numpy.load(): every array of the archive is read to the host",
     [](Sizes s) { return law(host(s.weights)); },
     load_arrays,
     {.runtime = Runtime::processor, .opens = opened::kNumpy, .order_free = true, .host_only = true},
     true},
    {"numpy_safetensors", "safetensors.numpy: each file is mapped, and its arrays are copied out",
     [](Sizes s) { return law(host(s.weights), page_cache(s.largest_shard)); }, load_arrays_by_file,
     {.runtime = Runtime::processor,
      .opens = opened::kSafetensors | opened::kNoFile,
      .shards = true,
      .host_only = true}},
    {"pinned_pool",
     "reads the whole checkpoint into pinned chunks, then copies it to the device",
     [](Sizes s) { return law(device(s.weights + s.pass), staging(s.weights_in_slots)); },
     load_pinned_pool,
     {.runtime = Runtime::own, .opens = opened::kAll, .ring = true, .order_free = true}},
    {"transformers_v4_early",
     "builds the model on the host, copies mapped files into it, then .to(device)",
     [](Sizes s) {
       return law(device(s.device_weights + s.pass), host(s.device_weights + s.host_weights),
                  page_cache(s.largest_shard));
     },
     load_transformers_v4_early,
     {.casts = true, .own_type = OwnType::f32, .offloads = true, .shards = true, .heap = Heap::transformers_v4}},
    {"transformers_v4",
     "builds the model empty with mapped tensors as parameters, then .to(device)",
     [](Sizes s) {
       return law(device(s.device_weights + s.pass),
                  host(mebibytes(0), {{s.cast, s.device_weights + s.host_weights}}),
                  page_cache(s.still_mapped + s.largest_shard,
                             {{s.used, s.still_mapped + max(s.largest_shard, s.host_weights)},
                              {s.partly_cast, s.weights}}));
     },
     load_transformers_v4,
     {.casts = true, .own_type = OwnType::f32, .offloads = true, .shards = true, .views = true, .heap = Heap::transformers_v4}},
    {"transformers_v5",
     "loads straight to the device (device_map), fuses experts there",
     [](Sizes s) {
       return law(device(s.device_weights + max(s.largest_fused_group, s.pass),
                         {{s.brought, s.largest_off_device, kMore}}),
                  host(mebibytes(0), {{s.converted_on_host, s.host_weights + s.largest_fused_group},
                                      {s.disk, s.largest_fused_group, kMore},
                                      {s.cast, s.largest_per_thread, kMore}}),
                  page_cache(s.weights));
     },
     load_transformers_v5,
     {.casts = true,
      .own_type = OwnType::configured,
      .offloads = true,
      .disk = true,
      .auto_maps = true,
      .views = true,
      .workers = true,
      .order_free = true, .heap = Heap::transformers_v5},
     true},
    {"transformers_v5_to",
     "loads on the host, fuses experts there, then .to(device)",
     [](Sizes s) {
       return law(device(s.device_weights + s.pass),
                  host(mebibytes(0), {{s.fused_experts, s.fused_groups + s.largest_fused_group},
                                      {s.cast, s.device_weights + s.host_weights + s.largest_fused_group}}),
                  page_cache(s.still_mapped + s.largest_shard,
                             {{s.used, s.still_mapped + max(s.largest_shard, s.host_weights)},
                              {s.cast, s.weights},
                              {s.fused_experts, s.weights}}));
     },
     load_transformers_v5_to,
     {.casts = true, .own_type = OwnType::configured, .offloads = true, .shards = true, .views = true, .heap = Heap::transformers_v5}},
    {"transformers_gguf", "from_pretrained(gguf_file=...) on the host: blocks become numbers",
     [](Sizes s) {
       return law(host(14 * s.vocabulary + s.unpacked + s.largest_unpacked_f32, {{s.cast, s.largest_unpacked_f32, kMore}}),
                  page_cache(s.weights));
     },
     load_transformers_gguf,
     {.casts = true, .opens = opened::kGguf, .order_free = true, .host_only = true}},
    {"peft_attach", "transformers 5 on the host, then PeftModel.from_pretrained()",
     [](Sizes s) { return law(host(s.adapters), page_cache(mebibytes(0), {{s.used, s.weights}})); },
     load_peft_attach, kAdapters},
    {"peft_merge", "as peft_attach, then merge_and_unload(): merged weights are copies",
     [](Sizes s) {
       return law(host(s.adapters + s.adapted + s.largest_merge),
                  page_cache(s.largest_adapted, {{s.used, s.weights}}));
     },
     load_peft_merge, kAdapters},
    {"fused_in_place",
     "allocates fused tensors first, copies each expert to its place in them",
     [](Sizes s) { return law(device(s.device_weights + s.pass), host(s.largest_loaded)); },
     load_fused_in_place,
     {.casts = true, .runtime = Runtime::any, .opens = opened::kAll}},
    {"engine_repack",
     "fills the engine's parameters from mapped files, then repacks fused groups",
     [](Sizes s) {
       return law(device(s.weights + max(s.largest_fused_group, s.pass)), page_cache(s.largest_shard));
     },
     load_engine_repack,
     {.opens = opened::kMappable, .shards = true, .order_free = true}},
    {"engine_repack_all",
     "as engine_repack, but frees the old groups after the last one",
     [](Sizes s) {
       return law(device(s.weights + max(s.fused_groups, s.pass)), page_cache(s.largest_shard));
     },
     load_engine_repack_all,
     {.opens = opened::kMappable, .shards = true, .order_free = true}},
    {"cast_on_host",
     "reads the checkpoint to the host, casts each tensor to the device, frees it",
     [](Sizes s) { return law(device(s.device_weights + s.pass), host(s.weights)); },
     load_cast_on_host,
     {.casts = true, .runtime = Runtime::any, .opens = opened::kAll}},
    {"cast_on_device",
     "brings each tensor over as stored and casts it there",
     [](Sizes s) {
       return law(device(s.device_weights + max(s.largest_weight, s.pass)), host(s.largest_weight));
     },
     load_cast_on_device,
     {.casts = true, .runtime = Runtime::any, .opens = opened::kAll}},
    {"layer_streaming",
     "keeps one layer on the device at a time",
     [](Sizes s) { return law(device(s.largest_streamed_part + s.pass), host(s.largest_streamed_part)); },
     load_layer_streaming,
     {.runtime = Runtime::any,
      .opens = opened::kAll,
      .streams = true,
      .activations_first = true,
      .order_free = true}},
    {"layer_streaming_prefetch",
     "as layer_streaming, with the next layer read ahead",
     [](Sizes s) { return law(device(s.largest_streamed_part + s.pass), host(s.two_streamed_parts)); },
     load_layer_streaming_prefetch,
     {.runtime = Runtime::any,
      .opens = opened::kAll,
      .streams = true,
      .activations_first = true,
      .order_free = true}},
    {"direct",
     "reads files straight into mapped device memory",
     [](Sizes s) { return law(device(s.weights + s.pass)); },
     load_direct,
     {.runtime = Runtime::own, .opens = opened::kAll, .order_free = true}},
    {"host_import",
     "imports the files' pages into the device and copies from them",
     [](Sizes s) { return law(device(s.weights + s.pass), staging(s.largest_weight)); },
     load_host_import,
     {.runtime = Runtime::own, .opens = opened::kAll, .order_free = true, .imports = true}},
}};

}  // namespace

bool supports_placement(const Method& method, const LoadRequest& request) {
  const MethodTraits& traits = method.traits;
  return (!request.gpu_layers || traits.layers) && (!request.auto_map || traits.auto_maps) &&
         (request.place.empty() || traits.offloads);
}

std::span<const Method> methods() { return kMethods; }

const Method& find_method(std::string_view id) { return find_row(methods(), id, "method"); }

}  // namespace loadline::load
