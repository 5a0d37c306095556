// Tries a name with each prefix and each ending in turn.
#include "core/forward/header.h"

#include "core/base/text.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>

namespace loadline {
namespace {

constexpr std::string_view kCompanions =
    "weight_scale_inv weight_scale input_scale qweight qzeros scales g_idx weight_packed weight_shape "
    "weight_zero_point weight.absmax weight.quant_map weight.nested_absmax weight.nested_quant_map";
constexpr std::array<std::string_view, 3> kStandIns = {"qweight", "weight_packed", "weight_q"};

}  // namespace

Header::Header(const MetaGraph& graph, const Architecture& architecture)
    : graph_(graph),
      architecture_(architecture),
      names_(graph.tensors.size()),
      claimed_(graph.tensors.size(), false) {
  for (std::uint32_t i = 0; i < graph.tensors.size(); ++i)
    names_.add(graph.tensors[i].name, graph.tensors[i].name.hash(), i,
               [&](std::uint32_t at) { return graph.tensors[at].name.view(); });
}

std::optional<TensorId> Header::find(const std::string& name) const {
  if (const auto id = find_prefixed(name)) return id;
  for (const auto& [ending, older] : architecture_.spellings)
    if (name.ends_with(ending))
      if (const auto id = find_prefixed(name.substr(0, name.size() - ending.size()) + older)) return id;
  return std::nullopt;
}

std::optional<TensorId> Header::find_prefixed(const std::string& name) const {
  if (const auto id = find_exact(name)) return id;
  for (const std::string& prefix : architecture_.prefixes) {
    if (const auto id = find_exact(prefix + name)) return id;
    if (!name.starts_with(prefix)) continue;
    const std::string rest = name.substr(prefix.size());
    if (const auto id = find_exact(rest)) return id;
    for (const std::string& other : architecture_.prefixes)
      if (const auto id = find_exact(other + rest)) return id;
  }
  return std::nullopt;
}

std::optional<TensorId> Header::find_exact(std::string_view name) const {
  const auto at =
      names_.find(name, name_hash(name), [this](std::uint32_t i) { return graph_.tensors[i].name.view(); });
  return at ? std::optional(TensorId{*at}) : std::nullopt;
}

void Header::claim_companions(const std::string& base) {
  for (const std::string_view companion : split(kCompanions, ' '))
    if (const auto id = find(fmt::format("{}.{}", base, companion))) claim(*id);
}

bool Header::has_stand_in(const std::string& name) const {
  constexpr std::string_view kWeight = "weight";
  if (!name.ends_with(".weight")) return false;
  const std::string base = name.substr(0, name.size() - kWeight.size());
  return std::ranges::any_of(
      kStandIns, [&](std::string_view other) { return find(base + std::string(other)).has_value(); });
}

}  // namespace loadline
