// Sums slots up.
#include "exporters/type_table.h"

#include "core/base/number.h"
#include "core/base/text.h"
#include "exporters/common.h"

#include <algorithm>
#include <map>
#include <optional>
#include <tuple>

namespace loadline {
namespace {

std::uint64_t weights_of(const Slot& slot) {
  return slot.dtype == DType::opaque ? slot.bytes : element_count(slot.shape).value_or(0);
}

void add(TypeShare& share, const Slot& slot) {
  share.type = slot.dtype;
  ++share.tensors;
  share.weights += weights_of(slot);
  share.bytes += slot.bytes;
}

// The name with * for each part that is a number, and the first of these numbers.
std::pair<std::string, std::optional<std::uint64_t>> pattern_of(std::string_view name) {
  std::string pattern;
  std::optional<std::uint64_t> first;
  for (const std::string_view part : split(name, '.')) {
    const auto number = text_as<std::uint64_t>(part);
    if (number && !first) first = number;
    pattern.append(pattern.empty() ? "" : ".").append(number ? "*" : part);
  }
  return {std::move(pattern), first};
}

template <typename Each>
void for_each_slot(const Layout& layout, Each each) {
  for (const LayoutFile& file : layout.files)
    for (const Slot& slot : file.slots) each(slot);
}

}  // namespace

std::vector<TypeShare> type_shares(const Layout& layout) {
  std::map<DType, TypeShare> by_type;
  for_each_slot(layout, [&](const Slot& slot) { add(by_type[slot.dtype], slot); });
  std::vector<TypeShare> shares;
  for (const auto& [type, share] : by_type) shares.push_back(share);
  std::ranges::stable_sort(shares, [](const TypeShare& a, const TypeShare& b) { return a.bytes > b.bytes; });
  return shares;
}

std::vector<TensorGroup> tensor_groups(const MetaGraph& graph, const Layout& layout) {
  std::vector<TensorGroup> groups;
  std::map<std::tuple<std::string, DType, DType>, std::size_t> positions;
  struct Seen {
    std::size_t first = 0, groups = 0;
  };
  std::map<std::string, Seen> patterns;
  for_each_slot(layout, [&](const Slot& slot) {
    auto [pattern, layer] = pattern_of(slot.name.view());
    const DType from = stored_dtype(graph, slot);
    const auto [at, fresh] = positions.emplace(std::tuple(pattern, from, slot.dtype), groups.size());
    if (fresh) {
      ++patterns.emplace(pattern, Seen{groups.size()}).first->second.groups;
      groups.push_back({.pattern = std::move(pattern), .from = from, .layers = {}});
    }
    TensorGroup& group = groups[at->second];
    add(group.share, slot);
    if (layer) group.layers.push_back(*layer);
  });
  for (TensorGroup& group : groups) {
    group.alone = patterns[group.pattern].groups == 1;
    std::ranges::sort(group.layers);
    group.layers.erase(std::unique(group.layers.begin(), group.layers.end()), group.layers.end());
  }
  std::ranges::stable_sort(groups, {},
                           [&](const TensorGroup& group) { return patterns[group.pattern].first; });
  return groups;
}

double bits_per_weight(std::uint64_t bytes, std::uint64_t weights) {
  return weights == 0 ? 0 : 8.0 * static_cast<double>(bytes) / static_cast<double>(weights);
}

bool has_blocks(const Layout& layout) {
  bool any = false;
  for_each_slot(layout, [&](const Slot& slot) { any |= dtype_info(slot.dtype).kind == DTypeKind::block; });
  return any;
}

bool quantises(const Layout& layout) {
  bool any = false;
  for_each_slot(layout,
                [&](const Slot& slot) { any |= slot.recipe.steps.back().kind == StepKind::quantise; });
  return any;
}

}  // namespace loadline
