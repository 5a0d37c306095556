// Groups weights by the pattern of their names.
#include "core/inspect/diff_types.h"

#include "core/base/text.h"
#include "core/graph/names/module_tree.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include <fmt/format.h>

namespace loadline {
namespace {

std::string pattern_of(std::string_view name) {
  std::string pattern;
  for (const std::string_view part : split(name, '.')) {
    const bool number = !part.empty() && part.find_first_not_of("0123456789") == std::string_view::npos;
    pattern.append(pattern.empty() ? "" : ".").append(number ? "N" : part);
  }
  return pattern;
}

}  // namespace

std::vector<TypeGroup> type_groups(const MetaGraph& a, const MetaGraph& b, const Matching& match) {
  std::vector<TypeGroup> groups;
  std::map<std::tuple<std::string, std::string, std::string>, std::size_t> places;
  std::map<std::string, std::size_t> same_pattern;
  for (const WeightPair& pair : match.pairs) {
    const Weight &of_a = match.a[pair.a], &of_b = match.b[pair.b];
    if (!same_shape(of_a.shape, of_b.shape)) continue;
    std::string pattern = pattern_of(of_a.name.view());
    std::string type_a = weight_type(a, of_a), type_b = weight_type(b, of_b);
    const auto [place, added] = places.try_emplace({pattern, type_a, type_b}, groups.size());
    if (added) {
      ++same_pattern[pattern];
      TypeGroup& group = groups.emplace_back();
      group.pattern = std::move(pattern);
      group.a = std::move(type_a);
      group.b = std::move(type_b);
    }
    TypeGroup& group = groups[place->second];
    ++group.count;
    group.elements += element_count(of_a.shape).value_or(0);
    group.bytes_a += weight_bytes(a, of_a);
    group.bytes_b += weight_bytes(b, of_b);
    if (const auto layer = layer_number(of_a.name.view())) group.layers.push_back(*layer);
  }
  for (TypeGroup& group : groups) {
    std::ranges::sort(group.layers);
    group.layers.erase(std::unique(group.layers.begin(), group.layers.end()), group.layers.end());
    group.all_layers = same_pattern[group.pattern] == 1;
  }
  return groups;
}

std::string ranges_text(const std::vector<std::uint64_t>& numbers) {
  std::string text;
  for (std::size_t i = 0; i < numbers.size();) {
    std::size_t end = i + 1;
    while (end < numbers.size() && numbers[end] == numbers[end - 1] + 1) ++end;
    text += text.empty() ? "" : ", ";
    text += end - i == 1 ? fmt::format("{}", numbers[i]) : fmt::format("{}-{}", numbers[i], numbers[end - 1]);
    i = end;
  }
  return text;
}

std::vector<std::vector<std::string>> ties_missing(const MetaGraph& graph, const MetaGraph& other) {
  const auto names = [](const MetaGraph& of, const std::vector<TensorId>& group) {
    std::vector<std::string> list;
    for (const TensorId id : group) list.push_back(of.tensor(id).name.str());
    std::ranges::sort(list);
    return list;
  };
  std::set<std::vector<std::string>> known;
  for (const auto& group : tied_groups(other)) known.insert(names(other, group));
  std::vector<std::vector<std::string>> missing;
  for (const auto& group : tied_groups(graph))
    if (auto list = names(graph, group); !known.contains(list)) missing.push_back(std::move(list));
  return missing;
}

}  // namespace loadline
