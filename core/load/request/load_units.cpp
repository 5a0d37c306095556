// Judges by a tensor's name where a forward pass uses it.
#include "core/graph/names/module_tree.h"
#include "core/load/request/model_parts.h"

#include <algorithm>
#include <array>
#include <initializer_list>
#include <map>

namespace loadline {
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
  return layer_number(name) ? Phase::layer : phase_outside_layers(name);
}

std::tuple<Phase, int, std::uint64_t> forward_key(std::string_view name) {
  const auto number = layer_number(name);
  return {number ? Phase::layer : phase_outside_layers(name), stack_rank(name), number.value_or(0)};
}

std::vector<StorageId> used_storages(const MetaGraph& graph) {
  std::vector<StorageId> used;
  const auto owners = first_owner(graph);
  for (std::size_t i = 0; i < owners.size(); ++i)
    if (owners[i]) used.push_back(StorageId{static_cast<std::uint32_t>(i)});
  return used;
}

std::vector<LoadUnit> load_units(const MetaGraph& graph, const std::vector<StorageId>& order) {
  const auto owners = first_owner(graph);
  std::map<std::tuple<Phase, int, std::uint64_t>, LoadUnit> units;
  for (const StorageId id : order) {
    auto key = forward_key(graph.tensor(*owners[index(id)]).name);
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

}  // namespace loadline
