// Pairs through an index of names; groups by the pattern of names; config.json setting by setting.
#include "core/inspect/model_differences.h"

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

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace loadline {

// --- Pairs weights through an index of names.

namespace {

constexpr std::uint32_t kNone = UINT32_MAX;

NameIndex index_of(const std::vector<Weight>& weights) {
  NameIndex index(weights.size());
  for (std::uint32_t i = 0; i < weights.size(); ++i)
    index.add(weights[i].name, weights[i].name.hash(), i,
              [&](std::uint32_t at) { return weights[at].name.view(); });
  return index;
}

std::optional<std::uint32_t> find(const std::vector<Weight>& weights, const NameIndex& index,
                                  std::string_view name) {
  return index.find(name, name_hash(name), [&](std::uint32_t at) { return weights[at].name.view(); });
}

// By tensor: the other names of the same bytes.
std::vector<std::uint32_t> group_of_tensor(const MetaGraph& graph,
                                           const std::vector<std::vector<TensorId>>& groups) {
  std::vector<std::uint32_t> result(graph.tensors.size(), kNone);
  for (std::uint32_t i = 0; i < groups.size(); ++i)
    for (const TensorId id : groups[i]) result[index(id)] = i;
  return result;
}

// Pairs weights of one model, `alone`, with weights of the other through the names they are tied to.
template <typename Add>
void pair_tied(const MetaGraph& graph, const std::vector<Weight>& weights,
               const std::vector<Weight>& of_other, std::vector<std::uint32_t>& alone, Add add) {
  const auto groups = tied_groups(graph);
  if (groups.empty() || alone.empty()) return;
  const auto group = group_of_tensor(graph, groups);
  const NameIndex other = index_of(of_other);
  std::erase_if(alone, [&](std::uint32_t position) {
    const Weight& weight = weights[position];
    if (weight.packed || weight.recipe || group[index(weight.tensor)] == kNone) return false;
    for (const TensorId id : groups[group[index(weight.tensor)]])
      if (const auto found = find(of_other, other, graph.tensor(id).name.view())) {
        add(position, *found);
        return true;
      }
    return false;
  });
}

}  // namespace

std::vector<Weight> model_weights(const MetaGraph& graph) {
  const auto packed = logical_positions(graph);
  std::vector<Weight> weights;
  weights.reserve(graph.tensors.size());
  for (std::uint32_t i = 0; i < graph.tensors.size(); ++i) {
    const TensorId id{i};
    if (!packed[i]) {
      const Tensor& tensor = graph.tensors[i];
      weights.push_back({tensor.name, tensor.dtype, tensor.shape, id});
    } else if (const LogicalTensor& weight = graph.logical[*packed[i]]; weight.codes == id) {
      weights.push_back({weight.name, weight.dtype, weight.shape, id, packed[i]});
    }
  }
  return weights;
}

Weight computed_weight(const MetaGraph& graph, Name name, Recipe recipe) {
  Form form = recipe_forms(graph, recipe).back();
  const std::vector<TensorId> read = recipe_tensors(graph, recipe);
  return {std::move(name),
          form.dtype,
          std::move(form.shape),
          read.empty() ? TensorId{} : read.front(),
          {},
          std::make_shared<const Recipe>(std::move(recipe))};
}

std::uint64_t weight_bytes(const MetaGraph& graph, const Weight& weight) {
  if (weight.recipe) return byte_size(weight.dtype, element_count(weight.shape).value_or(0)).value_or(0);
  return weight.packed ? packed_bytes(graph, graph.logical[*weight.packed])
                       : tensor_bytes(graph, graph.tensor(weight.tensor));
}

std::string weight_type(const MetaGraph& graph, const Weight& weight) {
  if (!weight.packed) return std::string(dtype_info(weight.dtype).name);
  const LogicalTensor& packed = graph.logical[*weight.packed];
  return fmt::format("{} {}-bit", packing_name(packed.packing), packed.bits);
}

Matching match_weights(const MetaGraph& a, const MetaGraph& b) {
  return match_weights(a, model_weights(a), b, model_weights(b));
}

Matching match_weights(const MetaGraph& a, std::vector<Weight> of_a, const MetaGraph& b,
                       std::vector<Weight> of_b) {
  Matching result;
  result.a = std::move(of_a);
  result.b = std::move(of_b);
  const NameIndex names = index_of(result.b);
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

bool packed_alike(const MetaGraph& a, const Weight& of_a, const MetaGraph& b, const Weight& of_b) {
  if (!of_a.packed || !of_b.packed) return false;
  const LogicalTensor &x = a.logical[*of_a.packed], &y = b.logical[*of_b.packed];
  if (x.packing != y.packing || x.bits != y.bits || x.dtype != y.dtype || x.block != y.block ||
      x.companions.size() != y.companions.size())
    return false;
  const auto same = [&](TensorId i, TensorId j) {
    return a.tensor(i).dtype == b.tensor(j).dtype && a.tensor(i).shape == b.tensor(j).shape;
  };
  for (std::size_t i = 0; i < x.companions.size(); ++i)
    if (x.companions[i].kind != y.companions[i].kind || !same(x.companions[i].tensor, y.companions[i].tensor))
      return false;
  return same(x.codes, y.codes);
}

bool same_shape(const Shape& a, const Shape& b) {
  const auto single = [](const Shape& shape) {
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

// --- Compares metadata key by key.

namespace {

using Json = nlohmann::ordered_json;

constexpr std::string_view kSlackKey = "loadline.slack";  // only takes room in GGUF files
using Settings = std::vector<std::pair<std::string, Json>>;

std::string scalar_text(const MetaValue& value) {
  const auto* const text = std::get_if<std::string>(&value);
  return text == nullptr ? meta_text(value) : fmt::format("\"{}\"", *text);
}

// --- config.json

// Brackets outside of strings; the parser has not run yet.
bool is_deep(std::string_view json) {
  int depth = 0;
  bool inside = false;
  for (std::size_t i = 0; i < json.size(); ++i) {
    const char c = json[i];
    if (inside && c == '\\') ++i;
    if (c == '"') inside = !inside;
    if (inside) continue;
    if (c == '{' || c == '[') ++depth;
    if (c == '}' || c == ']') --depth;
    if (depth > kMostConfigDepth) return true;
  }
  return false;
}

void add_settings(const std::string& prefix, const Json& value, Settings& settings) {
  if (!value.is_object() || value.empty()) return settings.emplace_back(prefix, value), void();
  for (const auto& [key, held] : value.items())
    add_settings(prefix.empty() ? key : prefix + "." + key, held, settings);
}

// Nothing if the text cannot be compared setting by setting.
std::optional<Settings> config_settings(const std::string* text) {
  Settings settings;
  if (text == nullptr) return settings;
  if (is_deep(*text)) return std::nullopt;
  const Json config = Json::parse(*text, nullptr, false);
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
  const auto name = [](const std::string& key) { return fmt::format("{}: {}", kConfigKey, key); };
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
    const auto settings_a = config_settings(find_text(a_.graph, kConfigKey));
    const auto settings_b = config_settings(find_text(b_.graph, kConfigKey));
    const bool by_setting = settings_a && settings_b;
    const auto compared = [&](const MetaEntry& entry) {
      return entry.key != kSlackKey && (!by_setting || entry.key != kConfigKey);
    };
    std::map<std::string_view, const MetaValue*> of_b;
    for (const MetaEntry& entry : b_.graph.metadata)
      if (compared(entry)) of_b.emplace(entry.key, &entry.value);
    for (const MetaEntry& entry : a_.graph.metadata) {
      if (!compared(entry)) continue;
      const auto other = of_b.find(entry.key);
      if (other == of_b.end()) {
        found_.push_back({entry.key, scalar_text(entry.value), {}});
        continue;
      }
      diff_values(entry.key, entry.value, *other->second);
      of_b.erase(other);
    }
    for (const MetaEntry& entry : b_.graph.metadata)
      if (of_b.contains(entry.key)) found_.push_back({entry.key, {}, scalar_text(entry.value)});
    if (by_setting) diff_settings(*settings_a, *settings_b, found_);
    return std::move(found_);
  }

 private:
  void diff_values(const std::string& key, const MetaValue& a, const MetaValue& b) {
    const auto *x = std::get_if<MetaArray>(&a), *y = std::get_if<MetaArray>(&b);
    if (x != nullptr && y != nullptr) return diff_arrays(key, *x, *y);
    if (a == b) return;
    std::string of_a = scalar_text(a), of_b = scalar_text(b);
    if (of_a == of_b) {  // of different types
      of_a += fmt::format(" ({})", meta_type_name(meta_type(a)));
      of_b += fmt::format(" ({})", meta_type_name(meta_type(b)));
    }
    if (of_a != of_b) found_.push_back({key, of_a, of_b});
  }

  static MetaArrayReader reader(const MetadataSource& of, const MetaArray& array) {
    return of.header != nullptr ? MetaArrayReader(*of.header, array) : MetaArrayReader(of.graph, array);
  }

  void diff_arrays(const std::string& key, const MetaArray& a, const MetaArray& b) {
    std::string of_a = meta_text(a), of_b = meta_text(b);
    if (a.element == b.element) {
      MetaArrayReader x = reader(a_, a), y = reader(b_, b);
      std::optional<std::pair<MetaValue, MetaValue>> first;
      while (!first && x.remaining() > 0 && y.remaining() > 0) {
        progress_.check_cancelled();
        MetaValue of_x = x.next(), of_y = y.next();
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

}  // namespace loadline
