// Recognises experts by their names and groups them.
#include "core/load/methods/expert_groups.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <map>
#include <optional>
#include <tuple>

namespace loadline {
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
using Column = std::map<std::uint64_t, TensorId>;
bool complete(const MetaGraph& graph, const Column& column) {
  if (column.size() < 2 || column.rbegin()->first != column.size() - 1) return false;
  const Tensor& first = graph.tensor(column.begin()->second);
  return std::ranges::all_of(column, [&](const auto& member) {
    const Tensor& tensor = graph.tensor(member.second);
    return tensor.dtype == first.dtype && tensor.shape == first.shape;
  });
}

ExpertGroup group_of(const MetaGraph& graph, std::string label, const std::vector<const Column*>& columns) {
  ExpertGroup group{.label = std::move(label), .storages = {}, .columns = columns.size(), .bytes = 0};
  for (std::uint64_t expert = 0; expert < columns.front()->size(); ++expert)
    for (const Column* column : columns) {
      group.storages.push_back(graph.tensor(column->at(expert)).storage);
      group.bytes += graph.storage(group.storages.back()).bytes;
    }
  return group;
}

}  // namespace

std::vector<ExpertGroup> expert_groups(const MetaGraph& graph, std::span<const StorageId> order) {
  struct Found {
    std::size_t first = 0;
    std::array<Column, 3> columns = {};  // gate, up, down
  };
  std::map<std::string_view, Found> found;
  const auto owners = first_owner(graph);
  for (std::size_t i = 0; i < order.size(); ++i) {
    const Tensor& tensor = graph.tensor(*owners[index(order[i])]);
    const auto name = expert_name(tensor.name);
    if (!name || tensor_bytes(graph, tensor) != graph.storage(order[i]).bytes) continue;
    const auto [entry, fresh] = found.try_emplace(name->prefix);
    if (fresh) entry->second.first = i;
    entry->second.columns[static_cast<std::size_t>(name->part)].try_emplace(name->expert,
                                                                            *owners[index(order[i])]);
  }
  std::vector<std::pair<std::size_t, ExpertGroup>> groups;
  for (const auto& [prefix, entry] : found) {
    const auto& [gate, up, down] = std::tie(entry.columns[0], entry.columns[1], entry.columns[2]);
    const std::string label(prefix);
    if (complete(graph, gate) && complete(graph, up) && gate.size() == up.size())
      groups.emplace_back(entry.first, group_of(graph, label + ".gate_up_proj", {&gate, &up}));
    if (complete(graph, down))
      groups.emplace_back(entry.first, group_of(graph, label + ".down_proj", {&down}));
  }
  std::ranges::stable_sort(groups, [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<ExpertGroup> sorted;
  for (auto& [first, group] : groups) sorted.push_back(std::move(group));
  return sorted;
}

}  // namespace loadline
