// Random homes for the weights of a model, such as a method supports.
#pragma once

#include "core/load/methods/framework_sizes.h"
#include "core/load/request/method.h"

#include <random>

namespace loadline::testing {

// Experts that may become one tensor go to the same place.
inline Placement random_placement(std::mt19937_64& random, const MetaGraph& graph, const Method& method) {
  Placement placement;
  for (std::size_t i = 0; i < graph.storages.size(); ++i)
    placement.homes.push_back(static_cast<Home>(random() % (method.traits.disk ? 3 : 2)));
  for (const ExpertGroup& group : expert_groups(graph, find_order("file").make(graph)))
    for (const StorageId id : group.storages)
      placement.homes[index(id)] = placement.homes[index(group.storages.front())];
  return placement;
}

}  // namespace loadline::testing
