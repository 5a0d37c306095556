// What each storage's turn in a load does to a level of memory, and the order of turns that keeps it lowest.
//
// In a phase of a load every storage has one turn: it lifts the level by at most a (its hump) and leaves it
// changed by n. The peak of an order is base + max_i(sum_{j<i} n_j + a_i). Turns with n <= 0 by increasing a,
// then those with n > 0 by decreasing a - n, give the least. Proof: the peak of two neighbours is
// max(a_i, n_i + a_j), and what comes behind them begins at the same level either way. Where n_i <= 0 < n_j,
// or both sink and a_i <= a_j, n_i + a_j <= a_j, and a_i is at most n_j + a_i or a_j: i first is no worse.
// Where both lift and a_i - n_i >= a_j - n_j, n_i + a_j <= n_j + a_i and a_i <= n_j + a_i: the same. The rule
// is a total order on these cases, so that swapping neighbours leads from any order to it without ever
// rising. It is Johnson's for a flow shop of two machines with times a and a - n (S. M. Johnson, Optimal two-
// and three-stage production schedules with setup times included, 1954).
#pragma once

#include "core/load/orders.h"
#include "core/plan/plan.h"

#include <cstdint>
#include <span>
#include <vector>

namespace loadline {

// Bytes over the level where the turn begins.
struct Turn {
  StorageId storage{};
  std::int64_t hump = 0;  // the highest level in it, at least 0 and at least net
  std::int64_t net = 0;   // where it ends
  bool operator==(const Turn&) const = default;
};

// The rule. Ties keep their order.
void sort_turns(std::vector<Turn>& turns);
// max_i(sum_{j<i} n_j + a_i), at least 0.
std::int64_t peak_of(std::span<const Turn> turns);

// A stretch of a plan: one turn each of some storages; or, without turns, what no storage asks for (a ring,
// activations).
struct TurnPhase {
  std::int64_t base = 0;  // the level where it begins
  std::int64_t hump = 0;  // the highest level in it, over the base, at least 0
  std::vector<Turn> turns = {};
};

// The allocations and frees of a plan in the spaces of `mask`, cut into phases as late as can be: where a
// storage comes that had its turn, and around what belongs to no storage.
struct TurnCut {
  std::vector<TurnPhase> phases = {};
  std::int64_t final_level = 0;
  std::int64_t peak = 0;
};
// Throws Error{limit} for a plan that allocates 2^62 bytes or more in all: below, no sum here overflows.
TurnCut cut_turns(const Plan& plan, std::size_t storages, unsigned mask);

// For loads that keep groups of storages together: a turn is a group's, and its hump the least that the rule
// reaches within it. `groups` names for each storage the one that stands for its group.
struct GroupCut {
  TurnCut cut = {};
  std::vector<TurnCut> within = {};  // of each turn, in the order of the plan
};
GroupCut cut_groups(const Plan& plan, std::span<const StorageId> groups, unsigned mask);

// Whether two cuts have the same phases with the same turns, in whatever order within a phase.
bool same_turns(const TurnCut& a, const TurnCut& b, std::size_t storages);
bool same_turns(const GroupCut& a, const GroupCut& b, std::size_t storages);
// Whether the turns of every phase come as in `order`.
bool follows(const TurnCut& cut, const StorageOrder& order, std::size_t storages);

// No order of the turns within the phases has a lower peak.
std::int64_t least_peak(const TurnCut& cut);
// The peak when all phases take their turns in this order.
std::int64_t peak_in(const TurnCut& cut, const StorageOrder& order, std::size_t storages);

}  // namespace loadline
