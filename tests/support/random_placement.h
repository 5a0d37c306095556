// Random homes for the weights of a model, such as a method supports.
#pragma once

#include "core/load/methods/framework_sizes.h"
#include "core/load/request/method.h"

#include <random>

namespace loadline::testing {

// Experts that may become one tensor go to the same place.
inline load::Placement random_placement(std::mt19937_64& random, const graph::MetaGraph& graph,
                                        const load::Method& method) {
  load::Placement placement;
  for (std::size_t i = 0; i < graph.storages.size(); ++i)
    placement.homes.push_back(static_cast<load::Home>(random() % (method.traits.disk ? 3 : 2)));
  for (const load::ExpertGroup& group : load::expert_groups(graph, load::find_order("file").make(graph)))
    for (const graph::StorageId id : group.storages)
      placement.homes[graph::index(id)] = placement.homes[graph::index(group.storages.front())];
  return placement;
}

}  // namespace loadline::testing
