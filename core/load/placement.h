// Where the weights of a model end up: device, host, or left on disk.
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

// What an automatic map may fill.
struct MemoryMap {
  std::uint64_t device = 0;
  std::optional<std::uint64_t> host = {};  // absent: unlimited
  bool operator==(const MemoryMap&) const = default;
};

struct Placement {
  std::vector<Home> homes = {};  // empty: everything on the device; else one for each storage of the graph
  // Storages of the device that llama.cpp keeps on the host, too: an embedding that is the head as well.
  std::vector<StorageId> twins = {};
  // Of what it was made, where sizes decided: for weights that are cast otherwise it must be made anew.
  std::optional<MemoryMap> map = {};

  Home of(StorageId id) const { return homes.empty() ? Home::device : homes[index(id)]; }
  bool has_twin(StorageId id) const;
  bool all_on_device() const;
  bool operator==(const Placement&) const = default;
};

// One row of a user's wishes: tensors whose names match the filter go there.
struct PlaceRule {
  std::string filter;  // core/graph/filter.h
  Home place = Home::device;
  bool operator==(const PlaceRule&) const = default;
};
// "name:*experts*=host": what stands behind the last "=" is the place. Throws Error{usage}.
PlaceRule parse_place_rule(std::string_view text);
// The first rule that matches a storage's first tensor decides, else the device. Throws Error{usage} for a
// filter that cannot be read or that no tensor matches.
Placement place_by_rules(const MetaGraph& graph, const std::vector<PlaceRule>& rules);

// As llama.cpp offloads layers: of N layers the first is what lies behind the last numbered one (final norm,
// head), the others are the last N - 1 numbered ones; everything else on the host. Its embedding is always on
// the host: one that is the head as well, under a second name or because the model has no head (output.weight
// made of token_embd.weight), is loaded twice then. Encoders whose model_type or general.architecture has
// "bert" in it have no head and need none.
Placement place_gpu_layers(const MetaGraph& graph, std::uint64_t layers);

// "DEVICE[,HOST]", sizes both. Throws Error{usage} that says which of them is no size.
MemoryMap parse_memory_map(std::string_view text);

// accelerate's infer_auto_device_map with one device: module by module in forward order onto the device until
// the next does not fit, then onto the host in the same way, then on disk; layers are not split and no module
// goes back to an earlier home. Beside the module in question device and host keep room for the largest of
// those still to be placed after it, so that what is offloaded can pass through: for the last one none.
// Modules that share a weight go together, as one that counts it once; while the first of them is in question
// the others are still to be placed. Sizes are as loaded with `cast`. `host` absent: unlimited. Throws
// Error{limit} where those of one module have no sum.
Placement place_automatically(const MetaGraph& graph, std::uint64_t device_bytes,
                              std::optional<std::uint64_t> host_bytes, std::optional<DType> cast = {});

}  // namespace loadline
