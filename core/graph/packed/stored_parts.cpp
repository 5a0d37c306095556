// Groups tensors by the endings of their names.
#include "core/graph/packed/stored_parts.h"

#include <algorithm>

namespace loadline::graph::packed {
namespace {

// The last part of a tensor's name, what comes before it and after the module's name, and its meaning.
struct Ending {
  std::string_view last, before;
  Slot slot;
};
constexpr std::array kEndings = std::to_array<Ending>({
    {"qweight", "", Slot::qweight},
    {"weight_packed", "", Slot::weight_packed},
    {"scales", "", Slot::scales},
    {"qzeros", "", Slot::qzeros},
    {"g_idx", "", Slot::g_idx},
    {"biases", "", Slot::biases},
    {"absmax", ".weight", Slot::absmax},
    {"quant_map", ".weight", Slot::quant_map},
    {"nested_absmax", ".weight", Slot::nested_absmax},
    {"nested_quant_map", ".weight", Slot::nested_quant_map},
    {"bitsandbytes__nf4", ".weight.quant_state", Slot::quant_state},
    {"bitsandbytes__fp4", ".weight.quant_state", Slot::quant_state},
    {"SCB", "", Slot::scb},
    {"weight_format", "", Slot::weight_format},
    {"weight_scale", "", Slot::weight_scale},
    {"weight_scale_inv", "", Slot::weight_scale_inv},
    {"weight_scale_2", "", Slot::weight_scale_2},
    {"weight_global_scale", "", Slot::weight_global_scale},
    {"weight_zero_point", "", Slot::weight_zero_point},
    {"weight_shape", "", Slot::weight_shape},
    {"weight_g_idx", "", Slot::weight_g_idx},
    {"input_scale", "", Slot::input_scale},
    {"input_global_scale", "", Slot::input_global_scale},
});
constexpr std::string_view kBlocks = "_blocks", kBlockScales = "_scales";
constexpr std::size_t kBlocksEnding = kEndings.size(), kBlockScalesEnding = kBlocksEnding + 1;

}  // namespace

std::optional<Companion> companion_of(Slot slot) {
  switch (slot) {
    case Slot::weight:
    case Slot::qweight:
    case Slot::weight_packed:
    case Slot::blocks:
      return std::nullopt;
    case Slot::scales:
    case Slot::absmax:
    case Slot::scb:
    case Slot::weight_scale:
    case Slot::weight_scale_inv:
      return Companion::scales;
    case Slot::qzeros:
    case Slot::weight_zero_point:
      return Companion::zeros;
    case Slot::g_idx:
    case Slot::weight_g_idx:
      return Companion::groups;
    case Slot::biases:
      return Companion::biases;
    case Slot::quant_map:
      return Companion::codebook;
    case Slot::nested_absmax:
      return Companion::nested_scales;
    case Slot::nested_quant_map:
      return Companion::nested_codebook;
    case Slot::quant_state:
      return Companion::state;
    case Slot::weight_format:
      return Companion::format;
    case Slot::weight_scale_2:
    case Slot::weight_global_scale:
      return Companion::global_scale;
    case Slot::weight_shape:
      return Companion::shape;
    case Slot::input_scale:
    case Slot::input_global_scale:
      return Companion::activation_scale;
  }
  return std::nullopt;
}

StoredModules::StoredModules(const MetaGraph& graph) : graph_(graph) {
  add_companions();
  if (!modules_.empty()) add_weights();
  index_ = NameIndex();
}

Group StoredModules::group(std::size_t module) const {
  Group group;
  const Module& from = modules_[module];
  if (from.weight != kNone) group.put(Slot::weight, from.weight);
  // from the last to the first: that of several counts
  for (std::uint32_t part = from.last; part != kNone; part = parts_[part].before)
    group.put(parts_[part].slot, parts_[part].tensor);
  return group;
}

// Tensors with one ending and different names are of different modules: while there is but one ending, no
// module has to be looked up.
void StoredModules::add(std::string_view name, Slot slot, std::size_t ending, std::size_t tensor) {
  if (modules_.empty()) {  // with one companion or more, a weight is at most every second tensor
    modules_.reserve(graph_.tensors.size() / 2 + 1);
    parts_.reserve(graph_.tensors.size() / 2 + 1);
    ending_ = ending;
  }
  if (!indexed_ && (ending != ending_ || ending == kBlocksEnding)) {
    index_ = NameIndex(graph_.tensors.size() / 2 + 1);
    for (std::uint32_t i = 0; i < modules_.size(); ++i)
      index_.add(this->name(i), name_hash(this->name(i)), i, name_of());
    indexed_ = true;
  }
  const auto fresh = static_cast<std::uint32_t>(modules_.size());
  const auto known = indexed_ ? index_.add(name, name_hash(name), fresh, name_of()) : std::nullopt;
  if (!known)
    modules_.push_back({static_cast<std::uint32_t>(tensor), static_cast<std::uint32_t>(name.size())});
  Module& module = modules_[known.value_or(fresh)];
  parts_.push_back({static_cast<std::uint32_t>(tensor), module.last, slot});
  module.last = static_cast<std::uint32_t>(parts_.size() - 1);
}

void StoredModules::add_companions() {
  auto ending = kEndings.begin();
  // whether a name ends in a dot and `last`
  const auto ends_in = [](std::string_view name, std::string_view last) {
    return name.size() > last.size() && name[name.size() - last.size() - 1] == '.' && name.ends_with(last);
  };
  for (std::size_t i = 0; i < graph_.tensors.size(); ++i) {
    const std::string_view name = graph_.tensors[i].name.view();
    if (ends_in(name, "weight") || ends_in(name, "bias")) continue;
    if (!ends_in(name, ending->last)) {  // each stands once in the table, and neighbors mostly have the same
      const std::string_view last = name.substr(name.rfind('.') + 1);
      if (last.ends_with(kBlocks)) {
        add(name.substr(0, name.size() - kBlocks.size()), Slot::blocks, kBlocksEnding, i);
        blocks_ = true;
      } else if (last.ends_with(kBlockScales)) {
        add(name.substr(0, name.size() - kBlockScales.size()), Slot::scales, kBlockScalesEnding, i);
      }
      const auto found = std::ranges::find(kEndings, last, &Ending::last);
      if (found == kEndings.end() || !ends_in(name, last)) continue;
      ending = found;
    }
    const std::string_view before = name.substr(0, name.size() - ending->last.size() - 1);
    if (before.ends_with(ending->before))
      add(before.substr(0, before.size() - ending->before.size()), ending->slot,
          static_cast<std::size_t>(ending - kEndings.begin()), i);
  }
}

void StoredModules::add_weights() {
  constexpr std::string_view kWeight = ".weight";
  const auto base_of = [kWeight](std::string_view name) {
    return name.ends_with(kWeight) ? name.substr(0, name.size() - kWeight.size()) : name;
  };
  std::vector<std::uint32_t> others;
  std::size_t next = 0;  // files list weights in the order in which they list their companions
  std::size_t found = 0;
  const auto put = [&](std::size_t module, std::size_t tensor) {
    modules_[module].weight = static_cast<std::uint32_t>(tensor);
    next = module + 1;
    ++found;
  };
  for (std::size_t i = 0; i < graph_.tensors.size(); ++i) {
    const std::string_view name = graph_.tensors[i].name.view();
    if (!name.ends_with(kWeight) && !blocks_) continue;
    if (next < modules_.size() && this->name(next) == base_of(name)) {
      put(next, i);
    } else if (!indexed_) {
      others.push_back(static_cast<std::uint32_t>(i));
    } else if (const auto module = index_.find(base_of(name), name_hash(base_of(name)), name_of())) {
      put(*module, i);
    }
  }
  // no weight is that of a module which has one
  if (others.empty() || found == modules_.size()) return;
  index_ = NameIndex(modules_.size() - std::min(found, modules_.size()));
  for (std::uint32_t i = 0; i < modules_.size(); ++i)
    if (modules_[i].weight == kNone) index_.add(this->name(i), name_hash(this->name(i)), i, name_of());
  for (const std::uint32_t i : others) {
    const std::string_view base = base_of(graph_.tensors[i].name.view());
    if (const auto module = index_.find(base, name_hash(base), name_of())) modules_[*module].weight = i;
  }
}

}  // namespace loadline::graph::packed
