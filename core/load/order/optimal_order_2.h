// Finds the load order with the lowest peak of a method, over the sum of some spaces.
//
// The method's plan is cut into phases with one turn per storage, or per shard for methods that take whole
// files (turns.h, shards.h). If the turns do not depend on the order, two bounds hold for every order: each
// phase's peak by Johnson's rule, and the levels between phases. Phases may want different orders, so the
// greatest bound is not always reached. Candidates are the rule's orders for the highest phases (ties keep
// file order) and the orders of the table.
#pragma once

#include "core/base/tasks.h"
#include "core/load/request/method.h"

#include <cstdint>
#include <optional>

namespace loadline {

struct OptimalOrder {
  StorageOrder order;
  // Peak of the load alone, over LoadInputs::spaces. Absent if the method is order_free: file order is then
  // optimal, and no plan is made.
  std::optional<std::uint64_t> peak = {};
  // True if no order has a lower peak. Proven in three cases: the method is order_free; or the peak equals
  // the level at the end of the load, which is the same in every order; or the peak equals the greatest bound
  // and the turns do not depend on the order. The last is tested with plans in file order and shuffled (below
  // 1,000 storages also reversed and rotated), and no buffer may collect several tensors (Method::waits). If
  // false, the order is the best candidate. The proof covers requested bytes only, not the bytes that an
  // allocator model reserves (LoadRequest::allocator), which budgets are checked against.
  bool proven = false;
};

// The candidate with the lowest peak over LoadInputs::spaces; file order if none is lower, because then the
// reads stay sequential. Among equal peaks, the order that departs from file order least often, then the
// earlier candidate. O(n log n) and a handful of plans. Throws Error{cancelled}. Unless the method is
// order_free, also throws as make_plan() does, and Error{limit} for a load of 2^62 bytes or more.
OptimalOrder optimal_order(const MetaGraph& graph, const Method& method, const LoadInputs& inputs,
                           const Progress& progress = Progress());

// The sequence of storages for this method: from the table's order if it depends on the graph alone, else the
// optimal order.
StorageOrder make_order(const MetaGraph& graph, const Order& order, const Method& method,
                        const LoadInputs& inputs, const Progress& progress = Progress());

}  // namespace loadline
