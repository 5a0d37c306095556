// A load request: methods, orders, memory and placement of a load, and what follows it.
#pragma once

#include "core/allocators/allocator.h"
#include "core/forward/model/forward_model.h"
#include "core/forward/pass/pass_sizes.h"
#include "core/io/striped_reader.h"
#include "core/load/request/placement.h"
#include "core/load/request/prepacking.h"
#include "core/plan/memory_views.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace loadline {

// Memory set aside for the system: bytes, or a percentage of the memory.
struct Reserve {
  std::uint64_t bytes = 0;
  std::uint32_t percent = 0;
  std::uint64_t of(std::uint64_t memory) const { return bytes + memory / 100 * percent; }
  bool operator==(const Reserve&) const = default;
};
// "512MiB" or "10%". Throws Error{usage}.
Reserve parse_reserve(std::string_view text);
std::string print_reserve(const Reserve& reserve);

// The CPU that llama.cpp repacks matrices for, where they are used on the host.
enum class CpuRepack : std::uint8_t { x86, arm };

// What becomes of mapped file pages that a device's driver pins or copies from, where memory is unified:
// droppable as any clean page, or turned into anonymous memory that nothing drops.
enum class MappedPages : std::uint8_t { droppable, anonymous };

// A plain value; load_options() describes each member as a row of a table. Independent of any model:
// bind_request() resolves it for one.
struct LoadRequest {
  std::vector<std::string> methods = {};       // ids, or "all"; empty: the default set
  std::vector<std::string> orders = {"file"};  // ids, "all", or files that list tensors

  // Settings of some methods. Bytes.
  std::uint64_t staging_bytes = 64ull << 20;    // of the whole ring
  std::uint32_t slots = 4;                      // of the ring
  std::uint32_t workers = 4;                    // transformers 5: threads that materialise tensors
  std::optional<CpuRepack> repack = {};         // llama.cpp (ggml_cpu.h); absent: none
  std::uint64_t runai_buffer = 40'000'000'000;  // Run:ai streamer's host buffer
  std::uint64_t shard_bytes = 0;                // as if re-saved in shards of at most this; 0: its own files
  std::uint64_t flush_bytes = 0;                // ExecuTorch: staging bytes collected before they are sent
  bool doubled_ties = false;                    // ExecuTorch: a weight with two names is packed once for each
  std::optional<DType> cast = {};               // type for floating point weights (storage_cast.h)

  std::optional<Prepacking> prepack = {};  // device weights are packed as they arrive; not with `cast`

  // Placement: at most one of these; none: all weights go to the device.
  std::optional<std::uint64_t> gpu_layers = {};
  std::optional<MemoryMap> auto_map = {};
  std::vector<PlaceRule> place = {};

  // What the load must fit into. An absent budget is the target's, or unlimited.
  std::string target = {};                          // a device's data sheet (targets.h); empty: none
  std::optional<MemoryKind> memory = {};            // absent: the target's, or discrete
  std::optional<std::uint64_t> device_budget = {};  // unified memory: for device, host and staging
  std::optional<std::uint64_t> host_budget = {};    // host and staging together
  std::optional<Reserve> reserve = {};              // taken off the deciding budget; absent: the target's own
  std::optional<std::uint64_t> page_cache_budget = {};
  std::optional<MappedPages> mapped_pages = {};    // absent: the target's, or droppable
  std::optional<std::uint64_t> require_peak = {};  // upper limit for the deciding peak

  FileReads reads = {};  // how an upload reads the files

  AllocatorModel allocator = AllocatorModel::exact;  // simulated besides the requested bytes
  std::string rates = {};  // empty: measured on this machine, else assumed; "assumed"; or a file

  // What follows the load: activations as one block, or a forward pass.
  std::uint64_t activation_bytes = 0;
  std::uint64_t batch = 1;
  std::uint64_t sequence = 0;          // new tokens per sequence; 0: no pass
  std::uint64_t past = 0;              // cached tokens per sequence
  bool max_context = false;            // find the largest context that each load leaves room for
  std::vector<SizeChoice> sizes = {};  // values for an ONNX file's named sizes
  ForwardOptions forward = {};

  bool operator==(const LoadRequest&) const = default;
};

inline constexpr std::uint64_t kMostTokens = 1 << 24;  // limit for batch, sequence and past

// Whether a forward pass is asked for, operator by operator.
inline bool asks_for_pass(const LoadRequest& request) {
  return request.sequence > 0 || !request.sizes.empty();
}
// Whether the weights are used after the load: by a forward pass, or by activations given as one block.
inline bool uses_weights(const LoadRequest& request) {
  return asks_for_pass(request) || request.activation_bytes > 0;
}
// Whether weights may go elsewhere than to the device.
inline bool places_weights(const LoadRequest& request) {
  return request.gpu_layers || request.auto_map || !request.place.empty();
}

// Throws Error{usage} for members that contradict each other or are out of range: a ring without 1 to 1024
// slots of at least 4 KiB each, or over 1 TiB in all; not 1 to 1024 loading threads; activations over 1 EiB
// or together with a pass; a prepack with a cast or an automatic map; two placement options; a host budget
// for unified memory.
void check_request(const LoadRequest& request);

}  // namespace loadline
