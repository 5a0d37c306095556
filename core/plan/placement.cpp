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
  const auto owners = first_owner(graph);
  const auto module_of = [&](StorageId id) {
    const std::string_view name = graph.tensor(*owners[index(id)]).name;
    return name.substr(0, name.rfind('.'));
  };
  std::vector<LoadUnit> list;
  for (LoadUnit& unit : load_units(graph, used_storages(graph))) {
    if (unit.phase == Phase::layer) {
      list.push_back(std::move(unit));
      continue;
    }
    std::string_view module;
    for (const StorageId id : unit.storages) {
      if (id == unit.storages.front() || module_of(id) != module)
        list.push_back({unit.label, unit.phase, {}, 0});
      module = module_of(id);
      list.back().storages.push_back(id);
      list.back().bytes += graph.storage(id).bytes;
    }
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

PlaceRule parse_place_rule(std::string_view text) {
  const std::size_t at = text.rfind('=');
  if (at == std::string_view::npos || at == 0)
    throw Error(ErrorCode::usage,
                fmt::format("'{}' is no EXPR=PLACE, such as name:*experts*=host", safe_display(text, 80)));
  return {std::string(text.substr(0, at)), find_home(text.substr(at + 1))};
}

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
  // device and host keep room for the largest piece that is still to be placed: it may have to pass through
  std::vector<std::uint64_t> reserve(list.size());
  std::uint64_t largest = 0;
  for (std::size_t i = list.size(); i-- > 0;) reserve[i] = largest = std::max(largest, list[i].bytes);
  const std::array<std::uint64_t, 2> room = {device_bytes, host_bytes.value_or(UINT64_MAX)};
  std::array<std::uint64_t, 2> used = {};
  std::size_t home = 0;
  const auto fits = [&](std::size_t i) {
    return room[home] >= reserve[i] && used[home] + list[i].bytes <= room[home] - reserve[i];
  };
  for (std::size_t i = 0; i < list.size(); ++i) {
    while (home < room.size() && !fits(i)) ++home;
    put(placement, list[i], static_cast<Home>(home));
    if (home < room.size()) used[home] += list[i].bytes;
  }
  return placement;
}

}  // namespace loadline
