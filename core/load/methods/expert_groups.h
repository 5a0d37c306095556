// Expert weights of a mixture-of-experts model that a framework fuses into one tensor on load.
#pragma once

#include "core/graph/meta_graph.h"

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace loadline {

// One fused tensor, as a table: one row per expert, one column per weight that is concatenated (gate and up;
// or down alone). All members of a column have the same size, and each fills its whole storage.
struct ExpertGroup {
  std::string label;                // "model.layers.0.mlp.experts.gate_up_proj"
  std::vector<StorageId> storages;  // experts * columns entries, expert by expert
  std::size_t columns = 1;
  std::uint64_t bytes = 0;

  std::size_t experts() const { return storages.size() / columns; }
  StorageId member(std::size_t expert, std::size_t column) const {
    return storages[expert * columns + column];
  }
};

// Finds the groups of at least two experts in `order`, sorted by the position of each group's first member.
// Members are recognised by name: "experts.N.gate_proj" or "w1" pairs with "up_proj" or "w3"; "down_proj" or
// "w2" stands alone.
std::vector<ExpertGroup> expert_groups(const MetaGraph& graph, std::span<const StorageId> order);

}  // namespace loadline
