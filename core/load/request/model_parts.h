// Splits a model into the units that a forward pass uses one after the other: embeddings, layers, norm, head.
#pragma once

#include "core/graph/meta_graph.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

namespace loadline {

// Where in a forward pass a tensor is first used, judged by its name.
enum class Phase : std::uint8_t { embedding, layer, rest, final_norm, head };
Phase phase_of(std::string_view name);

// Sort key that puts names in forward order: by phase, encoders and vision towers before the stack that
// attends to them, layers by number.
std::tuple<Phase, int, std::uint64_t> forward_key(std::string_view name);

struct LoadUnit {
  std::string label;  // "layer 3", "embedding", "head"
  Phase phase = Phase::rest;
  std::vector<StorageId> storages = {};  // in the order given
  std::uint64_t bytes = 0;
};

// The storages that some tensor uses, in the order of the graph.
std::vector<StorageId> used_storages(const MetaGraph& graph);

// The units in forward order. `order` lists storages of this graph that a tensor uses, each once; a unit
// keeps its storages in that order. A storage belongs to the unit of its first tensor.
std::vector<LoadUnit> load_units(const MetaGraph& graph, const std::vector<StorageId>& order);

}  // namespace loadline
