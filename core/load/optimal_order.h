// The order in which a method's peak is least, over the sum of some spaces.
//
// The method's plan is cut into phases of one turn per storage, or per shard for methods that take files
// whole (turns.h, shards.h). Where the turns do not depend on the order, each phase's peak by Johnson's rule
// is a bound that no order goes below, and so are the levels between phases; phases may want different
// orders, so that the greatest of these bounds is not always reached. Candidates are the rule's orders for
// the highest phases, in which turns that it does not tell apart keep file order, and the orders of the
// table.
#pragma once

#include "core/base/progress.h"
#include "core/load/methods.h"

#include <cstdint>
#include <optional>

namespace loadline {

struct OptimalOrder {
  StorageOrder order;
  // Of the load alone, over LoadInputs::spaces. Absent where the method is order_free: file order is known
  // to be one of the best without any plan.
  std::optional<std::uint64_t> peak = {};
  // No order has a lower peak: the method is order_free; or it is what the load leaves in the end, the same
  // in every order; or it equals the greatest bound, and the plans in file order and shuffled (of less than
  // 1,000 storages also reversed and rotated) have the same turns, with no buffer that waits for others
  // (Method::waits). Else it is the best of the candidates. All of this is about the bytes that blocks ask
  // for: of what an allocator model reserves for them (LoadRequest::allocator), which verdicts go by, it says
  // nothing.
  bool proven = false;
};

// File order, unless a candidate has a lower peak over options.spaces: without gain the reads stay
// sequential. Of those with the lowest peak the one that leaves file order least often; among equals the
// earlier one. O(n log n) and a handful of plans. Throws Error{cancelled}; unless the method is order_free
// also what make_plan() does, and Error{limit} for a load of 2^62 bytes.
OptimalOrder optimal_order(const MetaGraph& graph, const Method& method, const LoadInputs& inputs,
                           const Progress& progress = Progress());

// What `order` is for this method: an order of the table that depends on nothing but the graph, or the
// optimal one.
StorageOrder make_order(const MetaGraph& graph, const Order& order, const Method& method,
                        const LoadInputs& inputs, const Progress& progress = Progress());

}  // namespace loadline
