// Orders: in which sequence a load visits the storages of a model.
#pragma once

#include "core/graph/meta_graph.h"

#include <span>
#include <string_view>
#include <vector>

namespace loadline {

// A permutation of all storages that some tensor uses.
using StorageOrder = std::vector<StorageId>;

struct Order {
  std::string_view id;
  std::string_view summary;
  // Null where the order depends on the method: use make_order() (optimal_order.h), which knows both kinds.
  StorageOrder (*make)(const MetaGraph& graph);
};

std::span<const Order> orders();
// "offset" is another name of "file". Throws Error{usage} that lists the ids.
const Order& find_order(std::string_view id);

}  // namespace loadline
