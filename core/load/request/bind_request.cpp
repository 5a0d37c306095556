// Looks up the names in a request and derives placement, budgets and rates.
#include "core/load/request/bind_request.h"

#include "core/base/error.h"
#include "core/base/text.h"
#include "core/forward/family/settings.h"
#include "core/forward/model/expected_tensors.h"
#include "core/forward/model/known_models.h"
#include "core/load/request/casts.h"
#include "core/load/request/load_options.h"

#include <algorithm>
#include <array>
#include <utility>

#include <fmt/core.h>
#include <fmt/ranges.h>

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

// What accelerate takes of one device and of the host: 90 % of each. Where they share their memory, it sees
// that memory twice.
MemoryMap map_within(const LoadMemory& memory) {
  const auto most_of = [](std::uint64_t bytes) { return bytes / 10 * 9; };
  const bool unified = memory.kind == plan::MemoryKind::unified;
  const std::optional<std::uint64_t> device = memory.budget.device || !unified ? memory.budget.device
                                                                               : memory.budget.unified,
                                     host = unified ? memory.budget.unified : memory.budget.host;
  if (!device)
    throw Error(
        ErrorCode::usage,
        "the automatic map 'auto' takes its sizes from the device: state a target or a device budget");
  return {most_of(*device), host ? std::optional(most_of(*host)) : std::nullopt};
}

Placement bind_placement(const graph::MetaGraph& graph, const LoadRequest& request,
                         const LoadMemory& memory) {
  if (request.gpu_layers) return place_gpu_layers(graph, *request.gpu_layers);
  if (request.auto_map) {
    const MemoryMap map = request.auto_map->by_budget ? map_within(memory) : *request.auto_map;
    return place_automatically(graph, map.device, map.host, request.cast);
  }
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
  return {.name = name, .row = nullptr, .listed = environment.own_order};
}

// The request with the target's options that it leaves at their defaults.
LoadRequest with_target_options(LoadRequest request, const std::optional<Target>& target) {
  if (!target) return request;
  const LoadRequest defaults;
  for (const auto& [id, value] : target->options)
    if (same_option(*find_load_option(id), request, defaults)) set_load_option(request, id, value);
  return request;
}

// What a verdict depends on beyond the request: whether the model is whole, and whether all is understood
// that its weights follow from.
void judge_model(BoundRequest& bound, const graph::MetaGraph& graph, const LoadEnvironment& environment) {
  const auto error = std::ranges::find(graph.notes, graph::Severity::error, &graph::Note::severity);
  if (error != graph.notes.end()) bound.incomplete = error->text;
  if (!bound.judged()) return;
  const auto assets = environment.assets ? environment.assets : forward::built_in_assets();
  const auto claims =
      environment.claims
          ? environment.claims->get()
          : std::make_shared<const forward::ModelClaims>(forward::model_claims(graph, *assets));
  if (bound.incomplete.empty()) bound.incomplete = forward::lacking_text(graph, *claims);
  // of files the sizes are known, of a configuration alone they follow from its settings
  if (graph.format == "config") bound.unaccounted = forward::settings_text(claims->unaccounted);
}

std::string counts_instead(std::string_view budget, std::uint64_t bytes) {
  return fmt::format("the {} budget given counts instead: {}", budget, format_bytes(bytes));
}

// Takes the reserve off the budget that decides.
void take_reserve(LoadMemory& memory, const Reserve& reserve) {
  auto& budget = memory.deciding_budget();
  if (!budget) return;
  const std::uint64_t taken = reserve.of(*budget);
  if (taken >= *budget)
    throw Error(ErrorCode::usage, "a reserve of {} leaves nothing of {}", format_bytes(taken),
                format_bytes(*budget));
  *budget -= taken;
  memory.reserved = taken;
  if (memory.kind == plan::MemoryKind::unified && memory.budget.device)
    memory.budget.device = std::min(*memory.budget.device, *budget);
  memory.notes.push_back(
      fmt::format("{} reserved for the system, {} left", format_bytes(taken), format_bytes(*budget)));
}

}  // namespace

bool BoundRequest::judged() const {
  const Budget& budget = memory.budget;
  return budget.device || budget.host || budget.unified || budget.committed || request.require_peak;
}

