// Single changes of every kind that a method supports, and pairs of them.
#include "core/base/checked_arithmetic.h"
#include "core/base/error.h"
#include "core/base/text.h"
#include "core/graph/names/tensor_names.h"
#include "core/load/answer/advice.h"
#include "core/load/request/casts.h"
#include "core/load/request/load_options.h"
#include "core/load/request/model_parts.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <set>

#include <fmt/core.h>

namespace loadline::load {
namespace {

constexpr std::uint64_t kMiB = 1 << 20;

// Round figures are easier to type: a large size is rounded down to a whole MiB.
std::uint64_t rounded(std::uint64_t bytes) { return bytes >= 16 * kMiB ? bytes / kMiB * kMiB : bytes; }

std::string size_text(std::uint64_t bytes) { return print_option(OptionKind::bytes, bytes); }

// Fractions of `now`, each once, down to `least`.
std::vector<std::uint64_t> smaller(std::uint64_t now, std::initializer_list<std::uint64_t> divisors,
                                   std::uint64_t least) {
  std::vector<std::uint64_t> list;
  for (const std::uint64_t divisor : divisors) {
    const std::uint64_t bytes = rounded(now / divisor);
    if (bytes >= least && bytes < now && (list.empty() || list.back() != bytes)) list.push_back(bytes);
  }
  return list;
}

bool can_do(const Method& method, const AdviceCandidate& load, bool placed) {
  return (!load.request.cast || can_cast_to(method, *load.request.cast)) &&
         (!placed || method.traits.offloads) && supports_placement(method, load.request);
}

Change method_change(const Method& method, bool streamed_before) {
  const bool streams = method.traits.streams && !streamed_before;
  return {streams ? ChangeKind::streaming : ChangeKind::method, 0,
          fmt::format("method {}{}", method.id, streams ? ", where nothing stays on the device" : "")};
}

bool same_order(const OrderChoice& a, const OrderChoice& b) {
  return a.row == b.row && (a.row != nullptr || a.name == b.name);
}

AdviceCandidate with(const AdviceCandidate& base, Change change) {
  AdviceCandidate next = base;
  next.changes.push_back(std::move(change));
  std::ranges::stable_sort(next.changes, [](const Change& a, const Change& b) { return a.kind > b.kind; });
  return next;
}

bool has(const AdviceCandidate& load, ChangeKind kind) {
  return std::ranges::any_of(load.changes, [&](const Change& change) { return change.kind == kind; });
}

}  // namespace

bool takes_less(const AdviceCandidate& a, const AdviceCandidate& b) {
  const auto less = [](const AdviceCandidate& x, const AdviceCandidate& y, auto member) {
    return std::ranges::lexicographical_compare(x.changes, y.changes, {}, member, member);
  };
  if (less(a, b, &Change::kind)) return true;
  return !less(b, a, &Change::kind) && less(a, b, &Change::degree);
}

AdviceSpace::AdviceSpace(const graph::MetaGraph& graph, const AdviceRequest& request)
    : graph_(graph),
      request_(request),
      budget_(request.bound.limits()),
      weights_(graph::storage_bytes(graph)) {
  for (const Order& order : orders()) orders_.push_back({std::string(order.id), &order, {}});
  std::map<graph::FileId, std::uint64_t> files;
  for (const graph::StorageId id : used_storages(graph)) {
    const graph::Storage& storage = graph.storage(id);
    largest_file_ = std::max(largest_file_, files[storage.file] += storage.bytes);
  }
  all_stream_ =
      std::ranges::all_of(request.rows, [&](std::size_t row) { return request.method(row).traits.streams; });
  // the pass needs the same bytes whatever is cast or placed
  const std::uint64_t without = device_lower_bound(graph, request.bound);
  pass_ = device_lower_bound(graph, request.bound, request.pass) - without;
  find_runtimes();
  find_types();
  find_placements();
  std::vector<const PlacementChoice*> places = {nullptr};
  for (const auto& placement : placements_) places.push_back(placement.get());
  for (const PlacementChoice* const place : places) {
    bounds_[{request.bound.request.cast, place}] = lower_bound(request.bound.request.cast, place);
    for (const auto own : {request.bound.own_types.configured, request.bound.own_types.f32})
      if (own) bounds_[{own, place}] = lower_bound(own, place);
    for (const auto& type : types_) bounds_[{type.first, place}] = lower_bound(type.first, place);
  }
}

const Placement& AdviceSpace::chosen(const PlacementChoice* placement) const {
  return placement != nullptr ? placement->placement : request_.bound.placement;
}

std::uint64_t AdviceSpace::lower_bound(const std::optional<graph::DType>& cast,
                                       const PlacementChoice* placement) const {
  BoundRequest bound = request_.bound;
  bound.request.cast = cast;
  bound.placement = chosen(placement);
  // places nothing on the device instead of remaking the map: that would take longer than the bound saves
  if (bound.placement.map && cast != request_.bound.request.cast)
    bound.placement.homes.assign(graph_.storages.size(), Home::host);
  return device_lower_bound(graph_, bound) + (computes_on_host(bound.placement) ? 0 : pass_);
}

std::uint64_t AdviceSpace::device_bound(const AdviceCandidate& candidate) const {
  if (candidate.streams() || candidate.method->traits.host_only) return 0;
  BoundRequest changed = {.request = candidate.request, .own_types = request_.bound.own_types};
  return bounds_.at({changed.cast_of(*candidate.method), candidate.placement});
}

// A user who names methods has chosen what runs them: a script for PyTorch cannot become a loader in C++.
void AdviceSpace::find_runtimes() {
  const std::vector<std::string>& named = request_.bound.request.methods;
  const bool any = named.empty() || std::ranges::find(named, "all") != named.end();
  for (const std::size_t row : request_.rows) runtimes_.insert(request_.method(row).traits.runtime);
  if (any || runtimes_.contains(Runtime::own) || runtimes_.contains(Runtime::any))
    runtimes_ = {Runtime::torch, Runtime::llama_cpp, Runtime::executorch, Runtime::own};
  if (runtimes_.contains(Runtime::torch)) runtimes_.insert(Runtime::any);
}

void AdviceSpace::find_types() {
  if (request_.bound.request.prepack) return;  // which chooses the type already
  BoundRequest bound = request_.bound;
  if (bound.placement.map) bound.placement = {};  // an automatic map depends on the type
  const auto landed = [&](const std::optional<graph::DType>& cast) -> std::uint64_t {
    bound.request.cast = cast;
    try {
      return device_lower_bound(graph_, bound);
    } catch (const Error& error) {
      if (error.code() != ErrorCode::limit) throw;
      return UINT64_MAX;  // too large in this type
    }
  };
  const auto asked = request_.bound.request.cast;
  landed_[asked] = landed(asked);
  for (const auto own : {request_.bound.own_types.configured, request_.bound.own_types.f32})
    if (own) landed_[own] = landed(own);
  for (const graph::DType type :
       {graph::DType::bf16, graph::DType::f16, graph::DType::q8_0, graph::DType::q4_0}) {
    const std::uint64_t bytes = landed(type);
    const bool possible = runtimes_.contains(Runtime::own) || !graph::dtype_info(type).torch.empty();
    const bool saves = std::ranges::any_of(landed_, [&](const auto& row) { return bytes < row.second; });
    if (possible && saves) types_.emplace_back(type, bytes);
  }
}

// Only a budget that covers the device says how much must leave it.
void AdviceSpace::find_placements() {
  if (places_weights(request_.bound.request)) place_everything();
  if (!budget_.device && !budget_.unified) return;
  const std::uint64_t whole =
      std::min(budget_.device.value_or(UINT64_MAX), budget_.unified.value_or(UINT64_MAX));
  BoundRequest nothing = request_.bound;
  nothing.placement.homes.assign(graph_.storages.size(), Home::host);
  const std::uint64_t beside = device_lower_bound(graph_, nothing) + pass_;
  const std::uint64_t room = whole > beside ? whole - beside : 0;  // 0 may still give the nearest load
  place_layers(room);
  place_map(room);
  place_experts();
}

void AdviceSpace::keep(PlacementChoice choice) {
  for (const graph::StorageId id : used_storages(graph_)) {
    const Home home = choice.placement.of(id);
    const std::uint64_t bytes = home == Home::device ? 0 : graph_.storage(id).bytes;
    choice.off_device = capped_add(choice.off_device, home == Home::disk ? capped_add(bytes, bytes) : bytes);
  }
  const Placement& asked = request_.bound.placement;
  if (choice.placement.homes == asked.homes && choice.placement.twins == asked.twins) return;
  for (const auto& known : placements_)
    if (known->placement.homes == choice.placement.homes && known->placement.twins == choice.placement.twins)
      return;
  if (choice.off_device > 0)
    placements_.push_back(std::make_unique<const PlacementChoice>(std::move(choice)));
}

// Takes the placement that was asked for back.
void AdviceSpace::place_everything() {
  for (const LoadOption& option : load_options())
    if (option.terms.excludes == "placement" && !same_option(option, request_.bound.request, LoadRequest()))
      placements_.push_back(std::make_unique<const PlacementChoice>(
          PlacementChoice{.option = option.id, .value = "none", .text = "no placement of weights"}));
}

// llama.cpp's layer offload: as many layers as fit, and fewer.
void AdviceSpace::place_layers(std::uint64_t room) {
  const StorageOrder used = used_storages(graph_);
  std::vector<std::uint64_t> layers;
  for (const LoadUnit& unit : load_units(graph_, used))
    if (unit.phase == Phase::layer) layers.push_back(unit.bytes);
  // llama.cpp's first offloaded layer is final norm and head, with an embedding that doubles as the head
  const Placement behind = place_gpu_layers(graph_, 1);
  std::uint64_t most = 0;
  std::uint64_t placed = 0;
  for (const graph::StorageId id : used)
    if (behind.of(id) == Home::device) placed += graph_.storage(id).bytes;
  for (std::size_t i = layers.size() + 1; i-- > 0 && placed <= room; ++most)
    if (i > 0) placed += layers[i - 1];
  std::set<std::uint64_t> counts = {0, most / 4, most / 2, most * 3 / 4, most};
  if (most > 0) counts.insert(most - 1);
  for (auto count = counts.rbegin(); count != counts.rend(); ++count)
    keep({.placement = place_gpu_layers(graph_, *count),
          .option = "gpu_layers",
          .value = fmt::format("{}", *count),
          .text = fmt::format("{} on the device, the rest on the host", counted(*count, "layer"))});
}

// accelerate's automatic map: the device filled to fractions of `room`, the host as far as its budget allows.
void AdviceSpace::place_map(std::uint64_t room) {
  for (const std::uint64_t eighths : {8u, 7u, 6u, 4u, 2u, 1u}) {
    const std::uint64_t device = rounded(room / 8 * eighths);
    std::vector<std::optional<std::uint64_t>> hosts;
    if (budget_.host || budget_.unified) {
      std::uint64_t host = budget_.host.value_or(UINT64_MAX);
      if (budget_.unified) host = std::min(host, *budget_.unified - device);
      for (const std::uint64_t part : {host, host / 8 * 7, host / 2, std::uint64_t{0}})
        hosts.emplace_back(rounded(part));
    } else {
      hosts.emplace_back();
    }
    for (const auto& host : hosts) {
      const std::string rest = !host ? "the rest on the host"
                               : *host == 0
                                   ? "the rest on disk"
                                   : fmt::format("{} on the host, the rest on disk", format_bytes(*host));
      keep({.placement = place_automatically(graph_, device, host, request_.bound.request.cast),
            .option = "auto_map",
            .value = size_text(device) + (host ? "," + size_text(*host) : ""),
            .text = fmt::format("at most {} of the weights on the device, {}", format_bytes(device), rest)});
    }
  }
}

// The experts of the first layers on the host: a token uses few of them, and the rest of a layer stays on
// the device.
void AdviceSpace::place_experts() {
  constexpr std::array<std::string_view, 2> kPatterns = {"*.experts.*", "*_exps.*"};
  for (const std::string_view pattern : kPatterns) {
    std::set<std::uint64_t> layers;
    for (const graph::Tensor& tensor : graph_.tensors)
      if (const auto layer = graph::layer_number(tensor.name.view());
          layer && graph::glob_matches(pattern, tensor.name.view()))
        layers.insert(*layer);
    std::set<std::size_t> counts = {layers.size(), layers.size() * 3 / 4, layers.size() / 2,
                                    layers.size() / 4};
    counts.erase(0);
    for (const std::size_t count : counts) {
      const std::uint64_t last = *std::next(layers.begin(), static_cast<std::ptrdiff_t>(count) - 1);
      const bool all = count == layers.size();
      PlaceRule rule{fmt::format("name:{}", pattern), Home::host};
      if (!all) rule.filter += fmt::format(" layer:0-{}", last);
      keep({.placement = place_by_rules(graph_, {rule}),
            .option = "place",
            .value = print_place_rule(rule),
            .text = all ? "all experts on the host"
                        : fmt::format("the experts of layers 0 to {} on the host", last)});
    }
  }
}

AdviceCandidate AdviceSpace::asked(std::size_t row) const {
  return {.method = &request_.method(row), .order = &request_.order(row), .request = request_.bound.request};
}

void AdviceSpace::add_orders(const AdviceCandidate& base, std::vector<AdviceCandidate>& list) const {
  if (has(base, ChangeKind::order)) return;
  for (const OrderChoice& order : orders_) {
    if (same_order(order, *base.order)) continue;
    AdviceCandidate next = with(base, {ChangeKind::order, 0, fmt::format("order {}", order.name)});
    next.order = &order;
    list.push_back(std::move(next));
  }
}

// Smaller buffers: the ring, the Run:ai streamer's buffer, ExecuTorch's flush threshold.
void AdviceSpace::add_buffers(const AdviceCandidate& base, std::vector<AdviceCandidate>& list) const {
  constexpr std::uint64_t kLeastSlot = 64 << 10;
  if (has(base, ChangeKind::buffer)) return;
  const MethodTraits& traits = base.method->traits;
  const auto ring = [&](std::uint64_t bytes, std::uint32_t slots) {
    list.push_back(
        with(base, {ChangeKind::buffer, base.request.staging_bytes - bytes,
                    fmt::format("a ring of {} in {}", format_bytes(bytes), counted(slots, "slot"))}));
    list.back().request.staging_bytes = bytes;
    list.back().request.slots = slots;
  };
  if (traits.ring) {
    for (const std::uint64_t bytes :
         smaller(base.request.staging_bytes, {4, 16, 64}, kLeastSlot * base.request.slots))
      ring(bytes, base.request.slots);
    // fewer slots of the same size
    for (const std::uint32_t part : {2u, 4u})
      if (base.request.slots % part == 0) ring(base.request.staging_bytes / part, base.request.slots / part);
  }
  if (traits.limit) {
    std::vector<std::uint64_t> limits =
        smaller(std::min(base.request.runai_buffer, weights_), {2, 4, 16, UINT64_MAX}, 0);
    if (budget_.host && *budget_.host < base.request.runai_buffer) limits.push_back(rounded(*budget_.host));
    for (const std::uint64_t bytes : limits) {
      list.push_back(with(base, {ChangeKind::buffer, base.request.runai_buffer - bytes,
                                 bytes == 0 ? "the least Run:ai buffer"
                                            : fmt::format("a Run:ai buffer of {}", format_bytes(bytes))}));
      list.back().request.runai_buffer = bytes;
    }
  }
  if (traits.flushes)
    for (const std::uint64_t bytes : smaller(base.request.flush_bytes, {4, 16, UINT64_MAX}, 0)) {
      list.push_back(with(base, {ChangeKind::buffer, base.request.flush_bytes - bytes,
                                 bytes == 0 ? "a flush after every tensor"
                                            : fmt::format("a flush at {}", format_bytes(bytes))}));
      list.back().request.flush_bytes = bytes;
    }
}

void AdviceSpace::add_shards(const AdviceCandidate& base, std::vector<AdviceCandidate>& list) const {
  if (has(base, ChangeKind::shards) || !base.method->traits.shards) return;
  const std::uint64_t now =
      base.request.shard_bytes == 0 ? largest_file_ : std::min(base.request.shard_bytes, largest_file_);
  for (const std::uint64_t bytes : smaller(now, {2, 4, 16}, 1)) {
    list.push_back(with(
        base, {ChangeKind::shards, now - bytes, fmt::format("shards of at most {}", format_bytes(bytes))}));
    list.back().request.shard_bytes = bytes;
  }
}

void AdviceSpace::add_methods(const AdviceCandidate& base, std::vector<AdviceCandidate>& list) const {
  if (has(base, ChangeKind::method) || has(base, ChangeKind::streaming)) return;
  const bool placed = !chosen(base.placement).all_on_device();
  for (const Method& method : methods()) {
    // a requested method is a starting point of its own
    const bool asked_for =
        std::ranges::any_of(request_.rows, [&](std::size_t row) { return &request_.method(row) == &method; });
    // a load to the device is not to become one to the host, nor one without an adapter
    const MethodTraits &traits = method.traits, &now = base.method->traits;
    if ((traits.host_only && !now.host_only) || traits.adapts != now.adapts) continue;
    if (asked_for || !runtimes_.contains(traits.runtime) || !can_open(method, graph_) ||
        !can_do(method, base, placed))
      continue;
    list.push_back(with(base, method_change(method, base.streams())));
    list.back().method = &method;
  }
}

void AdviceSpace::add_types(const AdviceCandidate& base, std::vector<AdviceCandidate>& list) const {
  if (has(base, ChangeKind::type) || !base.method->traits.casts) return;
  BoundRequest asked = {.request = base.request, .own_types = request_.bound.own_types};
  const auto now = landed_.find(asked.cast_of(*base.method));
  for (const auto& [type, bytes] : types_) {
    if (!can_cast_to(*base.method, type) || now == landed_.end() || bytes >= now->second) continue;
    list.push_back(with(base, {ChangeKind::type, now->second - bytes,
                               fmt::format("cast to {}", graph::dtype_info(type).name)}));
    list.back().request.cast = type;
  }
}

void AdviceSpace::add_placements(const AdviceCandidate& base, std::vector<AdviceCandidate>& list) const {
  if (has(base, ChangeKind::off_device)) return;
  for (const auto& choice : placements_) {
    if (choice->value != "none" && !supports(*base.method, *find_load_option(choice->option))) continue;
    list.push_back(with(base, {ChangeKind::off_device, choice->off_device, choice->text}));
    list.back().placement = choice.get();
    set_load_option(list.back().request, choice->option, choice->value);
  }
}

std::vector<AdviceCandidate> AdviceSpace::changed(const AdviceCandidate& base) const {
  std::vector<AdviceCandidate> list;
  add_orders(base, list);
  add_buffers(base, list);
  add_shards(base, list);
  add_methods(base, list);
  add_types(base, list);
  add_placements(base, list);
  return list;
}

std::vector<AdviceCandidate> AdviceSpace::changed_again(const std::vector<AdviceCandidate>& ones) const {
  std::vector<AdviceCandidate> list;
  for (const AdviceCandidate& one : ones) {
    std::vector<AdviceCandidate> more = changed(one);
    std::move(more.begin(), more.end(), std::back_inserter(list));
  }
  return list;
}

std::vector<AdviceCandidate> AdviceSpace::candidates(AdviceStage stage) const {
  const bool streaming = stage == AdviceStage::streaming || stage == AdviceStage::streaming_and_another;
  const bool two = stage == AdviceStage::two_changes || stage == AdviceStage::streaming_and_another;
  std::vector<AdviceCandidate> list;
  for (const std::size_t row : request_.rows) {
    AdviceCandidate base = asked(row);
    // streaming was requested beside methods that do not stream: it stays the last resort
    if (base.streams() && !all_stream_) base = with(base, method_change(*base.method, false));
    std::vector<AdviceCandidate> ones = changed(base);
    if (has(base, ChangeKind::streaming)) ones = {base};
    if (two) ones = changed_again(ones);
    std::move(ones.begin(), ones.end(), std::back_inserter(list));
  }
  std::erase_if(list,
                [&](const AdviceCandidate& load) { return has(load, ChangeKind::streaming) != streaming; });
  std::ranges::stable_sort(list, takes_less);
  std::set<std::vector<std::pair<std::string_view, std::string>>> seen;
  for (const std::size_t row : request_.rows)
    if (!request_.method(row).traits.streams || all_stream_) seen.insert(settings(asked(row)));
  std::erase_if(list, [&](const AdviceCandidate& load) { return !seen.insert(settings(load)).second; });
  return list;
}

BoundRequest AdviceSpace::bind(const AdviceCandidate& candidate) const {
  BoundRequest bound = request_.bound;
  bound.request = candidate.request;
  bound.placement = chosen(candidate.placement);
  // a method that ignores placements needs no new map
  if (const auto map = bound.placement.map;
      map && candidate.request.cast != request_.bound.request.cast && candidate.method->traits.offloads)
    bound.placement = place_automatically(graph_, map->device, map->host, candidate.request.cast);
  return bound;
}

std::vector<std::pair<std::string_view, std::string>> AdviceSpace::settings(
    const AdviceCandidate& candidate) const {
  std::vector<std::pair<std::string_view, std::string>> list = {{"method", std::string(candidate.method->id)},
                                                                {"order", candidate.order->name}};
  for (const LoadOption& option : load_options())
    if (!same_option(option, candidate.request, request_.bound.request))
      list.emplace_back(option.id, load_option_text(candidate.request, option));
  return list;
}

}  // namespace loadline::load
