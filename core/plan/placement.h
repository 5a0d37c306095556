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

// By storage; empty: everything on the device.
struct Placement {
  std::vector<Home> homes = {};

  Home of(StorageId id) const { return homes.empty() ? Home::device : homes[index(id)]; }
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

// llama.cpp's --gpu-layers: of N layers the first is what lies behind the last numbered one (final norm,
// head), the others are the last N - 1 numbered ones; everything else on the host.
Placement place_gpu_layers(const MetaGraph& graph, std::uint64_t layers);

// accelerate's infer_auto_device_map with one device: module by module in forward order onto the device until
// the next does not fit beside room for the largest that is left, then onto the host in the same way, then on
// disk; layers are not split and no module goes back to an earlier home. Sizes are as stored. `host` absent:
// unlimited.
Placement place_automatically(const MetaGraph& graph, std::uint64_t device_bytes,
                              std::optional<std::uint64_t> host_bytes);

}  // namespace loadline
