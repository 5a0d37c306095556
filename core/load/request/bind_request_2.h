// Resolves a request for one model: looks up methods, orders, placements, budgets and rates.
#pragma once

#include "core/forward/model/known_models.h"
#include "core/load/answer/projection.h"
#include "core/load/request/bind_request.h"
#include "core/load/request/order_file.h"
#include "core/load/request/rates.h"

#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

namespace loadline {

// What a front end supplies besides the model and the request.
struct LoadEnvironment {
  std::shared_ptr<const ForwardAssets> assets = nullptr;  // null: the built-in ones
  std::span<const Target> targets = built_in_targets();
  std::optional<MeasuredRates> measured_rates = {};         // of this machine
  std::shared_ptr<const StorageOrder> own_order = nullptr;  // the order that kOwnOrder names
};

// The name of an order that the user arranged by hand.
inline constexpr std::string_view kOwnOrder = "custom";

struct BoundRequest {
  LoadInputs inputs = {};
  std::vector<const Method*> methods = {};  // without repeats
  std::vector<OrderChoice> orders = {};
  MemoryKind memory = MemoryKind::discrete;
  Budget budget = {};
  std::optional<Target> target = {};
  std::vector<std::string> notes = {};      // sentences on which budgets apply
  std::optional<MeasuredRates> rates = {};  // absent: assumed rates

  const LoadRequest& request() const { return inputs.request; }
  // Costs on this machine; inputs.costs are those on the target.
  CostModel machine_costs() const { return rates ? rates->costs() : CostModel(); }
  // Whether a budget or a required peak is set.
  bool judged() const;
};

// The memory kind and budgets of a request and its target, without a model. Throws Error{usage}.
struct BoundMemory {
  LoadRequest request = {};  // with the target's own options filled in
  MemoryKind kind = MemoryKind::discrete;
  Budget budget = {};
  std::optional<Target> target = {};
  std::vector<std::string> notes = {};
};
BoundMemory bind_memory(const LoadRequest& request, std::span<const Target> targets);

// Throws Error{usage} for unknown ids, and as check_request(), place_by_rules() and read_rates() do.
BoundRequest bind_request(const MetaGraph& graph, const LoadRequest& request,
                          const LoadEnvironment& environment);

// Removes repeated ids; the first one counts. "all" stands for every row of the table. Throws Error{usage}.
std::vector<const Method*> find_methods(const std::vector<std::string>& ids);
std::vector<std::string> order_names(const std::vector<std::string>& names);

}  // namespace loadline
