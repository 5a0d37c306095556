// Groups tensors by the endings of their names.
#include "core/graph/packed/stored_parts.h"

#include <algorithm>
#include <utility>

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

class Grouping {
 public:
  explicit Grouping(const MetaGraph& graph) : graph_(graph) {}

  std::vector<std::pair<std::string_view, Group>> groups() {
    group_companions();
    if (!groups_.empty()) add_weights();
    return std::move(groups_);
  }

 private:
  auto base_of() const {
    return [this](std::uint32_t position) { return groups_[position].first; };
  }

  void put(std::string_view base, Slot slot, std::size_t tensor) {
    if (groups_.empty()) {  // with one companion or more, a weight is at most every second tensor
      groups_.reserve(graph_.tensors.size() / 2 + 1);
      index_ = NameIndex(graph_.tensors.size() / 2 + 1);
    }
    const auto fresh = static_cast<std::uint32_t>(groups_.size());
    const auto known = index_.add(base, name_hash(base), fresh, base_of());
    if (!known) groups_.emplace_back(base, Group());
    std::uint32_t& place = groups_[known.value_or(fresh)].second.at(slot);
    if (place == kNone) place = static_cast<std::uint32_t>(tensor);
  }

  void group_companions() {
    auto ending = kEndings.begin();
    for (std::size_t i = 0; i < graph_.tensors.size(); ++i) {
      const std::string_view name = graph_.tensors[i].name.view();
      const std::size_t dot = name.rfind('.');
      const std::string_view last = name.substr(dot + 1);
      if (last == "weight" || last == "bias") continue;
      if (last.ends_with(kBlocks)) {
        put(name.substr(0, name.size() - kBlocks.size()), Slot::blocks, i);
        blocks_ = true;
      } else if (last.ends_with(kBlockScales)) {
        put(name.substr(0, name.size() - kBlockScales.size()), Slot::scales, i);
      } else if (dot != std::string_view::npos) {
        // each stands once in the table, and neighbors mostly have the same
        if (ending->last != last) ending = std::ranges::find(kEndings, last, &Ending::last);
        if (ending == kEndings.end())
          ending = kEndings.begin();
        else if (name.substr(0, dot).ends_with(ending->before))
          put(name.substr(0, dot - ending->before.size()), ending->slot, i);
      }
    }
  }

  void add_weights() {
    constexpr std::string_view kWeight = ".weight";
    std::size_t next = 0;  // files list weights in the order in which they list their companions
    for (std::size_t i = 0; i < graph_.tensors.size(); ++i) {
      const std::string_view name = graph_.tensors[i].name.view();
      const bool weight = name.ends_with(kWeight);
      if (!weight && !blocks_) continue;
      const std::string_view base = weight ? name.substr(0, name.size() - kWeight.size()) : name;
      std::optional<std::uint32_t> group;
      if (next < groups_.size() && groups_[next].first == base)
        group = static_cast<std::uint32_t>(next);
      else
        group = index_.find(base, name_hash(base), base_of());
      if (!group) continue;
      groups_[*group].second.at(Slot::weight) = static_cast<std::uint32_t>(i);
      next = *group + std::size_t{1};
    }
  }

  const MetaGraph& graph_;
  std::vector<std::pair<std::string_view, Group>> groups_;  // with the name of the module
  NameIndex index_;                                         // of the modules' names
  bool blocks_ = false;
};

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

std::vector<std::pair<std::string_view, Group>> stored_parts(const MetaGraph& graph) {
  return Grouping(graph).groups();
}

}  // namespace loadline::graph::packed
