// Where the weights of a model end up: on the device, on the host, or left on disk.
#pragma once

#include "core/graph/meta_graph.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace loadline {

enum class Home : std::uint8_t { device, host, disk };
// "device", "host", "disk". Throws Error{usage} that lists them.
Home find_home(std::string_view id);
std::string_view home_id(Home place);

// The memory that an automatic map may fill.
struct MemoryMap {
  std::uint64_t device = 0;
  std::optional<std::uint64_t> host = {};  // absent: unlimited
  bool operator==(const MemoryMap&) const = default;
};

struct Placement {
  std::vector<Home> homes = {};  // by storage of the graph; empty: all on the device
  // Storages on the device that llama.cpp also keeps on the host: an embedding that doubles as the head.
  std::vector<StorageId> twins = {};
  // The limits of an automatic map. Its homes depend on weight sizes, so another cast needs a new map.
  std::optional<MemoryMap> map = {};

  Home of(StorageId id) const { return homes.empty() ? Home::device : homes[index(id)]; }
  bool has_twin(StorageId id) const;
  bool all_on_device() const;
  bool leaves_on_disk() const;  // some weight
  bool operator==(const Placement&) const = default;
};

// Whether no weight is on the device: what follows the load runs on the host.
bool computes_on_host(const Placement& placement);

// A placement rule: tensors that match the filter go to `place`.
struct PlaceRule {
  std::string filter;  // core/graph/filter.h
  Home place = Home::device;
  bool operator==(const PlaceRule&) const = default;
};
// Reads "name:*experts*=host"; the text after the last "=" is the place. Throws Error{usage}.
PlaceRule parse_place_rule(std::string_view text);
std::string print_place_rule(const PlaceRule& rule);
// A storage follows the first rule that matches its first tensor; without a match it goes to the device.
// Throws Error{usage} for a filter that cannot be parsed or that no tensor matches.
Placement place_by_rules(const MetaGraph& graph, const std::vector<PlaceRule>& rules);

// llama.cpp's layer offload. Of N layers, one is everything after the last numbered layer (final norm, head);
// the others are the last N - 1 numbered layers. All other weights stay on the host. The embedding is always
// on the host. An embedding that doubles as the head is therefore loaded twice; this is the case if the two
// names share a storage or if the model has no head (llama.cpp makes output.weight from token_embd.weight).
// Encoders with "bert" in model_type or general.architecture need no head.
Placement place_gpu_layers(const MetaGraph& graph, std::uint64_t layers);

// Reads "DEVICE[,HOST]", both sizes. Throws Error{usage} that says which of the two is not a size.
MemoryMap parse_memory_map(std::string_view text);
std::string print_memory_map(const MemoryMap& map);

// accelerate's infer_auto_device_map for one device. Modules go in forward order onto the device until one
// does not fit, then onto the host until one does not fit, then to disk. Layers are not split, and no module
// goes back to an earlier home. Device and host each keep free space for the largest module still to be
// placed, so that offloaded weights can pass through; the last module needs no such space. Modules that share
// a weight are placed together, and the shared weight counts once; while they are being placed, all but the
// first count as still to be placed. Sizes are those after `cast`. `host_bytes` absent: unlimited. Throws
// Error{limit} if the sizes of one module overflow when summed.
Placement place_automatically(const MetaGraph& graph, std::uint64_t device_bytes,
                              std::optional<std::uint64_t> host_bytes, std::optional<DType> cast = {});

}  // namespace loadline
