// Load orders: the sequence in which a load visits the storages of a model.
#pragma once

#include "core/graph/meta_graph.h"

#include <span>
#include <string_view>
#include <vector>

namespace loadline {

// A permutation of all storages that a tensor uses.
using StorageOrder = std::vector<StorageId>;

struct Order {
  std::string_view id;
  std::string_view summary;
  // Null if the order depends on the method; make_order() (optimal_order.h) handles both kinds.
  StorageOrder (*make)(const MetaGraph& graph);
};

std::span<const Order> orders();
// Accepts "offset" as another name of "file". Throws Error{usage} that lists the ids.
const Order& find_order(std::string_view id);

}  // namespace loadline
