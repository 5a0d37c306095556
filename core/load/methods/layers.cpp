// Layer streaming: weights come to the device, are used once and are freed.
#include "core/load/methods/programs.h"
#include "core/load/request/model_parts.h"

#include <algorithm>
#include <utility>

namespace loadline {
namespace {

// Units in forward order. A weight that a later unit uses again, under another name, is loaded again with it.
std::vector<LoadUnit> units_of(const MethodBuilder& b) {
  const MetaGraph& graph = b.graph();
  std::vector<LoadUnit> units = load_units(graph, b.order());
  for (const std::vector<TensorId>& group : tied_groups(graph)) {
    const StorageId storage = graph.tensor(group.front()).storage;
    if (b.bytes(storage) == 0) continue;
    for (std::size_t i = 1; i < group.size(); ++i) {
      const auto key = phase_of(graph.tensor(group[i]).name);
      if (key != Phase::head && key != Phase::embedding) continue;  // inside a layer it is still loaded
      const auto unit = std::ranges::find_if(units, [&](const LoadUnit& u) { return u.phase == key; });
      if (unit == units.end()) {
        const auto place = std::ranges::find_if(units, [&](const LoadUnit& u) { return u.phase > key; });
        units.insert(place, {key == Phase::head ? "head" : "embedding", key, {storage}, b.bytes(storage)});
      } else if (std::ranges::find(unit->storages, storage) == unit->storages.end()) {
        unit->storages.push_back(storage);
        unit->bytes += b.bytes(storage);
      }
    }
  }
  return units;
}

std::vector<BlockId> read_unit(MethodBuilder& b, const LoadUnit& unit) {
  std::vector<BlockId> read;
  for (const StorageId id : unit.storages) read.push_back(b.load(Space::host, id));
  return read;
}

Plan stream(MethodBuilder& b, bool prefetch) {
  b.activations();
  const std::vector<LoadUnit> units = units_of(b);
  std::vector<BlockId> ahead;
  for (std::size_t i = 0; i < units.size(); ++i) {
    const std::vector<BlockId> read = i > 0 && prefetch ? std::exchange(ahead, {}) : read_unit(b, units[i]);
    if (prefetch && i + 1 < units.size()) ahead = read_unit(b, units[i + 1]);
    std::vector<BlockId> used;
    for (std::size_t k = 0; k < read.size(); ++k) {
      used.push_back(b.make(Space::device, units[i].storages[k]));
      b.move(used.back(), read[k]);
    }
    mark(b.plan(), units[i].label + " runs");
    b.drop_all(used);
    b.drop_all(read);
  }
  return std::move(b.plan());
}

}  // namespace

Plan load_layer_streaming(MethodBuilder& b) { return stream(b, false); }

Plan load_layer_streaming_prefetch(MethodBuilder& b) { return stream(b, true); }

}  // namespace loadline
