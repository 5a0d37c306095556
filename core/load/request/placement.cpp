// Placement by rules, by layers counted from the end, and by accelerate's automatic map.
#include "core/base/checked_arithmetic.h"
#include "core/base/error.h"
#include "core/base/option.h"
#include "core/base/text.h"
#include "core/graph/names/tensor_names.h"
#include "core/load/request/casts.h"
#include "core/load/request/model_parts.h"
#include "core/load/request/request.h"

#include <algorithm>
#include <array>
#include <functional>
#include <map>
#include <numeric>
#include <string>

#include <fmt/core.h>

namespace loadline::load {
namespace {

constexpr std::array<std::string_view, 3> kHomes = {"device", "host", "disk"};

void put(Placement& placement, const LoadUnit& unit, Home place) {
  for (const graph::StorageId id : unit.storages) placement.homes[graph::index(id)] = place;
}

// A unit that accelerate moves as one: a numbered layer, or one module outside the layers.
struct Piece {
  std::vector<graph::StorageId> storages = {};
  std::uint64_t bytes = 0;     // of all its storages
  std::uint64_t largest = 0;   // largest of the modules joined by shared weights
  std::uint64_t partners = 0;  // the same without the first of these modules
};

std::string piece_of(std::string_view name) {
  const auto [phase, stack, number] = forward_key(name);
  return phase == Phase::layer ? fmt::format("layer {} {}", stack, number)
                               : std::string(name.substr(0, name.rfind('.')));
}

using PiecePlaces = std::map<std::string, std::size_t, std::less<>>;

// Joins all pieces that are linked by shared weights into the first of them; the others become empty.
void join_tied(const graph::MetaGraph& graph, const PiecePlaces& places, std::vector<Piece>& list) {
  std::vector<std::size_t> leads(list.size());
  std::iota(leads.begin(), leads.end(), std::size_t{0});
  const auto lead_of = [&](std::size_t at) {
    while (leads[at] != at) at = leads[at] = leads[leads[at]];
    return at;
  };
  const auto owners = graph::first_owner(graph);
  for (const std::vector<graph::TensorId>& group : graph::tied_groups(graph)) {
    // the first tensor of the storage always has a piece, but need not be in this group
    const graph::TensorId owner = *owners[graph::index(graph.tensor(group.front()).storage)];
    const std::size_t first = places.find(piece_of(graph.tensor(owner).name))->second;
    for (const graph::TensorId id : group) {
      const auto found = places.find(piece_of(graph.tensor(id).name));
      if (found == places.end()) continue;  // a module without storages of its own
      const auto [low, high] = std::minmax({lead_of(first), lead_of(found->second)});
      leads[high] = low;
    }
  }
  for (std::size_t i = 0; i < list.size(); ++i) {
    if (lead_of(i) == i) continue;
    Piece& lead = list[lead_of(i)];
    lead.storages.insert(lead.storages.end(), list[i].storages.begin(), list[i].storages.end());
    lead.bytes = add_loaded(lead.bytes, list[i].bytes);
    lead.partners = std::max(lead.partners, list[i].largest);
    lead.largest = std::max(lead.largest, list[i].largest);
    list[i] = {};
  }
}

// The pieces in forward order; pieces that share a weight are joined at the position of the first.
std::vector<Piece> pieces(const graph::MetaGraph& graph, const std::vector<std::uint64_t>& sizes) {
  const auto owners = graph::first_owner(graph);
  std::vector<Piece> list;
  PiecePlaces places;
  for (const LoadUnit& unit : load_units(graph, used_storages(graph)))
    for (const graph::StorageId id : unit.storages) {
      const auto [place, fresh] =
          places.try_emplace(piece_of(graph.tensor(*owners[graph::index(id)]).name), list.size());
      if (fresh) list.emplace_back();
      Piece& piece = list[place->second];
      piece.storages.push_back(id);
      piece.largest = piece.bytes = add_loaded(piece.bytes, sizes[graph::index(id)]);
    }
  join_tied(graph, places, list);
  std::erase_if(list, [](const Piece& piece) { return piece.storages.empty(); });
  return list;
}

}  // namespace

Home find_home(std::string_view id) {
  const auto found = std::ranges::find(kHomes, id);
  if (found == kHomes.end())
    throw Error(ErrorCode::usage, "no place '{}'; there are: device, host, disk", safe_display(id, 40));
  return static_cast<Home>(found - kHomes.begin());
}

std::string_view home_id(Home place) { return kHomes[static_cast<std::size_t>(place)]; }

PlaceRule parse_place_rule(std::string_view text) {
  const std::size_t at = text.rfind('=');
  if (at == std::string_view::npos || at == 0)
    throw Error(ErrorCode::usage, "'{}' is not EXPR=PLACE, such as name:*experts*=host",
                safe_display(text, 80));
  return {std::string(text.substr(0, at)), find_home(text.substr(at + 1))};
}
std::string print_place_rule(const PlaceRule& rule) {
  return fmt::format("{}={}", rule.filter, home_id(rule.place));
}

bool Placement::all_on_device() const {
  return std::ranges::all_of(homes, [](Home place) { return place == Home::device; });
}

bool Placement::leaves_on_disk() const { return std::ranges::find(homes, Home::disk) != homes.end(); }

bool computes_on_host(const Placement& placement) {
  return !placement.homes.empty() &&
         std::ranges::find(placement.homes, Home::device) == placement.homes.end();
}

bool Placement::has_twin(graph::StorageId id) const { return std::ranges::find(twins, id) != twins.end(); }

Placement place_by_rules(const graph::MetaGraph& graph, const std::vector<PlaceRule>& rules) {
  Placement placement{std::vector<Home>(graph.storages.size(), Home::device)};
  const auto owners = graph::first_owner(graph);
  std::vector<bool> decided(graph.storages.size(), false);
  for (const PlaceRule& rule : rules) {
    const std::vector<graph::TensorId> chosen = graph::TensorFilter(rule.filter).select(graph);
    if (chosen.empty())
      throw Error(ErrorCode::usage, "no tensor matches '{}'", safe_display(rule.filter, 80));
    for (const graph::TensorId id : chosen) {
      const std::size_t at = graph::index(graph.tensor(id).storage);
      if (owners[at] != id || decided[at]) continue;
      placement.homes[at] = rule.place;
      decided[at] = true;
    }
  }
  return placement;
}

Placement place_gpu_layers(const graph::MetaGraph& graph, std::uint64_t layers) {
  Placement placement{std::vector<Home>(graph.storages.size(), Home::host)};
  const std::vector<LoadUnit> units = load_units(graph, used_storages(graph));
  if (layers == 0) return placement;
  for (const LoadUnit& unit : units)
    if (unit.phase == Phase::final_norm || unit.phase == Phase::head) put(placement, unit, Home::device);
  if (const auto shared = shared_embedding(graph)) {
    placement.homes[graph::index(*shared)] = Home::device;
    placement.twins.push_back(*shared);
  }
  std::uint64_t left = layers - 1;
  for (auto unit = units.rbegin(); unit != units.rend() && left > 0; ++unit) {
    if (unit->phase != Phase::layer) continue;
    put(placement, *unit, Home::device);
    --left;
  }
  return placement;
}

MemoryMap parse_memory_map(std::string_view text) {
  if (text == "auto") return {.by_budget = true};
  const std::size_t comma = std::min(text.find(','), text.size());
  MemoryMap map{parse_size(text.substr(0, comma), "size on the device")};
  if (comma < text.size()) map.host = parse_size(text.substr(comma + 1), "size on the host");
  return map;
}
std::string print_memory_map(const MemoryMap& map) {
  if (map.by_budget) return "auto";
  const auto size = [](std::uint64_t bytes) { return print_option(OptionKind::bytes, bytes); };
  return size(map.device) + (map.host ? "," + size(*map.host) : "");
}

Placement place_automatically(const graph::MetaGraph& graph, std::uint64_t device_bytes,
                              std::optional<std::uint64_t> host_bytes, std::optional<graph::DType> cast) {
  Placement placement = {.homes = std::vector<Home>(graph.storages.size(), Home::disk),
                         .map = MemoryMap{device_bytes, host_bytes}};
  const std::vector<Piece> list = pieces(graph, loaded_bytes(graph, cast));
  std::vector<std::uint64_t> reserve(list.size());
  std::uint64_t largest = 0;
  for (std::size_t i = list.size(); i-- > 0; largest = std::max(largest, list[i].largest))
    reserve[i] = std::max(largest, list[i].partners);
  const std::array<std::uint64_t, 2> room = {device_bytes, host_bytes.value_or(UINT64_MAX)};
  std::array<std::uint64_t, 2> used = {};
  std::size_t home = 0;
  const auto fits = [&](std::size_t i) {
    if (room[home] < reserve[i]) return false;
    const auto all = checked_add(used[home], list[i].bytes);
    return all && *all <= room[home] - reserve[i];
  };
  for (std::size_t i = 0; i < list.size(); ++i) {
    while (home < room.size() && !fits(i)) ++home;
    for (const graph::StorageId id : list[i].storages)
      placement.homes[graph::index(id)] = static_cast<Home>(home);
    if (home < room.size()) used[home] += list[i].bytes;
  }
  return placement;
}

}  // namespace loadline::load
