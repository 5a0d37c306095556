// Experts of a mixture whose weights a framework fuses into one tensor on load.
#pragma once

#include "core/graph/meta_graph.h"

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace loadline {

// One fused tensor: rows of members by expert, each row the members that are concatenated (gate and up; or
// down alone). All members of a column have the same bytes and lie whole in their storages.
struct ExpertGroup {
  std::string label;                // "model.layers.0.mlp.experts.gate_up_proj"
  std::vector<StorageId> storages;  // experts times columns, expert by expert
  std::size_t columns = 1;
  std::uint64_t bytes = 0;

  std::size_t experts() const { return storages.size() / columns; }
  StorageId member(std::size_t expert, std::size_t column) const {
    return storages[expert * columns + column];
  }
};

// Groups of at least two experts among `order`, by their first member in it. Names say what belongs together:
// "experts.N.gate_proj" or "w1" with "up_proj" or "w3", "down_proj" or "w2" alone.
std::vector<ExpertGroup> expert_groups(const MetaGraph& graph, std::span<const StorageId> order);

}  // namespace loadline