Budget BoundRequest::limits(bool on_host) const {
  if (!request.require_peak) return memory.budget;
  LoadMemory limited = memory;
  auto& limit = judges_host(on_host) ? limited.budget.host : limited.deciding_budget();
  limit = std::min(limit.value_or(UINT64_MAX), *request.require_peak);
  return limited.budget;
}

std::optional<graph::DType> BoundRequest::cast_of(const Method& method) const {
  if (request.cast || request.prepack || method.traits.own_type == OwnType::stored) return request.cast;
  return method.traits.own_type == OwnType::f32 ? own_types.f32 : own_types.configured;
}

std::optional<BoundRequest> as_called(const graph::MetaGraph& graph, const Method& method,
                                      const BoundRequest& bound) {
  const std::optional<graph::DType> cast = bound.cast_of(method);
  const bool to_host = method.traits.host_only && !graph.storages.empty() && bound.placement.all_on_device();
  if (cast == bound.request.cast && !to_host) return std::nullopt;
  BoundRequest own = bound;
  if (to_host) own.placement.homes.assign(graph.storages.size(), Home::host);
  own.request.cast = cast;
  if (own.placement.map)
    own.placement = place_automatically(graph, own.placement.map->device, own.placement.map->host, cast);
  return own;
}

// --- Which methods a model is compared with.

namespace {

struct OpenedKind {
  std::uint16_t bit;
  std::array<std::string_view, 2> formats;  // ids of importers
  std::string_view title;
};
constexpr auto kKinds =
    std::to_array<OpenedKind>({{opened::kSafetensors, {"safetensors"}, "safetensors"},
                               {opened::kPyTorch, {"torch"}, "PyTorch"},
                               {opened::kOldPyTorch, {"torch_legacy"}, "PyTorch before 1.6"},
                               {opened::kTorchExport, {"pt2"}, "torch.export"},
                               {opened::kGguf, {"gguf"}, "GGUF"},
                               {opened::kExecuTorch, {"pte"}, "ExecuTorch (.pte)"},
                               {opened::kExecuTorchTensors, {"ptd"}, "ExecuTorch tensors (.ptd)"},
                               {opened::kLiteRt, {"tflite"}, "LiteRT"},
                               {opened::kNumpy, {"npz", "npy"}, "numpy"},
                               {opened::kOnnx, {"onnx"}, "ONNX"},
                               {opened::kNoFile, {"config"}, "a configuration alone"}});

}  // namespace

std::uint16_t file_kind(const graph::MetaGraph& graph) {
  if (graph.format.empty()) return opened::kNoFile;  // made in memory
  for (const OpenedKind& kind : kKinds)
    if (std::ranges::find(kind.formats, graph.format) != kind.formats.end()) return kind.bit;
  return 0;
}

std::string opened_text(std::uint16_t kinds) {
  std::vector<std::string_view> titles;
  for (const OpenedKind& kind : kKinds)
    if ((kinds & kind.bit) != 0 && kind.bit != opened::kNoFile) titles.push_back(kind.title);
  return kinds == opened::kAll ? "every format" : fmt::format("{}", fmt::join(titles, ", "));
}

bool can_open(const Method& method, const graph::MetaGraph& graph) {
  const std::uint16_t opens = method.traits.opens;
  return opens == opened::kAll || (opens & file_kind(graph)) != 0;
}

std::vector<const Method*> methods_for(const graph::MetaGraph& graph) {
  std::vector<const Method*> found;
  for (const Method& method : methods())
    if (can_open(method, graph)) found.push_back(&method);
  return found;
}

std::vector<const Method*> find_methods(const std::vector<std::string>& ids) {
  std::vector<const Method*> found;
  for (const std::string& id : ids_of(ids, methods())) found.push_back(&find_method(id));
  for (const Method& method : methods())
    if (ids.empty() && method.common) found.push_back(&method);
  return found;
}

std::vector<const Method*> find_methods(const std::vector<std::string>& ids, const graph::MetaGraph& graph) {
  std::vector<const Method*> found = find_methods(ids);
  std::erase_if(found, [&](const Method* method) {
    if (can_open(*method, graph)) return false;
    if (std::ranges::find(ids, method->id) != ids.end())
      throw Error(ErrorCode::unsupported, "the method {} opens {} files, not this model's format{}",
                  method->id, opened_text(method->traits.opens),
                  graph.format.empty() ? "" : ": " + graph.format);
    return true;
  });
  return found;
}

