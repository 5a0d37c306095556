// Looks up the names in a request and derives placement, budgets and rates.
#include "core/load/request/bind_request.h"

#include "core/base/error.h"
#include "core/base/text.h"
#include "core/load/request/load_options.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

namespace loadline::load {
namespace {

// Each id once, at its first position; "all" stands for every id of the table.
template <typename Row>
std::vector<std::string> ids_of(const std::vector<std::string>& asked, std::span<const Row> table) {
  std::vector<std::string> ids;
  const auto add = [&](std::string_view id) {
    if (std::ranges::find(ids, id) == ids.end()) ids.emplace_back(id);
  };
  for (const std::string& id : asked) {
    if (id != "all")
      add(id);
    else
      for (const Row& row : table) add(row.id);
  }
  return ids;
}

Placement bind_placement(const graph::MetaGraph& graph, const LoadRequest& request) {
  if (request.gpu_layers) return place_gpu_layers(graph, *request.gpu_layers);
  if (request.auto_map)
    return place_automatically(graph, request.auto_map->device, request.auto_map->host, request.cast);
  return request.place.empty() ? Placement() : place_by_rules(graph, request.place);
}

std::optional<MeasuredRates> bind_rates(const std::string& rates,
                                        const std::optional<MeasuredRates>& measured) {
  if (rates.empty()) return measured;
  if (rates == "assumed") return std::nullopt;
  return read_rates(rates);
}

OrderChoice bind_order(const graph::MetaGraph& graph, const std::string& name,
                       const LoadEnvironment& environment) {
  if (name != kOwnOrder || environment.own_order == nullptr) return choose_order(graph, name);
  return {.name = name, .row = nullptr, .listed = *environment.own_order};
}

// Sets the target's options that the request leaves at their defaults.
void add_target_options(LoadRequest& request, const Target& target) {
  const LoadRequest defaults;
  for (const auto& [id, value] : target.options)
    if (same_option(*find_load_option(id), request, defaults)) set_load_option(request, id, value);
}

std::string counts_instead(std::string_view budget, std::uint64_t bytes) {
  return fmt::format("the {} budget given counts instead: {}", budget, format_bytes(bytes));
}

// Takes the reserve off the budget that decides.
void take_reserve(BoundMemory& bound) {
  auto& budget = bound.kind == plan::MemoryKind::unified ? bound.budget.unified : bound.budget.device;
  if (!bound.request.reserve || !budget) return;
  const std::uint64_t taken = bound.request.reserve->of(*budget);
  if (taken >= *budget)
    throw Error(ErrorCode::usage, "a reserve of {} leaves nothing of {}", format_bytes(taken),
                format_bytes(*budget));
  *budget -= taken;
  if (bound.kind == plan::MemoryKind::unified && bound.budget.device)
    bound.budget.device = std::min(*bound.budget.device, *budget);
  bound.notes.push_back(
      fmt::format("{} reserved for the system, {} left", format_bytes(taken), format_bytes(*budget)));
}

}  // namespace

bool BoundRequest::judged() const {
  return budget.device || budget.host || budget.unified || request().require_peak;
}

std::vector<const Method*> find_methods(const std::vector<std::string>& ids) {
  std::vector<const Method*> found;
  for (const std::string& id : ids_of(ids, methods())) found.push_back(&find_method(id));
  for (const Method& method : methods())
    if (ids.empty() && method.common) found.push_back(&method);
  return found;
}

std::vector<std::string> order_names(const std::vector<std::string>& names) {
  return ids_of(names, orders());
}

BoundMemory bind_memory(const LoadRequest& request, std::span<const Target> targets) {
  BoundMemory bound;
  bound.request = request;
  if (!request.target.empty()) bound.target = find_target(targets, request.target);
  if (bound.target) add_target_options(bound.request, *bound.target);
  bound.kind = request.memory ? *request.memory
               : bound.target ? bound.target->memory
                              : plan::MemoryKind::discrete;
  if (bound.target) bound.budget = target_budget(*bound.target, bound.kind);
  const bool unified = bound.kind == plan::MemoryKind::unified;
  if (unified && request.host_budget)
    throw Error(ErrorCode::usage,
                "unified memory has one budget: the device budget covers the host's share as well");
  if (request.device_budget) {
    if (bound.target) bound.notes.push_back(counts_instead("device", *request.device_budget));
    if (unified)
      bound.budget = {.unified = request.device_budget};
    else
      bound.budget.device = request.device_budget;
  }
  if (request.host_budget) {
    if (bound.budget.host) bound.notes.push_back(counts_instead("host", *request.host_budget));
    bound.budget.host = request.host_budget;
  }
  bound.budget.pages_may_stay = unified && bound.request.mapped_pages == MappedPages::anonymous;
  // the target's own reserve applies to the memory in its data sheet, not to a device budget from the request
  if (request.reserve || !request.device_budget) take_reserve(bound);
  return bound;
}

BoundRequest bind_request(const graph::MetaGraph& graph, const LoadRequest& request,
                          const LoadEnvironment& environment) {
  check_request(request);
  BoundRequest bound;
  bound.methods = find_methods(request.methods);
  BoundMemory memory = bind_memory(request, environment.targets);
  bound.memory = memory.kind;
  bound.budget = memory.budget;
  bound.target = std::move(memory.target);
  bound.notes = std::move(memory.notes);
  bound.rates = bind_rates(request.rates, environment.measured_rates);
  LoadInputs& inputs = bound.inputs;
  inputs.request = std::move(memory.request);
  inputs.placement = bind_placement(graph, request);
  inputs.spaces = plan::deciding_spaces(bound.memory);
  if (bound.rates) inputs.costs = bound.rates->costs(inputs.costs);
  if (bound.target) inputs.costs = target_costs(*bound.target, inputs.costs);
  for (const std::string& name : order_names(request.orders))
    bound.orders.push_back(bind_order(graph, name, environment));
  return bound;
}

}  // namespace loadline::load
