// Rules, layers counted from the end, and accelerate's automatic map.
#include "core/plan/placement.h"

#include "core/base/error.h"
#include "core/base/text.h"
#include "core/graph/filter.h"
#include "core/plan/load_units.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>

namespace loadline {
namespace {

constexpr std::array<std::string_view, 3> kHomes = {"device", "host", "disk"};

std::vector<StorageId> used_storages(const MetaGraph& graph) {
  std::vector<StorageId> used;
  const auto owners = first_owner(graph);
  for (std::size_t i = 0; i < owners.size(); ++i)
    if (owners[i]) used.push_back(StorageId{static_cast<std::uint32_t>(i)});
  return used;
}

void put(Placement& placement, const LoadUnit& unit, Home place) {
  for (const StorageId id : unit.storages) placement.homes[index(id)] = place;
}

// What accelerate moves in one piece: a numbered layer, or one module of what is not in a layer.
std::vector<LoadUnit> pieces(const MetaGraph& graph) {
  std::vector<LoadUnit> list;
  for (LoadUnit& unit : load_units(graph, used_storages(graph))) {
    if (unit.phase == Phase::layer) {
      list.push_back(std::move(unit));
      continue;
    }
    for (const StorageId id : unit.storages)
      list.push_back({unit.label, unit.phase, {id}, graph.storage(id).bytes});
  }
  return list;
}

}  // namespace

Home find_home(std::string_view id) {
  const auto found = std::find(kHomes.begin(), kHomes.end(), id);
  if (found == kHomes.end())
    throw Error(ErrorCode::usage,
                fmt::format("no place '{}'; there are: device, host, disk", safe_display(id, 40)));
  return static_cast<Home>(found - kHomes.begin());
}

std::string_view home_id(Home place) { return kHomes[static_cast<std::size_t>(place)]; }

bool Placement::all_on_device() const {
  return std::all_of(homes.begin(), homes.end(), [](Home place) { return place == Home::device; });
}

Placement place_by_rules(const MetaGraph& graph, const std::vector<PlaceRule>& rules) {
  Placement placement{std::vector<Home>(graph.storages.size(), Home::device)};
  const auto owners = first_owner(graph);
  std::vector<bool> decided(graph.storages.size(), false);
  for (const PlaceRule& rule : rules) {
    const std::vector<TensorId> chosen = TensorFilter(rule.filter).select(graph);
    if (chosen.empty())
      throw Error(ErrorCode::usage, fmt::format("no tensor matches '{}'", safe_display(rule.filter, 80)));
    for (const TensorId id : chosen) {
      const std::size_t at = index(graph.tensor(id).storage);
      if (owners[at] != id || decided[at]) continue;
      placement.homes[at] = rule.place;
      decided[at] = true;
    }
  }
  return placement;
}

Placement place_gpu_layers(const MetaGraph& graph, std::uint64_t layers) {
  Placement placement{std::vector<Home>(graph.storages.size(), Home::host)};
  const std::vector<LoadUnit> units = load_units(graph, used_storages(graph));
  if (layers == 0) return placement;
  for (const LoadUnit& unit : units)
    if (unit.phase == Phase::final_norm || unit.phase == Phase::head) put(placement, unit, Home::device);
  std::uint64_t left = layers - 1;
  for (auto unit = units.rbegin(); unit != units.rend() && left > 0; ++unit) {
    if (unit->phase != Phase::layer) continue;
    put(placement, *unit, Home::device);
    --left;
  }
  return placement;
}

Placement place_automatically(const MetaGraph& graph, std::uint64_t device_bytes,
                              std::optional<std::uint64_t> host_bytes) {
  Placement placement{std::vector<Home>(graph.storages.size(), Home::disk)};
  const std::vector<LoadUnit> list = pieces(graph);
  std::uint64_t largest = 0;
  for (const LoadUnit& unit : list)
    if (unit.phase == Phase::layer) largest = std::max(largest, unit.bytes);
  // with everything on the device no layer has to come there from elsewhere
  const bool whole = storage_bytes(graph) <= device_bytes;
  const std::uint64_t reserve = whole ? 0 : largest;
  std::array<std::uint64_t, 2> room = {device_bytes > reserve ? device_bytes - reserve : 0,
                                       host_bytes.value_or(UINT64_MAX)};
  std::size_t place = 0;
  for (const LoadUnit& unit : list) {
    while (place < room.size() && unit.bytes > room[place]) ++place;
    put(placement, unit, static_cast<Home>(place));
    if (place < room.size()) room[place] -= unit.bytes;
  }
  return placement;
}

}  // namespace loadline
