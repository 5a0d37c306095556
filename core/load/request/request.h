// All settings of a load as one plain value, with where weights go and how they are packed.
#pragma once

#include "core/allocators/allocator_models.h"
#include "core/convert/numbers/prepack.h"
#include "core/forward/model/forward_model.h"
#include "core/forward/pass/lifetimes.h"
#include "core/graph/meta_graph.h"
#include "core/io/source_file.h"
#include "core/plan/plan.h"
#include "core/plan/timeline.h"

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace loadline::load {

// --- Where the weights of a model end up: on the device, on the host, or left on disk.

enum class Home : std::uint8_t { device, host, disk };
// "device", "host", "disk". Throws Error{usage} that lists them.
Home find_home(std::string_view id);
std::string_view home_id(Home place);

// The memory that an automatic map may fill.
struct MemoryMap {
  std::uint64_t device = 0;
  std::optional<std::uint64_t> host = {};  // absent: unlimited
  bool by_budget = false;                  // both follow from the budgets: map_within()
  bool operator==(const MemoryMap&) const = default;
};

struct Placement {
  std::vector<Home> homes = {};  // by storage of the graph; empty: all on the device
  // Storages on the device that llama.cpp also keeps on the host: an embedding that doubles as the head.
  std::vector<graph::StorageId> twins = {};
  // The limits of an automatic map. Its homes depend on weight sizes, so another cast needs a new map.
  std::optional<MemoryMap> map = {};

  Home of(graph::StorageId id) const { return homes.empty() ? Home::device : homes[graph::index(id)]; }
  bool has_twin(graph::StorageId id) const;
  bool all_on_device() const;
  bool leaves_on_disk() const;  // some weight
  bool operator==(const Placement&) const = default;
};

// Whether no weight is on the device: what follows the load runs on the host.
bool computes_on_host(const Placement& placement);

// A placement rule: tensors that match the filter go to `place`.
struct PlaceRule {
  std::string filter;  // core/graph/names/tensor_names.h
  Home place = Home::device;
  bool operator==(const PlaceRule&) const = default;
};
// Reads "name:*experts*=host"; the text after the last "=" is the place. Throws Error{usage}.
PlaceRule parse_place_rule(std::string_view text);
std::string print_place_rule(const PlaceRule& rule);
// A storage follows the first rule that matches its first tensor; without a match it goes to the device.
// Throws Error{usage} for a filter that cannot be parsed or that no tensor matches.
Placement place_by_rules(const graph::MetaGraph& graph, const std::vector<PlaceRule>& rules);

// llama.cpp's layer offload. Of N layers, one is everything after the last numbered layer (final norm, head);
// the others are the last N - 1 numbered layers. All other weights stay on the host. The embedding is always
// on the host. An embedding that doubles as the head is therefore loaded twice; this is the case if the two
// names share a storage or if the model has no head (llama.cpp makes output.weight from token_embd.weight).
// Encoders with "bert" in model_type or general.architecture need no head.
Placement place_gpu_layers(const graph::MetaGraph& graph, std::uint64_t layers);

// Reads "auto" or "DEVICE[,HOST]", both sizes. Throws Error{usage} that says which of the two is not a size.
MemoryMap parse_memory_map(std::string_view text);
std::string print_memory_map(const MemoryMap& map);

// accelerate's infer_auto_device_map for one device. Modules go in forward order onto the device until one
// does not fit, then onto the host until one does not fit, then to disk. Layers are not split, and no module
// goes back to an earlier home. Device and host each keep free space for the largest module still to be
// placed, so that offloaded weights can pass through; the last module needs no such space. Modules that share
// a weight are placed together, and the shared weight counts once; while they are being placed, all but the
// first count as still to be placed. Sizes are those after `cast`. `host_bytes` absent: unlimited. Throws
// Error{limit} if the sizes of one module overflow when summed.
Placement place_automatically(const graph::MetaGraph& graph, std::uint64_t device_bytes,
                              std::optional<std::uint64_t> host_bytes, std::optional<graph::DType> cast = {});

// --- How weights are packed on the device as they arrive there.

// What a load is asked to make of its weights. An absent type keeps the stored one.
struct Prepacking {
  convert::PrepackLayout layout = convert::PrepackLayout::rows;
  std::optional<graph::DType> to = {};
  bool operator==(const Prepacking&) const = default;
};

struct PrepackingRow {
  std::string_view id;
  Prepacking prepacking;
};
std::span<const PrepackingRow> prepackings();
// Throws Error{usage} for an unknown id.
Prepacking find_prepacking(std::string_view id);
std::string_view prepacking_id(const Prepacking& prepacking);
std::vector<std::string> prepacking_ids();

// By storage: how it is packed, or nothing if it stays as it is stored. A storage is packed if it holds one
// tensor (under any number of names) of numbers that can_prepack() knows, whole and contiguous, and with
// fewer than kMostPrepacked of them once packed. A layout applies to matrices; other tensors are only
// converted.
std::vector<std::optional<convert::Prepack>> storage_prepacks(const graph::MetaGraph& graph,
                                                              const Prepacking& prepacking);

// The weights' bytes, each storage counted once, packed if it can be.
std::uint64_t bytes_once_packed(const graph::MetaGraph& graph, const Prepacking& prepacking);

// "Packed as f16: 74 of 75 tensors; 1 stays as stored."
std::string prepacking_text(const graph::MetaGraph& graph, const Prepacking& prepacking);

// The plan, with each device block that holds one such storage packed. Copies into it convert and place their
// bytes. Throws Error{unsupported} if the plan brings no such storage to the device by itself, divides one
// inside a number, or keeps several tensors in one block there.
plan::Plan with_prepacks(plan::Plan plan, const graph::MetaGraph& graph, const Prepacking& prepacking);

// --- A load request: methods, orders, memory and placement of a load, and what follows it.

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
// "x86" or "arm". Throws Error{usage} that lists them.
CpuRepack find_cpu_repack(std::string_view id);
std::string_view cpu_repack_id(CpuRepack cpu);
std::vector<std::string> cpu_repack_ids();

// What becomes of mapped file pages that a device's driver pins or copies from, where memory is unified:
// droppable as any clean page, or turned into anonymous memory that nothing drops.
enum class MappedPages : std::uint8_t { droppable, anonymous };
std::vector<std::string> mapped_pages_words();
// Throws Error{usage} that lists them.
MappedPages find_mapped_pages(const std::string& word);
std::string_view mapped_pages_word(MappedPages pages);

// How files are read: "cache", "direct" or "cold". Throws Error{usage} that lists them.
io::FileReading find_reading(std::string_view id);
std::string_view reading_id(io::FileReading reading);
std::vector<std::string> reading_words();

// The types of activations and of the cache: those whose size is fixed per element. Throws Error{usage} that
// lists them.
graph::DType parse_value_type(const std::string& name);
std::vector<std::string> value_type_words();

// The size of a dimension that an ONNX file names: "height=224". Throws Error{usage}.
forward::SizeChoice parse_size_choice(const std::string& text);
std::string print_size_choice(const forward::SizeChoice& size);

// A plain value; load_options() describes each member as a row of a table. Independent of any model:
// bind_request() resolves it for one.
struct LoadRequest {
  std::vector<std::string> methods = {};       // ids, or "all"; empty: the default set
  std::vector<std::string> orders = {"file"};  // ids, "all", or files that list tensors

  // Settings of some methods. Bytes.
  std::uint64_t staging_bytes = 64ull << 20;    // of the whole ring
  std::uint32_t slots = 4;                      // of the ring
  std::uint32_t workers = 4;                    // transformers 5: threads that materialize tensors
  std::optional<CpuRepack> repack = {};         // llama.cpp (methods/framework_sizes.h); absent: none
  std::uint64_t runai_buffer = 40'000'000'000;  // Run:ai streamer's host buffer
  std::uint64_t shard_bytes = 0;                // as if re-saved in shards of at most this; 0: its own files
  std::uint64_t flush_bytes = 0;                // ExecuTorch: staging bytes collected before they are sent
  bool doubled_ties = false;                    // ExecuTorch: a weight with two names is packed once for each
  std::optional<graph::DType> cast = {};        // type for floating point weights (casts.h)

  std::optional<Prepacking> prepack = {};  // device weights are packed as they arrive; not with `cast`

  // Placement: at most one of these; none: all weights go to the device.
  std::optional<std::uint64_t> gpu_layers = {};
  std::optional<MemoryMap> auto_map = {};
  std::vector<PlaceRule> place = {};

  // What the load must fit into. An absent budget is the target's, or unlimited.
  std::string target = {};                          // a device's data sheet (bind_request.h); empty: none
  std::optional<plan::MemoryKind> memory = {};      // absent: the target's, or discrete
  std::optional<std::uint64_t> device_budget = {};  // unified memory: for device, host and staging
  std::optional<std::uint64_t> host_budget = {};    // host and staging together
  std::optional<std::uint64_t> commit_limit = {};   // for the commit charge, as of `ulimit -d`
  std::optional<Reserve> reserve = {};              // taken off the deciding budget; absent: the target's own
  std::optional<std::uint64_t> page_cache_budget = {};
  std::optional<MappedPages> mapped_pages = {};    // absent: the target's, or droppable
  std::optional<std::uint64_t> require_peak = {};  // upper limit for the deciding peak

  io::FileReads reads = {};  // how an upload reads the files

  allocators::AllocatorModel allocator =
      allocators::AllocatorModel::heap;  // simulated besides the requested bytes
  std::string rates = {};  // empty: measured on this machine, else assumed; "assumed"; or a file

  // What follows the load: activations as one block, or a forward pass.
  std::uint64_t activation_bytes = 0;
  std::uint64_t batch = 1;
  std::uint64_t sequence = 0;                   // new tokens per sequence; 0: no pass
  std::uint64_t past = 0;                       // cached tokens per sequence
  bool max_context = false;                     // find the largest context that each load leaves room for
  std::vector<forward::SizeChoice> sizes = {};  // values for an ONNX file's named sizes
  forward::ForwardOptions forward = {};

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

// Throws Error{usage} for options that contradict each other: slots of less than 4 KiB; activations together
// with a pass; a prepack with a cast or an automatic map; two placement options; a host budget for unified
// memory. The limits of single options stand in load_options(), and are checked where an option is set.
void check_request(const LoadRequest& request);

}  // namespace loadline::load
