// How each storage's turn changes the memory level, and the order with the lowest peak.
#pragma once

#include "core/base/progress.h"
#include "core/load/request/bind_request.h"
#include "core/load/request/method.h"
#include "core/load/request/model_parts.h"
#include "core/plan/plan.h"
#include "core/plan/timeline.h"

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace loadline::load {

// --- How each storage's turn in a load changes the memory level, and the order of turns with the lowest
// peak.
//
// In a phase of a load every storage has one turn: it raises the level by at most a (its hump) and leaves it
// changed by n (its net). The peak of an order is base + max_i(sum_{j<i} n_j + a_i). The lowest peak comes
// from turns with n <= 0 by increasing a, followed by turns with n > 0 by decreasing a - n. Proof by exchange
// of neighbors: i before j peaks at max(a_i, n_i + a_j), and the turns after the two begin at the same level
// either way. Case 1, n_i <= 0 < n_j, or both n <= 0 and a_i <= a_j: n_i + a_j <= a_j, and a_i <= n_j + a_i
// or a_i <= a_j, so i first is no worse. Case 2, both n > 0 and a_i - n_i >= a_j - n_j: n_i + a_j <= n_j +
// a_i and a_i <= n_j + a_i, so i first is no worse. The rule is a total order on these cases, so swaps of
// neighbors lead from any order to it without ever raising the peak. It is Johnson's rule for a flow shop of
// two machines with times a and a - n (S. M. Johnson, Optimal two- and three-stage production schedules with
// setup times included, 1954).

// The effect of one turn, in bytes relative to the level at its start.
struct Turn {
  graph::StorageId storage{};
  std::int64_t hump = 0;  // highest level during the turn; at least 0 and at least net
  std::int64_t net = 0;   // level at its end
  bool operator==(const Turn&) const = default;
};

// Sorts turns by the rule above. Ties keep their order.
void sort_turns(std::vector<Turn>& turns);
// max_i(sum_{j<i} n_j + a_i), at least 0.
std::int64_t peak_of(std::span<const Turn> turns);

// A stretch of a plan: one turn for each of some storages. Without turns: allocations that belong to no
// storage (a ring, activations).
struct TurnPhase {
  std::int64_t base = 0;  // level at its start
  std::int64_t hump = 0;  // highest level relative to base, at least 0
  std::vector<Turn> turns = {};
};

// A plan's allocations and frees in the spaces of `mask`, cut into phases as late as possible: before a
// storage that already had its turn in the phase, and around allocations that belong to no storage.
struct TurnCut {
  std::vector<TurnPhase> phases = {};
  std::int64_t final_level = 0;
  std::int64_t peak = 0;
};
// Makes a plan and gives its steps to the taker.
using PlanMaker = std::function<void(plan::StepTaker&)>;
// Throws Error{limit} for a plan that allocates as many bytes in all; below that, no sum here overflows.
inline constexpr std::uint64_t kMostOrdered = std::uint64_t{1} << 62;
TurnCut cut_turns(const PlanMaker& make, std::size_t storages, unsigned mask);

// For loads that keep groups of storages together: one turn per group. Its hump is the least peak that the
// rule reaches inside the group. `groups` gives for each storage the representative of its group.
struct GroupCut {
  TurnCut cut = {};
  std::vector<TurnCut> within = {};  // cut inside each turn, in plan order
};
GroupCut cut_groups(const PlanMaker& make, std::span<const graph::StorageId> groups, unsigned mask);

// Whether two cuts have the same phases with the same turns, in any order within a phase.
bool same_turns(const TurnCut& a, const TurnCut& b, std::size_t storages);
bool same_turns(const GroupCut& a, const GroupCut& b, std::size_t storages);
// Whether the turns of every phase are in the sequence of `order`.
bool follows(const TurnCut& cut, const StorageOrder& order, std::size_t storages);

// The lowest peak over all orders of the turns within their phases.
std::int64_t least_peak(const TurnCut& cut);
// The peak if every phase takes its turns in this order.
std::int64_t peak_in(const TurnCut& cut, const StorageOrder& order, std::size_t storages);

// --- Finds the load order with the lowest peak of a method, over the sum of some spaces.
//
// The method's plan is cut into phases with one turn per storage, or per shard for methods that take whole
// files. If the turns do not depend on the order, two bounds hold for every order: each
// phase's peak by Johnson's rule, and the levels between phases. Phases may want different orders, so the
// greatest bound is not always reached. Candidates are the rule's orders for the highest phases (ties keep
// file order) and the orders of the table.

struct OptimalOrder {
  StorageOrder order;
  // Peak of the load alone, over BoundRequest::spaces. Absent if the method is order_free: file order is then
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

// The orders of the table that the graph alone gives, each made when first asked for and kept. May be used
// from several threads; the graph must outlive it.
class TableOrders {
 public:
  explicit TableOrders(const graph::MetaGraph& graph);
  ~TableOrders();
  const StorageOrder& of(const Order& row) const;  // whose `make` is not null
  const StorageOrder& file() const { return of(find_order("file")); }
  // All of them, in the order of the table.
  std::vector<const StorageOrder*> all() const;

 private:
  struct Kept;
  const graph::MetaGraph& graph_;
  const std::unique_ptr<Kept[]> kept_;  // by row
};

// The candidate with the lowest peak over BoundRequest::spaces; file order if none is lower, because then the
// reads stay sequential. Among equal peaks, the order that departs from file order least often, then the
// earlier candidate. O(n log n) and a handful of plans. Throws Error{canceled}. Unless the method is
// order_free, also throws as make_plan() does, and Error{limit} for a load of 2^62 bytes or more.
OptimalOrder optimal_order(const graph::MetaGraph& graph, const Method& method, const BoundRequest& bound,
                           const Progress& progress = Progress());
OptimalOrder optimal_order(const graph::MetaGraph& graph, const Method& method, const BoundRequest& bound,
                           const Progress& progress, const TableOrders& table);
// Whether optimal_order() would prove file order optimal from its plan alone. `timeline`: of that plan, the
// load in file order without a forward pass.
bool proves_file_order(const BoundRequest& bound, const plan::Plan& plan, const plan::Timeline& timeline);

// The sequence of storages for this method: from the table's order if it depends on the graph alone, else the
// optimal order.
StorageOrder make_order(const graph::MetaGraph& graph, const Order& order, const Method& method,
                        const BoundRequest& bound, const Progress& progress = Progress());

// The sequence of storages that the choice gives for this method.
StorageOrder make_order(const graph::MetaGraph& graph, const OrderChoice& choice, const Method& method,
                        const BoundRequest& bound, const Progress& progress = Progress());

// --- The order of a model's weights in a file that is to be written.

// The storages in the order `name`: a row of orders(), or a file of tensor names (bind_request.h). `optimal`
// is the order with the lowest peak on the device for a load that takes the tensors as they follow in the
// file and holds each twice for a moment: the method `cast_on_device`. Throws as choose_order() and
// optimal_order().
StorageOrder written_order(const graph::MetaGraph& graph, const std::string& name,
                           const Progress& progress = Progress());

}  // namespace loadline::load