std::string unopened_text(const graph::MetaGraph& graph) {
  const std::size_t others = methods().size() - methods_for(graph).size();
  if (others == 0) return "";
  return file_kind(graph) == opened::kNoFile
             ? fmt::format("{} cannot start from a configuration alone", counted(others, "method"))
             : fmt::format("{} cannot open {} files", counted(others, "method"),
                           opened_text(file_kind(graph)));
}

std::vector<std::string> order_names(const std::vector<std::string>& names) {
  return ids_of(names, orders());
}

LoadMemory bind_memory(const LoadRequest& request, std::span<const Target> targets) {
  LoadMemory memory;
  if (!request.target.empty()) memory.target = find_target(targets, request.target);
  memory.kind = request.memory  ? *request.memory
                : memory.target ? memory.target->memory
                                : plan::MemoryKind::discrete;
  LoadRequest whole = with_target_options(request, memory.target);
  whole.memory = memory.kind;
  check_request(whole);
  if (memory.target) memory.budget = target_budget(*memory.target, memory.kind);
  const bool unified = memory.kind == plan::MemoryKind::unified;
  if (request.device_budget) {
    if (memory.target) memory.notes.push_back(counts_instead("device", *request.device_budget));
    if (unified)
      memory.budget = {.unified = request.device_budget};
    else
      memory.budget.device = request.device_budget;
  }
  if (request.host_budget) {
    if (memory.budget.host) memory.notes.push_back(counts_instead("host", *request.host_budget));
    memory.budget.host = request.host_budget;
  }
  memory.budget.committed = request.commit_limit;
  memory.budget.pages_may_stay = unified && whole.mapped_pages == MappedPages::anonymous;
  // the target's own reserve applies to the memory in its data sheet, not to a device budget from the request
  if (whole.reserve && (request.reserve || !request.device_budget)) take_reserve(memory, *whole.reserve);
  return memory;
}

void leave_out_unasked(std::vector<const Method*>& methods, const LoadRequest& request) {
  const forward::Training usual, &training = request.forward.training;
  const bool adapters = training.rank != usual.rank || training.targets != usual.targets;
  const bool places = !request.place.empty() || request.gpu_layers ||
                      std::ranges::all_of(methods, [](const Method* one) { return one->traits.host_only; });
  std::erase_if(methods, [&](const Method* method) {
    const MethodTraits& traits = method->traits;
    const bool unasked = (traits.adapts && !adapters) || (traits.host_only && !traits.adapts && !places);
    return unasked && std::ranges::find(request.methods, method->id) == request.methods.end();
  });
}

BoundRequest bind_request(const graph::MetaGraph& graph, const LoadRequest& request, LoadMemory memory,
                          const LoadEnvironment& environment) {
  BoundRequest bound;
  bound.request = with_target_options(request, memory.target);
  // a target's reserve is one of its own memory
  if (request.device_budget && !request.reserve) bound.request.reserve.reset();
  bound.methods = find_methods(request.methods, graph);
  leave_out_unasked(bound.methods, request);
  bound.memory = std::move(memory);
  bound.rates = bind_rates(request.rates, environment.measured_rates);
  bound.placement = bind_placement(graph, request, bound.memory);
  // advice may name other methods
  const bool casts = std::ranges::any_of(
      bound.methods, [](const Method* method) { return method->traits.own_type != OwnType::stored; });
  if (casts || bound.judged()) bound.own_types = own_types(graph);
  bound.spaces = plan::deciding_spaces(bound.memory.kind);
  bound.costs = bound.machine_costs();
  if (bound.memory.target) bound.costs = target_costs(*bound.memory.target, bound.costs);
  for (const std::string& name : order_names(request.orders))
    bound.orders.push_back(bind_order(graph, name, environment));
  judge_model(bound, graph, environment);
  return bound;
}

BoundRequest bind_request(const graph::MetaGraph& graph, const LoadRequest& request,
                          const LoadEnvironment& environment) {
  return bind_request(graph, request, bind_memory(request, environment.targets), environment);
}

}  // namespace loadline::load
