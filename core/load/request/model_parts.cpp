// Finds the parts by names, files and sizes; the table of orders.
#include "core/load/request/model_parts.h"

#include "core/base/option.h"
#include "core/graph/names/tensor_names.h"
#include "core/graph/packed/quantization.h"

#include <algorithm>
#include <array>
#include <initializer_list>
#include <map>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

namespace loadline::load {

// --- Judges by a tensor's name where a forward pass uses it.

namespace {

bool has_any(std::string_view name, std::initializer_list<std::string_view> parts) {
  return std::ranges::any_of(
      parts, [&](std::string_view part) { return name.find(part) != std::string_view::npos; });
}

// Encoders and vision towers run before the stack that attends to them.
// Draft models and layers that predict further tokens run behind it.
int stack_rank(std::string_view name) {
  if (name.starts_with("draft.") || name.starts_with("mtp.")) return 2;
  return has_any(name, {"encoder", "vision", "visual", "mmproj"}) ? 0 : 1;
}

std::string unit_label(Phase phase, int stack, std::uint64_t number) {
  constexpr std::array<std::string_view, 5> kLabels = {"embedding", "layer ", "the rest", "final norm",
                                                       "head"};
  const std::string label(kLabels[static_cast<std::size_t>(phase)]);
  if (phase != Phase::layer) return label;
  constexpr std::array<std::string_view, 3> kStacks = {"encoder ", "", "draft "};
  return std::string(kStacks[static_cast<std::size_t>(stack)]) + label + std::to_string(number);
}

Phase phase_outside_layers(std::string_view name) {
  // "embed_out" is GPT-NeoX's head; "embeddings.LayerNorm" is not the final norm; "output_norm" is not the
  // head
  if (has_any(name, {"embed_out"})) return Phase::head;
  if (has_any(name, {"emb", "wte", "wpe"})) return Phase::embedding;
  if (has_any(name, {"norm", "Norm", "ln_"})) return Phase::final_norm;
  if (has_any(name, {"head", "classifier", "pooler", "score", "output"})) return Phase::head;
  return Phase::rest;
}

}  // namespace

Phase phase_of(std::string_view name) {
  return graph::layer_number(name) ? Phase::layer : phase_outside_layers(name);
}

std::tuple<Phase, int, std::uint64_t> forward_key(std::string_view name) {
  const auto number = graph::layer_number(name);
  return {number ? Phase::layer : phase_outside_layers(name), stack_rank(name), number.value_or(0)};
}

std::vector<graph::StorageId> used_storages(const graph::MetaGraph& graph) {
  std::vector<graph::StorageId> used;
  const auto owners = graph::first_owner(graph);
  for (std::size_t i = 0; i < owners.size(); ++i)
    if (owners[i]) used.push_back(graph::StorageId{static_cast<std::uint32_t>(i)});
  return used;
}

std::vector<LoadUnit> load_units(const graph::MetaGraph& graph, const std::vector<graph::StorageId>& order) {
  const auto owners = graph::first_owner(graph);
  std::map<std::tuple<Phase, int, std::uint64_t>, LoadUnit> units;
  for (const graph::StorageId id : order) {
    auto key = forward_key(graph.tensor(*owners[graph::index(id)]).name);
    if (std::get<Phase>(key) != Phase::layer) std::get<int>(key) = 0;
    LoadUnit& unit = units[key];
    unit.storages.push_back(id);
    unit.bytes += graph.storage(id).bytes;
  }
  std::vector<LoadUnit> list;
  for (auto& [key, unit] : units) {
    unit.phase = std::get<Phase>(key);
    unit.label = unit_label(unit.phase, std::get<int>(key), std::get<std::uint64_t>(key));
    list.push_back(std::move(unit));
  }
  return list;
}

// --- Finds the weight that a model uses as embedding and as head.

namespace {

// bert, nomic-bert, modern-bert, ...: llama.cpp gives these no head. An unknown family is taken for a
// decoder.
bool is_bert(const graph::MetaGraph& graph) {
  const std::optional<std::string> family = graph::model_family(graph);
  return family && family->find("bert") != std::string::npos;
}

}  // namespace

std::optional<graph::StorageId> shared_embedding(const graph::MetaGraph& graph) {
  bool head = false;
  std::optional<graph::StorageId> embedding;
  for (const graph::Tensor& tensor : graph.tensors) {
    const std::string_view name = tensor.name.view();
    head = head || phase_of(name) == Phase::head;
    if (!embedding && (name == "token_embd.weight" || name.ends_with("embed_tokens.weight") ||
                       name.ends_with("wte.weight")))
      embedding = tensor.storage;
  }
  if (!head) {
    const bool headless =
        !embedding || is_bert(graph) || graph::config_flag(graph, "tie_word_embeddings") == false;
    return headless ? std::nullopt : embedding;
  }
  for (const std::vector<graph::TensorId>& group : graph::tied_groups(graph)) {
    const auto any = [&](Phase phase) {
      return std::ranges::any_of(
          group, [&](graph::TensorId id) { return phase_of(graph.tensor(id).name) == phase; });
    };
    if (any(Phase::embedding) && any(Phase::head)) return graph.tensor(group.front()).storage;
  }
  return std::nullopt;
}

// --- The table of orders.

namespace {

// Sorted by file and offset; storages without a file by their number.
StorageOrder file_order(const graph::MetaGraph& graph) {
  StorageOrder order = used_storages(graph);
  const auto before = [&](graph::StorageId a, graph::StorageId b) {
    const graph::Storage &x = graph.storage(a), &y = graph.storage(b);
    return std::tie(x.file, x.offset) < std::tie(y.file, y.offset);
  };
  if (!std::ranges::is_sorted(order, before)) std::ranges::stable_sort(order, before);
  return order;
}

// Sorts by a key that is computed once for each storage; equal keys keep file order.
template <typename Key>
StorageOrder sorted_by(const graph::MetaGraph& graph, Key key) {
  using Keyed = std::pair<decltype(key(graph::StorageId{})), graph::StorageId>;
  std::vector<Keyed> keyed;
  for (const graph::StorageId id : file_order(graph)) keyed.emplace_back(key(id), id);
  std::ranges::stable_sort(keyed, [](const Keyed& a, const Keyed& b) { return a.first < b.first; });
  StorageOrder order;
  order.reserve(keyed.size());
  for (const Keyed& entry : keyed) order.push_back(entry.second);
  return order;
}

StorageOrder name_order(const graph::MetaGraph& graph) {
  const auto owners = graph::first_owner(graph);
  return sorted_by(graph, [&](graph::StorageId id) -> std::string_view {
    return graph.tensor(*owners[graph::index(id)]).name;
  });
}

StorageOrder largest_order(const graph::MetaGraph& graph) {
  return sorted_by(graph, [&](graph::StorageId id) { return ~graph.storage(id).bytes; });
}

StorageOrder smallest_order(const graph::MetaGraph& graph) {
  return sorted_by(graph, [&](graph::StorageId id) { return graph.storage(id).bytes; });
}

StorageOrder forward_order(const graph::MetaGraph& graph) {
  const auto owners = graph::first_owner(graph);
  return sorted_by(
      graph, [&](graph::StorageId id) { return forward_key(graph.tensor(*owners[graph::index(id)]).name); });
}

// Head and embeddings, the largest tensors of most models, are loaded while there is room; all others keep
// file order. A full sort would lose sequential reads and gain little more.
StorageOrder heads_first_order(const graph::MetaGraph& graph) {
  const auto owners = graph::first_owner(graph);
  return sorted_by(graph, [&](graph::StorageId id) {
    const Phase phase = phase_of(graph.tensor(*owners[graph::index(id)]).name);
    return phase == Phase::head ? 0 : phase == Phase::embedding ? 1 : 2;
  });
}

constexpr std::array<Order, 7> kOrders = {{
    {"file", "as the bytes lie in the files (offset is another word for it): purely sequential reads",
     file_order},
    {"name", "alphabetical, as a sorted state dict", name_order},
    {"forward", "embeddings, layers by number, the rest, final norm, head", forward_order},
    {"heads_first", "head and embeddings, then as the bytes lie", heads_first_order},
    {"largest", "biggest tensor first", largest_order},
    {"smallest", "smallest tensor first", smallest_order},
    {"optimal", "the method's lowest peak, over the memory that counts; file order where nothing is gained",
     nullptr},
}};

}  // namespace

std::span<const Order> orders() { return kOrders; }

const Order& find_order(std::string_view id) {
  return find_row(orders(), id == "offset" ? "file" : id, "order");
}

// --- Divides a model's storages into shards.

std::vector<std::uint32_t> shards_of(const graph::MetaGraph& graph, std::uint64_t most) {
  std::vector<std::uint32_t> shards(graph.storages.size(), 0);
  if (most == 0) {
    const auto without = static_cast<std::uint32_t>(graph.files.size());
    for (std::size_t i = 0; i < shards.size(); ++i)
      shards[i] = std::min(static_cast<std::uint32_t>(graph::index(graph.storages[i].file)), without);
    return shards;
  }
  std::uint32_t shard = 0;  // being filled
  std::uint32_t next = 1;
  std::uint64_t room = most;
  for (const graph::StorageId id : find_order("file").make(graph)) {
    const std::uint64_t bytes = graph.storage(id).bytes;
    if (bytes > most) {
      shards[graph::index(id)] = next++;
      continue;
    }
    if (bytes > room) {
      shard = next++;
      room = most;
    }
    shards[graph::index(id)] = shard;
    room -= bytes;
  }
  return shards;
}

bool is_pickled(const graph::MetaGraph& graph) { return graph.format.starts_with("torch"); }

}  // namespace loadline::load
