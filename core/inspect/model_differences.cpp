// Pairs through an index of names; groups by the pattern of names; config.json setting by setting.
#include "core/inspect/model_differences.h"

#include "core/base/json.h"
#include "core/base/text.h"
#include "core/graph/name.h"
#include "core/graph/names/tensor_names.h"
#include "core/graph/packed/quantization.h"
#include "core/io/graph_reader.h"

#include <algorithm>
#include <map>
#include <set>
#include <string_view>
#include <tuple>
#include <utility>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

namespace loadline::inspect {

// --- Pairs weights through an index of names.

namespace {

constexpr std::uint32_t kNone = UINT32_MAX;

graph::NameIndex index_of(const std::vector<Weight>& weights) {
  graph::NameIndex index(weights.size());
  for (std::uint32_t i = 0; i < weights.size(); ++i)
    index.add(weights[i].name, weights[i].name.hash(), i,
              [&](std::uint32_t at) { return weights[at].name.view(); });
  return index;
}

std::optional<std::uint32_t> find(const std::vector<Weight>& weights, const graph::NameIndex& index,
                                  std::string_view name) {
  return index.find(name, graph::name_hash(name), [&](std::uint32_t at) { return weights[at].name.view(); });
}

// By tensor: the other names of the same bytes.
std::vector<std::uint32_t> group_of_tensor(const graph::MetaGraph& graph,
                                           const std::vector<std::vector<graph::TensorId>>& groups) {
  std::vector<std::uint32_t> result(graph.tensors.size(), kNone);
  for (std::uint32_t i = 0; i < groups.size(); ++i)
    for (const graph::TensorId id : groups[i]) result[graph::index(id)] = i;
  return result;
}

// Pairs weights of one model, `alone`, with weights of the other through the names they are tied to.
template <typename Add>
void pair_tied(const graph::MetaGraph& graph, const std::vector<Weight>& weights,
               const std::vector<Weight>& of_other, std::vector<std::uint32_t>& alone, Add add) {
  const auto groups = graph::tied_groups(graph);
  if (groups.empty() || alone.empty()) return;
  const auto group = group_of_tensor(graph, groups);
  const graph::NameIndex other = index_of(of_other);
  std::erase_if(alone, [&](std::uint32_t position) {
    const Weight& weight = weights[position];
    if (weight.packed || weight.recipe || group[graph::index(weight.tensor)] == kNone) return false;
    for (const graph::TensorId id : groups[group[graph::index(weight.tensor)]])
      if (const auto found = find(of_other, other, graph.tensor(id).name.view())) {
        add(position, *found);
        return true;
      }
    return false;
  });
}

}  // namespace

std::vector<Weight> model_weights(const graph::MetaGraph& graph) {
  const auto packed = graph::logical_positions(graph);
  std::vector<Weight> weights;
  weights.reserve(graph.tensors.size());
  for (std::uint32_t i = 0; i < graph.tensors.size(); ++i) {
    const graph::TensorId id{i};
    if (!packed[i]) {
      const graph::Tensor& tensor = graph.tensors[i];
      weights.push_back({tensor.name, tensor.dtype, tensor.shape, id});
    } else if (const graph::LogicalTensor& weight = graph.logical[*packed[i]]; weight.codes == id) {
      weights.push_back({weight.name, weight.dtype, weight.shape, id, packed[i]});
    }
  }
  return weights;
}

Weight computed_weight(const graph::MetaGraph& graph, graph::Name name, convert::Recipe recipe) {
  convert::Form form = convert::recipe_forms(graph, recipe).back();
  const std::vector<graph::TensorId> read = convert::recipe_tensors(graph, recipe);
  return {std::move(name),
          form.dtype,
          std::move(form.shape),
          read.empty() ? graph::TensorId{} : read.front(),
          {},
          std::make_shared<const convert::Recipe>(std::move(recipe))};
}

std::uint64_t weight_bytes(const graph::MetaGraph& graph, const Weight& weight) {
  if (weight.recipe)
    return graph::byte_size(weight.dtype, graph::element_count(weight.shape).value_or(0)).value_or(0);
  return weight.packed ? graph::packed_bytes(graph, graph.logical[*weight.packed])
                       : graph::tensor_bytes(graph, graph.tensor(weight.tensor));
}

std::string weight_type(const graph::MetaGraph& graph, const Weight& weight) {
  if (!weight.packed) return std::string(graph::dtype_info(weight.dtype).name);
  const graph::LogicalTensor& packed = graph.logical[*weight.packed];
  return fmt::format("{} {}-bit", graph::packing_name(packed.packing), packed.bits);
}

Matching match_weights(const graph::MetaGraph& a, const graph::MetaGraph& b) {
  return match_weights(a, model_weights(a), b, model_weights(b));
}

Matching match_weights(const graph::MetaGraph& a, std::vector<Weight> of_a, const graph::MetaGraph& b,
                       std::vector<Weight> of_b) {
  Matching result;
  result.a = std::move(of_a);
  result.b = std::move(of_b);
  const graph::NameIndex names = index_of(result.b);
  std::vector<bool> paired(result.b.size(), false);
  for (std::uint32_t i = 0; i < result.a.size(); ++i) {
    const auto found = find(result.b, names, result.a[i].name.view());
    if (found && !paired[*found]) {
      paired[*found] = true;
      result.pairs.push_back({i, *found});
    } else {
      result.only_a.push_back(i);
    }
  }
  for (std::uint32_t i = 0; i < result.b.size(); ++i)
    if (!paired[i]) result.only_b.push_back(i);

  const std::size_t by_name = result.pairs.size();
  pair_tied(a, result.a, result.b, result.only_a, [&](std::uint32_t in_a, std::uint32_t in_b) {
    result.pairs.push_back({in_a, in_b});
  });
  pair_tied(b, result.b, result.a, result.only_b, [&](std::uint32_t in_b, std::uint32_t in_a) {
    result.pairs.push_back({in_a, in_b});
  });
  result.tied = result.pairs.size() - by_name;
  std::ranges::stable_sort(result.pairs, {}, &WeightPair::a);
  return result;
}

bool packed_alike(const graph::MetaGraph& a, const Weight& of_a, const graph::MetaGraph& b,
                  const Weight& of_b) {
  if (!of_a.packed || !of_b.packed) return false;
  const graph::LogicalTensor &x = a.logical[*of_a.packed], &y = b.logical[*of_b.packed];
  if (x.packing != y.packing || x.bits != y.bits || x.dtype != y.dtype || x.block != y.block ||
      x.companions.size() != y.companions.size())
    return false;
  const auto same = [&](graph::TensorId i, graph::TensorId j) {
    return a.tensor(i).dtype == b.tensor(j).dtype && a.tensor(i).shape == b.tensor(j).shape;
  };
  for (std::size_t i = 0; i < x.companions.size(); ++i)
    if (x.companions[i].kind != y.companions[i].kind || !same(x.companions[i].tensor, y.companions[i].tensor))
      return false;
  return same(x.codes, y.codes);
}

bool same_shape(const graph::Shape& a, const graph::Shape& b) {
  const auto single = [](const graph::Shape& shape) {
    return shape.empty() || (shape.size() == 1 && shape[0] == 1);
  };
  return a == b || (single(a) && single(b));
}

// --- Groups weights by the pattern of their names.

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

std::vector<TypeGroup> type_groups(const graph::MetaGraph& a, const graph::MetaGraph& b,
                                   const Matching& match) {
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
    group.elements += graph::element_count(of_a.shape).value_or(0);
    group.bytes_a += weight_bytes(a, of_a);
    group.bytes_b += weight_bytes(b, of_b);
    if (const auto layer = graph::layer_number(of_a.name.view())) group.layers.push_back(*layer);
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

std::vector<std::vector<std::string>> ties_missing(const graph::MetaGraph& graph,
                                                   const graph::MetaGraph& other) {
  const auto names = [](const graph::MetaGraph& of, const std::vector<graph::TensorId>& group) {
    std::vector<std::string> list;
    for (const graph::TensorId id : group) list.push_back(of.tensor(id).name.str());
    std::ranges::sort(list);
    return list;
  };
  std::set<std::vector<std::string>> known;
  for (const auto& group : graph::tied_groups(other)) known.insert(names(other, group));
  std::vector<std::vector<std::string>> missing;
  for (const auto& group : graph::tied_groups(graph))
    if (auto list = names(graph, group); !known.contains(list)) missing.push_back(std::move(list));
  return missing;
}

// --- Compares metadata key by key.

namespace {

using Json = nlohmann::ordered_json;

constexpr std::string_view kSlackKey = "loadline.slack";  // only takes room in GGUF files
using Settings = std::vector<std::pair<std::string, Json>>;

std::string scalar_text(const graph::MetaValue& value) {
  const auto* const text = std::get_if<std::string>(&value);
  return text == nullptr ? graph::meta_text(value) : fmt::format("\"{}\"", *text);
}

// --- config.json

void add_settings(const std::string& prefix, const Json& value, Settings& settings) {
  if (!value.is_object() || value.empty()) return settings.emplace_back(prefix, value), void();
  for (const auto& [key, held] : value.items())
    add_settings(prefix.empty() ? key : prefix + "." + key, held, settings);
}

// Nothing if the text cannot be compared setting by setting.
std::optional<Settings> config_settings(const std::string* text) {
  Settings settings;
  if (text == nullptr) return settings;
  const Json config = small_json<Json>(*text);
  if (!config.is_object()) return std::nullopt;
  add_settings("", config, settings);
  return settings;
}

std::string json_words(const Json& value) {
  return value.dump(-1, ' ', false, Json::error_handler_t::replace);
}

// An array by its length, and by the first element that the other array has not.
std::string array_words(const Json& value, const Json& other) {
  constexpr std::size_t kShort = 60;
  if (std::string whole = json_words(value); whole.size() <= kShort) return whole;
  std::size_t at = 0;
  while (at < value.size() && at < other.size() && value[at] == other[at]) ++at;
  return at < value.size()
             ? fmt::format("{}, number {} is {}", counted(value.size(), "element"), at, json_words(value[at]))
             : counted(value.size(), "element");
}

std::string setting_words(const Json& value, const Json& other) {
  return value.is_array() && other.is_array() ? array_words(value, other) : json_words(value);
}

void diff_settings(const Settings& a, const Settings& b, std::vector<MetadataDifference>& found) {
  std::map<std::string_view, const Json*> of_b;
  for (const auto& [key, value] : b) of_b.emplace(key, &value);
  const auto name = [](const std::string& key) { return fmt::format("{}: {}", graph::kConfigKey, key); };
  for (const auto& [key, value] : a) {
    const auto other = of_b.find(key);
    if (other == of_b.end()) {
      found.push_back({name(key), json_words(value), {}});
      continue;
    }
    if (*other->second != value)
      found.push_back(
          {name(key), setting_words(value, *other->second), setting_words(*other->second, value)});
    of_b.erase(other);
  }
  for (const auto& [key, value] : b)
    if (of_b.contains(key)) found.push_back({name(key), {}, json_words(value)});
}

// --- all other keys

class MetadataDiff {
 public:
  MetadataDiff(const MetadataSource& a, const MetadataSource& b, Progress& progress)
      : a_(a), b_(b), progress_(progress) {}

  std::vector<MetadataDifference> run() {
    const auto settings_a = config_settings(graph::find_text(a_.graph, graph::kConfigKey));
    const auto settings_b = config_settings(graph::find_text(b_.graph, graph::kConfigKey));
    const bool by_setting = settings_a && settings_b;
    const auto compared = [&](const graph::MetaEntry& entry) {
      return entry.key != kSlackKey && (!by_setting || entry.key != graph::kConfigKey);
    };
    std::map<std::string_view, const graph::MetaValue*> of_b;
    for (const graph::MetaEntry& entry : b_.graph.metadata)
      if (compared(entry)) of_b.emplace(entry.key, &entry.value);
    for (const graph::MetaEntry& entry : a_.graph.metadata) {
      if (!compared(entry)) continue;
      const auto other = of_b.find(entry.key);
      if (other == of_b.end()) {
        found_.push_back({entry.key, scalar_text(entry.value), {}});
        continue;
      }
      diff_values(entry.key, entry.value, *other->second);
      of_b.erase(other);
    }
    for (const graph::MetaEntry& entry : b_.graph.metadata)
      if (of_b.contains(entry.key)) found_.push_back({entry.key, {}, scalar_text(entry.value)});
    if (by_setting) diff_settings(*settings_a, *settings_b, found_);
    return std::move(found_);
  }

 private:
  void diff_values(const std::string& key, const graph::MetaValue& a, const graph::MetaValue& b) {
    const auto *x = std::get_if<graph::MetaArray>(&a), *y = std::get_if<graph::MetaArray>(&b);
    if (x != nullptr && y != nullptr) return diff_arrays(key, *x, *y);
    if (a == b) return;
    std::string of_a = scalar_text(a), of_b = scalar_text(b);
    if (of_a == of_b) {  // of different types
      of_a += fmt::format(" ({})", graph::meta_type_name(graph::meta_type(a)));
      of_b += fmt::format(" ({})", graph::meta_type_name(graph::meta_type(b)));
    }
    if (of_a != of_b) found_.push_back({key, of_a, of_b});
  }

  static io::MetaArrayReader reader(const MetadataSource& of, const graph::MetaArray& array) {
    return of.header != nullptr ? io::MetaArrayReader(*of.header, array)
                                : io::MetaArrayReader(of.graph, array);
  }

  void diff_arrays(const std::string& key, const graph::MetaArray& a, const graph::MetaArray& b) {
    std::string of_a = graph::meta_text(a), of_b = graph::meta_text(b);
    if (a.element == b.element) {
      io::MetaArrayReader x = reader(a_, a), y = reader(b_, b);
      std::optional<std::pair<graph::MetaValue, graph::MetaValue>> first;
      while (!first && x.remaining() > 0 && y.remaining() > 0) {
        progress_.check_canceled();
        graph::MetaValue of_x = x.next(), of_y = y.next();
        // NaN differs from itself, but not from an equal entry of the other file
        if (of_x != of_y && scalar_text(of_x) != scalar_text(of_y))
          first.emplace(std::move(of_x), std::move(of_y));
      }
      if (!first && a.count == b.count) return;
      if (first) {
        of_a += fmt::format(", number {} is {}", x.at() - 1, scalar_text(first->first));
        of_b += fmt::format(", number {} is {}", y.at() - 1, scalar_text(first->second));
      }
    }
    found_.push_back({key, of_a, of_b});
  }

  const MetadataSource &a_, &b_;
  Progress& progress_;
  std::vector<MetadataDifference> found_;
};

}  // namespace

std::vector<MetadataDifference> diff_metadata(const MetadataSource& a, const MetadataSource& b,
                                              Progress& progress) {
  return MetadataDiff(a, b, progress).run();
}

}  // namespace loadline::inspect
