// What a request means for one model: methods, orders, placements, budgets and rates looked up.
#pragma once

#include "core/forward/assets.h"
#include "core/load/order_file.h"
#include "core/load/projection.h"
#include "core/load/rates.h"
#include "core/load/targets.h"

#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

namespace loadline {

// What a front end knows beside the model and the request.
struct LoadEnvironment {
  std::shared_ptr<const ForwardAssets> assets = nullptr;  // null: those built in
  std::span<const Target> targets = built_in_targets();
  std::optional<MeasuredRates> measured_rates = {};         // of this machine
  std::shared_ptr<const StorageOrder> own_order = nullptr;  // what the order kOwnOrder stands for
};

// The name of an order that somebody arranged by hand.
inline constexpr std::string_view kOwnOrder = "custom";

struct BoundRequest {
  LoadInputs inputs = {};
  std::vector<const Method*> methods = {};  // each once
  std::vector<OrderChoice> orders = {};
  MemoryKind memory = MemoryKind::discrete;
  Budget budget = {};
  std::optional<Target> target = {};
  std::vector<std::string> notes = {};      // what counts of target and budgets, in sentences
  std::optional<MeasuredRates> rates = {};  // absent: assumed ones

  const LoadRequest& request() const { return inputs.request; }
  // Whether there is anything to fit into.
  bool judged() const;
};

// What the target and the request say of memory, without a model. Throws Error{usage}.
struct BoundMemory {
  LoadRequest request = {};  // with the target's own options
  MemoryKind kind = MemoryKind::discrete;
  Budget budget = {};
  std::optional<Target> target = {};
  std::vector<std::string> notes = {};
};
BoundMemory bind_memory(const LoadRequest& request, std::span<const Target> targets);

// Throws Error{usage} for ids that there are not and as check_request(), place_by_rules() and read_rates().
BoundRequest bind_request(const MetaGraph& graph, const LoadRequest& request,
                          const LoadEnvironment& environment);

// Each id once, where it comes first; "all" stands for every row of the table. Throws Error{usage}.
std::vector<const Method*> find_methods(const std::vector<std::string>& ids);
std::vector<std::string> order_names(const std::vector<std::string>& names);

}  // namespace loadline
