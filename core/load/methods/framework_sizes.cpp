// llama.cpp's repacked matrices and vocabulary, Run:ai's buffers, fused experts.
#include "core/load/methods/framework_sizes.h"

#include "core/base/checked_arithmetic.h"
#include "core/base/option.h"
#include "core/base/text.h"
#include "core/load/request/model_parts.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <map>
#include <numeric>
#include <optional>
#include <span>
#include <tuple>
#include <utility>

namespace loadline::load {

// --- The table of types that ggml repacks for a CPU.

namespace {

// A matrix is repacked if its rows are a multiple of this; 0: never.
struct TypeRow {
  graph::DType type;
  std::uint64_t x86 = 0;
  std::uint64_t arm = 0;
};
constexpr std::array<TypeRow, 7> kTypes = {{{graph::DType::q4_0, 8, 4},
                                            {graph::DType::q4_k, 8, 8},
                                            {graph::DType::iq4_nl, 8, 4},
                                            {graph::DType::mxfp4, 8, 4},
                                            {graph::DType::q8_0, 0, 4},
                                            {graph::DType::q5_k, 0, 8},
                                            {graph::DType::q6_k, 0, 8}}};

bool has_kernel(const graph::Tensor& tensor, std::optional<CpuRepack> cpu) {
  const std::size_t rank = tensor.shape.size();
  const auto row = std::ranges::find(kTypes, tensor.dtype, &TypeRow::type);
  if (!cpu || row == kTypes.end() || rank < 2 || rank > 3) return false;
  const std::uint64_t multiple = cpu == CpuRepack::x86 ? row->x86 : row->arm;
  return multiple > 0 && tensor.shape[rank - 2] % multiple == 0;
}

std::uint64_t array_count(const graph::MetaGraph& graph, std::string_view key) {
  const graph::MetaValue* const value = graph::find_metadata(graph, key);
  const auto* const array = value == nullptr ? nullptr : std::get_if<graph::MetaArray>(value);
  return array == nullptr ? 0 : array->count;
}

}  // namespace

std::vector<bool> repacked_storages(const graph::MetaGraph& graph, std::optional<CpuRepack> cpu) {
  std::vector<bool> repacked(graph.storages.size(), false);
  if (!cpu) return repacked;
  for (const graph::Tensor& tensor : graph.tensors)
    if (phase_of(tensor.name) != Phase::embedding && has_kernel(tensor, cpu))
      repacked[graph::index(tensor.storage)] = true;
  if (const auto shared = shared_embedding(graph)) repacked[graph::index(*shared)] = false;
  return repacked;
}

std::uint64_t repacked_head(const graph::MetaGraph& graph, std::optional<CpuRepack> cpu) {
  const auto shared = shared_embedding(graph);
  if (!shared) return 0;
  const bool any = std::ranges::any_of(graph.tensors, [&](const graph::Tensor& tensor) {
    return tensor.storage == *shared && has_kernel(tensor, cpu);
  });
  return any ? graph.storage(*shared).bytes : 0;
}

std::uint64_t vocabulary_bytes(const graph::MetaGraph& graph) {
  constexpr std::uint64_t kToken = 243, kMerge = 235;
  const auto tokens = checked_mul(array_count(graph, "tokenizer.ggml.tokens"), kToken);
  const auto merges = checked_mul(array_count(graph, "tokenizer.ggml.merges"), kMerge);
  return tokens && merges ? checked_add(*tokens, *merges).value_or(0) : 0;
}

std::vector<bool> storages_read_by_rows(const graph::MetaGraph& graph) {
  constexpr std::uint64_t kMore = std::uint64_t{4} << 30;
  constexpr std::array<std::string_view, 2> kMarking = {"gemma4", "qwen4exp"};
  std::vector<bool> by_rows(graph.storages.size(), false);
  const std::string* const architecture = graph::find_text(graph, "general.architecture");
  if (architecture == nullptr || std::ranges::find(kMarking, *architecture) == kMarking.end()) return by_rows;
  for (const graph::Tensor& tensor : graph.tensors)
    if (tensor.name.view() == "per_layer_token_embd.weight" && graph.storage(tensor.storage).bytes > kMore)
      by_rows[graph::index(tensor.storage)] = true;
  return by_rows;
}

// --- What onnxruntime packs.

namespace {

// `reordered`: by storage, whether it is in found.reordered.
void find_packed(const graph::MetaGraph& graph, const std::vector<graph::Op>& ops, PackedWeights& found,
                 std::vector<bool>& reordered) {
  for (const graph::Op& op : ops) {
    if (op.arguments.size() < 2 || !op.arguments[1].weight) continue;
    const graph::Tensor& weight = graph.tensor(*op.arguments[1].weight);
    if (weight.dtype != graph::DType::f32) continue;
    const std::size_t at = graph::index(weight.storage);
    if ((op.kind == "MatMul" || op.kind == "Gemm") && weight.shape.size() == 2) found.packed[at] = true;
    if (op.kind != "Conv" || weight.shape.size() != 4) continue;
    if (!reordered[at]) found.reordered.push_back(weight.storage);
    reordered[at] = true;
  }
}

}  // namespace

PackedWeights packed_by_onnxruntime(const graph::MetaGraph& graph) {
  PackedWeights found;
  found.packed.resize(graph.storages.size(), false);
  if (!graph.forward) {
    for (const graph::Tensor& tensor : graph.tensors)
      if (tensor.shape.size() == 2) found.packed[graph::index(tensor.storage)] = true;
    return found;
  }
  std::vector<bool> reordered(graph.storages.size(), false);
  find_packed(graph, graph.forward->ops, found, reordered);
  for (const graph::Body& body : graph.forward->bodies) find_packed(graph, body.ops, found, reordered);
  return found;
}

// --- ExecuTorch's arenas, GGUF files as numbers, peft's adapters.

std::uint64_t planned_bytes(const graph::MetaGraph& graph) {
  std::uint64_t planned = 0;
  for (const graph::MetaEntry& entry : graph.metadata)
    if (const auto* const bytes = std::get_if<std::uint64_t>(&entry.value);
        bytes != nullptr && entry.key.starts_with("execution_plan.") && entry.key.ends_with(".planned"))
      planned = checked_add(planned, *bytes).value_or(planned);
  return planned;
}

std::vector<bool> delegated_storages(const graph::MetaGraph& graph) {
  std::vector<bool> delegated(graph.storages.size(), false);
  for (const graph::Tensor& tensor : graph.tensors)
    if (tensor.dtype == graph::DType::opaque) delegated[graph::index(tensor.storage)] = true;
  return delegated;
}

std::uint64_t python_vocabulary_bytes(const graph::MetaGraph& graph) {
  constexpr std::uint64_t kToken = 3180, kMerge = 2300;
  const auto tokens = checked_mul(array_count(graph, "tokenizer.ggml.tokens"), kToken);
  const auto merges = checked_mul(array_count(graph, "tokenizer.ggml.merges"), kMerge);
  return tokens && merges ? checked_add(*tokens, *merges).value_or(0) : 0;
}

std::vector<std::optional<plan::Cast>> unpacking_casts(const graph::MetaGraph& graph, graph::DType type) {
  std::vector<std::optional<plan::Cast>> casts(graph.storages.size());
  for (const graph::Tensor& tensor : graph.tensors) {
    const std::size_t at = graph::index(tensor.storage);
    const graph::DTypeKind kind = graph::dtype_info(tensor.dtype).kind;
    const plan::Cast cast{tensor.dtype, type};
    if (tensor.dtype != type && (kind == graph::DTypeKind::floating || kind == graph::DTypeKind::block) &&
        plan::cast_bytes(cast, graph.storages[at].bytes))
      casts[at] = cast;
  }
  return casts;
}

std::vector<std::uint64_t> unpacked_bytes(const graph::MetaGraph& graph, graph::DType type) {
  const auto casts = unpacking_casts(graph, type);
  std::vector<std::uint64_t> bytes;
  for (std::size_t i = 0; i < casts.size(); ++i)
    bytes.push_back(casts[i] ? *plan::cast_bytes(*casts[i], graph.storages[i].bytes)
                             : graph.storages[i].bytes);
  return bytes;
}

namespace {

// "model.layers.0.self_attn.q_proj.weight": "q_proj". Empty for what is no weight of a module.
std::string_view layer_name(std::string_view tensor) {
  constexpr std::string_view kWeight = ".weight";
  if (!tensor.ends_with(kWeight)) return {};
  tensor.remove_suffix(kWeight.size());
  return tensor.substr(tensor.rfind('.') + 1);
}

bool has_adapter(const graph::Tensor& tensor, const std::vector<std::string>& targets) {
  const std::string_view name = tensor.name.view(), layer = layer_name(name);
  if (tensor.shape.size() != 2 || layer.empty()) return false;
  if (!targets.empty()) return std::ranges::find(targets, layer) != targets.end();
  return phase_of(name) == Phase::layer && layer != "gate" && layer != "router" &&
         name.find(".experts.") == std::string_view::npos;
}

}  // namespace

std::vector<Adapter> adapters_of(const graph::MetaGraph& graph, const LoadRequest& request) {
  const forward::Training& training = request.forward.training;
  constexpr std::uint64_t kNumber = 4;  // bytes
  // layers in their order, and in each the attention before what follows it, as models declare them
  using Turn = std::tuple<std::tuple<Phase, int, std::uint64_t>, bool>;
  std::vector<std::pair<Turn, const graph::Tensor*>> adapted;
  for (const graph::Tensor& tensor : graph.tensors)
    if (const std::string_view name = tensor.name.view(); has_adapter(tensor, training.targets))
      adapted.push_back({{forward_key(name), name.find("attn") == std::string_view::npos}, &tensor});
  std::ranges::stable_sort(adapted, {}, [](const auto& one) { return one.first; });
  std::vector<Adapter> found;
  std::vector<bool> seen(graph.storages.size(), false);
  for (const auto& [turn, pointer] : adapted) {
    const graph::Tensor& tensor = *pointer;
    if (seen[graph::index(tensor.storage)]) continue;
    seen[graph::index(tensor.storage)] = true;
    const auto sides = checked_add(tensor.shape[0], tensor.shape[1]);
    const auto thin = sides ? checked_mul(*sides, training.rank * kNumber) : std::nullopt;
    const auto product = graph::byte_size(graph::DType::f32, graph::elements(tensor));
    if (thin && product) found.push_back({tensor.storage, *thin, *product});
  }
  return found;
}

// --- The streamer's arithmetic.

namespace {

constexpr std::uint64_t kMostRequests = 18;

std::uint64_t requests_of(std::span<const std::uint64_t> sizes, std::uint64_t most) {
  std::uint64_t count = 0, filled = most;
  for (const std::uint64_t bytes : sizes) {
    if (filled >= most || bytes > most - filled) ++count, filled = 0;
    filled += bytes;
  }
  return count;
}

}  // namespace

RunaiBuffers runai_buffers(std::span<const std::uint64_t> sizes, std::uint64_t limit) {
  std::uint64_t all = 0, largest = 0;
  for (const std::uint64_t bytes : sizes) all += bytes, largest = std::max(largest, bytes);
  if (all == 0) return {};
  const std::uint64_t budget = std::min(limit, all);
  std::uint64_t bytes = std::max(largest, budget / kMostRequests);
  if (all >= limit) return {bytes, std::clamp<std::uint64_t>(budget / bytes, 1, kMostRequests)};
  // the smallest requests of which there are at most 18, and at most an 18th of the limit
  std::uint64_t high = std::max(bytes, limit / kMostRequests);
  while (bytes < high) {
    const std::uint64_t middle = bytes + (high - bytes) / 2;
    if (requests_of(sizes, middle) <= kMostRequests)
      high = middle;
    else
      bytes = middle + 1;
  }
  return {bytes, requests_of(sizes, bytes)};
}

// --- Recognizes experts by their names and groups them.

namespace {

enum class Part { gate, up, down };

struct ExpertName {
  std::string_view prefix;  // up to and including "experts"
  std::uint64_t expert = 0;
  Part part = Part::down;
};

std::optional<Part> part_of(std::string_view module) {
  if (module == "gate_proj" || module == "w1") return Part::gate;
  if (module == "up_proj" || module == "w3") return Part::up;
  if (module == "down_proj" || module == "w2") return Part::down;
  return std::nullopt;
}

// "model.layers.0.block_sparse_moe.experts.3.w1.weight"
std::optional<ExpertName> expert_name(std::string_view name) {
  constexpr std::string_view kExperts = "experts.", kWeight = ".weight";
  const std::size_t at = name.find(kExperts);
  if (at == std::string_view::npos || !name.ends_with(kWeight)) return std::nullopt;
  ExpertName found{.prefix = name.substr(0, at + kExperts.size() - 1)};
  std::string_view rest = name.substr(at + kExperts.size());
  rest.remove_suffix(kWeight.size());
  const char* const end = rest.data() + rest.size();
  const auto number = std::from_chars(rest.data(), end, found.expert);
  if (number.ec != std::errc{} || number.ptr == end || *number.ptr != '.') return std::nullopt;
  const auto part = part_of({number.ptr + 1, static_cast<std::size_t>(end - number.ptr - 1)});
  if (!part) return std::nullopt;
  found.part = *part;
  return found;
}

// Whether the column has a member for each expert 0, 1, 2 ..., all of one type and shape.
using Column = std::map<std::uint64_t, graph::TensorId>;
bool complete(const graph::MetaGraph& graph, const Column& column) {
  if (column.size() < 2 || column.rbegin()->first != column.size() - 1) return false;
  const graph::Tensor& first = graph.tensor(column.begin()->second);
  return std::ranges::all_of(column, [&](const auto& member) {
    const graph::Tensor& tensor = graph.tensor(member.second);
    return tensor.dtype == first.dtype && tensor.shape == first.shape;
  });
}

ExpertGroup group_of(const graph::MetaGraph& graph, std::string label,
                     const std::vector<const Column*>& columns) {
  ExpertGroup group{.label = std::move(label), .storages = {}, .columns = columns.size(), .bytes = 0};
  for (std::uint64_t expert = 0; expert < columns.front()->size(); ++expert)
    for (const Column* column : columns) {
      group.storages.push_back(graph.tensor(column->at(expert)).storage);
      group.bytes += graph.storage(group.storages.back()).bytes;
    }
  return group;
}

FoundExperts find_experts(const graph::MetaGraph& graph, std::span<const graph::StorageId> order) {
  struct Family {
    std::uint32_t number = 0;            // by first members
    std::array<Column, 3> columns = {};  // gate, up, down
  };
  std::map<std::string_view, Family> families;
  FoundExperts found;
  found.family_of.resize(graph.storages.size(), FoundExperts::kNone);
  const auto owners = graph::first_owner(graph);
  for (const graph::StorageId id : order) {
    const graph::TensorId owner = *owners[graph::index(id)];
    const auto name = expert_name(graph.tensor(owner).name);
    if (!name || graph::tensor_bytes(graph, graph.tensor(owner)) != graph.storage(id).bytes) continue;
    const auto [entry, fresh] = families.try_emplace(name->prefix);
    if (fresh) entry->second.number = static_cast<std::uint32_t>(families.size());
    Column& column = entry->second.columns[static_cast<std::size_t>(name->part)];
    found.by_order = !column.try_emplace(name->expert, owner).second || found.by_order;
    found.family_of[graph::index(id)] = entry->second.number;
  }
  std::vector<std::pair<std::uint32_t, ExpertGroup>> groups;
  for (const auto& [prefix, family] : families) {
    const auto& [gate, up, down] = std::tie(family.columns[0], family.columns[1], family.columns[2]);
    const std::string label(prefix);
    if (complete(graph, gate) && complete(graph, up) && gate.size() == up.size())
      groups.emplace_back(family.number, group_of(graph, label + ".gate_up_proj", {&gate, &up}));
    if (complete(graph, down))
      groups.emplace_back(family.number, group_of(graph, label + ".down_proj", {&down}));
  }
  std::ranges::stable_sort(groups, [](const auto& a, const auto& b) { return a.first < b.first; });
  for (auto& [number, group] : groups) {
    found.families.push_back(number);
    found.groups.push_back(std::move(group));
  }
  if (found.groups.empty()) found.family_of = {};
  return found;
}

}  // namespace

std::vector<ExpertGroup> expert_groups(const graph::MetaGraph& graph,
                                       std::span<const graph::StorageId> order) {
  return find_experts(graph, order).groups;
}

NamedParts::NamedParts(const graph::MetaGraph& graph)
    : graph_(graph),
      some_empty_(std::ranges::find(graph.storages, 0u, &graph::Storage::bytes) != graph.storages.end()) {}

std::optional<graph::StorageId> NamedParts::shared_embedding() const {
  embedding_found_.run([&] { embedding_ = load::shared_embedding(graph_); });
  return embedding_;
}

const std::vector<ExpertGroup>& NamedParts::expert_groups() const {
  experts_found_.run([&] { experts_ = find_experts(graph_, with_bytes()); });
  return experts_.groups;
}

// The members of a group are the same in every order; only the sequence of the groups follows it.
std::vector<ExpertGroup> NamedParts::expert_groups(const StorageOrder& order) const {
  const std::vector<ExpertGroup>& groups = expert_groups();
  if (experts_.by_order) return load::expert_groups(graph_, order);
  if (groups.empty()) return {};
  std::vector<std::size_t> first(graph_.storages.size() + 1, order.size());  // by family
  for (std::size_t i = order.size(); i-- > 0;)
    if (const std::uint32_t family = experts_.family_of[graph::index(order[i])];
        family != FoundExperts::kNone)
      first[family] = i;
  std::vector<std::size_t> places(groups.size());
  std::iota(places.begin(), places.end(), std::size_t{0});
  std::ranges::stable_sort(places, {}, [&](std::size_t g) { return first[experts_.families[g]]; });
  std::vector<ExpertGroup> sorted;
  for (const std::size_t g : places) sorted.push_back(groups[g]);
  return sorted;
}

const std::vector<std::vector<graph::TensorId>>& NamedParts::tied_groups() const {
  ties_found_.run([&] { tied_groups_ = graph::tied_groups(graph_); });
  return tied_groups_;
}

std::vector<LoadUnit> NamedParts::units(const StorageOrder& order) const {
  units_found_.run([&] {
    units_ = load_units(graph_, used_storages(graph_));
    unit_of_.resize(graph_.storages.size());
    for (std::size_t u = 0; u < units_.size(); ++u)
      for (const graph::StorageId id : std::exchange(units_[u].storages, {}))
        unit_of_[graph::index(id)] = static_cast<std::uint32_t>(u);
  });
  std::vector<LoadUnit> units = units_;
  for (LoadUnit& unit : units) unit.bytes = 0;
  for (const graph::StorageId id : order) {
    LoadUnit& unit = units[unit_of_[graph::index(id)]];
    unit.storages.push_back(id);
    unit.bytes += graph_.storage(id).bytes;
  }
  std::erase_if(units, [](const LoadUnit& unit) { return unit.storages.empty(); });
  return units;
}

const StorageOrder& NamedParts::by_name() const {
  names_sorted_.run([&] {
    const auto owners = graph::first_owner(graph_);
    std::vector<std::pair<std::string_view, graph::StorageId>> named;
    for (const graph::StorageId id : with_bytes())
      named.emplace_back(graph_.tensor(*owners[graph::index(id)]).name.view(), id);
    std::ranges::sort(named, [](const auto& x, const auto& y) { return natural_less(x.first, y.first); });
    for (const auto& [name, id] : named) by_name_.push_back(id);
  });
  return by_name_;
}

StorageOrder NamedParts::with_bytes() const {
  StorageOrder order;
  for (const graph::StorageId id : find_order("file").make(graph_))
    if (graph_.storage(id).bytes > 0) order.push_back(id);
  return order;
}

}  // namespace loadline::load
