// Evaluates a family's "config" lines over the keys and tensors of a file.
#include "core/base/error.h"
#include "core/base/text.h"
#include "core/forward/family/operators.h"
#include "core/forward/family/tensor_names.h"
#include "core/forward/gguf/gguf_map.h"
#include "core/graph/names/tensor_names.h"
#include "core/io/graph_reader.h"
#include "core/io/source_file.h"

#include <algorithm>
#include <cmath>
#include <map>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

namespace loadline::forward {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::string_view kArchitecture = "general.architecture";
constexpr std::uint64_t kMostNumbers = 100'000;  // of an array, or of a tensor whose values are read
constexpr std::uint64_t kMostWork = 10'000'000;  // of expressions

// Keys that no size depends on beyond what the tensors and the keys that a family reads show.
constexpr std::pair<std::string_view, std::string_view> kOfNoSize[] = {
    {"*_scale", "scales numbers"},
    {"*.scale", "scales numbers"},
    {"*epsilon", "is a part of what norms divide by"},
    {"*softcapping", "limits numbers"},
    {"attention.clamp_kqv", "limits numbers"},
    {"attention.group_norm_groups", "says which numbers a norm takes together"},
    {"attention.relative_buckets_count", "is seen in the table's shape"},
    {"attention.temperature_length", "scales numbers"},
    {"attention.value_length*", "is seen in the shapes of tensors"},
    {"classifier.output_labels*", "names the classes of a head, which its weights count"},
    {"context_length", "is the most tokens: how many there are is asked for"},
    {"decoder_start_token_id", "names a token"},
    {"expert_feed_forward_length", "is seen in the shapes of tensors"},
    {"expert_gating_func", "says how experts are weighed"},
    {"expert_group_count", "says among which experts a token's are chosen"},
    {"expert_group_used_count", "says among which experts a token's are chosen"},
    {"expert_shared_count", "is seen in the shapes of tensors"},
    {"expert_shared_feed_forward_length", "is seen in the shapes of tensors"},
    {"expert_weights_norm", "says how experts are weighed"},
    {"pooling_type", "says what is made of the results"},
    {"rope.*", "turns queries and keys, or scales them"},
    {"swiglu_clamp_*", "limits numbers"},
    {"tensor_data_layout", "says in which order rows are stored"},
    {"vocab_size", "is seen in the embedding's shape"},
};

assets::Datum whole_or_real(double number) {
  constexpr double kExact = 9007199254740992.0;  // 2^53
  if (std::trunc(number) == number && std::abs(number) < kExact)
    return assets::Datum(static_cast<std::int64_t>(number));
  return assets::Datum(number);
}

assets::Datum datum_of(const graph::MetaValue& value) {
  return std::visit(
      [](const auto& one) -> assets::Datum {
        using Type = std::decay_t<decltype(one)>;
        if constexpr (std::is_same_v<Type, std::string>)
          return assets::Datum(one);
        else if constexpr (std::is_same_v<Type, graph::MetaArray>)
          return assets::Datum(assets::Datum::Object{
              static_cast<std::int64_t>(std::min<std::uint64_t>(one.count, INT64_MAX))});
        else if constexpr (std::is_floating_point_v<Type>)
          return whole_or_real(one);
        else if constexpr (std::is_same_v<Type, std::uint64_t>)
          return one > INT64_MAX ? assets::Datum(static_cast<double>(one))
                                 : assets::Datum(static_cast<std::int64_t>(one));
        else
          return assets::Datum(static_cast<std::int64_t>(one));
      },
      value);
}

class Reading {
 public:
  Reading(const graph::MetaGraph& graph, const GgufFamily& family, std::string architecture)
      : family_(family), prefix_(std::move(architecture) + "."), header_(graph, {}) {
    scope_.work = &work_;
    scope_.name = [this](std::string_view name) { return value_of(name); };
    scope_.call = [this](std::string_view function, std::span<const assets::Datum> arguments) {
      return call(function, arguments);
    };
  }

  GgufConfig read() {
    check_lists();
    GgufConfig config{.family = &family_};
    Json root = Json::object();
    for (const ConfigRule& rule : family_.config) {
      const assets::Datum value = rule.value.evaluate(scope_);
      names_.insert_or_assign(rule.name, value);
      if (rule.type != ConfigType::local && (!value.null() || rule.write_null))
        put(root, rule.name, json_of(rule, value));
    }
    config.json = root.dump(2);
    for (const auto& [remark, holds] : family_.remarks)
      if (holds.evaluate(scope_).truth()) config.remarks.push_back(remark);
    for (const auto& [name, value] : family_.flags) config.flags.emplace_back(name, value.evaluate(scope_));
    config.keys = found_;
    config.unread = unread();
    return config;
  }

 private:
  // Numbers of 0 and flags that are off count nothing.
  std::vector<Setting> unread() const {
    std::vector<Setting> left;
    for (const graph::MetaEntry& entry : header_.graph().metadata) {
      if (!entry.key.starts_with(prefix_) || std::ranges::find(found_, entry.key) != found_.end()) continue;
      const std::string_view name = std::string_view(entry.key).substr(prefix_.size());
      const assets::Datum value = datum_of(entry.value);
      const bool off = value.number() != nullptr && *value.number() == 0;
      if (!off && std::ranges::none_of(kOfNoSize,
                                       [&](const auto& row) { return graph::glob_matches(row.first, name); }))
        left.push_back({entry.key, safe_display(graph::meta_text(entry.value), 60)});
    }
    return left;
  }

  // llama.cpp refuses a file whose lists have another length than the model has layers.
  void check_lists() const {
    const graph::MetaValue* const layers = graph::find_metadata(header_.graph(), prefix_ + "block_count");
    const assets::Datum count = layers == nullptr ? assets::Datum() : datum_of(*layers);
    if (count.number() == nullptr) return;
    for (const char* const name :
         {"attention.head_count", "attention.head_count_kv", "feed_forward_length"}) {
      const graph::MetaValue* const value = graph::find_metadata(header_.graph(), prefix_ + name);
      const auto* const list = value == nullptr ? nullptr : std::get_if<graph::MetaArray>(value);
      if (list != nullptr &&
          static_cast<std::int64_t>(std::min<std::uint64_t>(list->count, INT64_MAX)) != *count.number())
        throw Error(ErrorCode::malformed,
                    {.file = header_.graph().files.empty() ? "" : header_.graph().files.front().path},
                    "the key '{}{}' has {} numbers, the model has {} layers", prefix_, name, list->count,
                    *count.number());
    }
  }

  // A line before this one, a key of the architecture, or a whole key.
  assets::Datum value_of(std::string_view name) const {
    if (const auto found = names_.find(name); found != names_.end()) return found->second;
    if (const auto known = keys_.find(name); known != keys_.end()) return known->second;
    std::string key = prefix_ + std::string(name);
    const graph::MetaValue* value = graph::find_metadata(header_.graph(), key);
    if (value == nullptr) value = graph::find_metadata(header_.graph(), key = name);
    if (value != nullptr) found_.push_back(std::move(key));
    assets::Datum result = value == nullptr ? assets::Datum() : datum_of(*value);
    if (const auto* const array = value == nullptr ? nullptr : std::get_if<graph::MetaArray>(value))
      if (array->element != graph::MetaType::string && array->count <= kMostNumbers) result = numbers(*array);
    return keys_.emplace(std::string(name), std::move(result)).first->second;
  }

  assets::Datum numbers(const graph::MetaArray& array) const {
    std::vector<assets::Datum> list;
    for (const graph::MetaValue& value : io::read_meta_array(header_.graph(), array, 0, array.count))
      list.push_back(datum_of(value));
    return assets::Datum(std::move(list));
  }

  // Of a tensor: has(NAME), side(NAME, axis), numbers(NAME) of an F32 vector, largest(NAME) of those. Of a
  // value: one(list) if all are alike, choose(list, a, b) by the truth of each. dtype(): of most weights.
  // layer_kinds(layers, pattern): a window in all layers but each n-th, or in those that a list says.
  // yarn_scale(factor, number): transformers' attention_factor for llama.cpp's attn_factor.
  std::optional<assets::Datum> call(std::string_view function,
                                    std::span<const assets::Datum> arguments) const {
    if (function == "dtype" && arguments.empty()) return assets::Datum(std::string(main_dtype()));
    if (function == "one" && arguments.size() == 1) return one(arguments[0]);
    if (function == "choose" && arguments.size() == 3 && arguments[0].list() != nullptr)
      return choose(*arguments[0].list(), arguments[1], arguments[2]);
    if (function == "layer_kinds" && arguments.size() == 2) return layer_kinds(arguments[0], arguments[1]);
    if (function == "yarn_scale" && arguments.size() == 2) {
      const double factor = std::max(1.0, real_of(arguments[0]));
      return assets::Datum((1 + 0.1 * std::log(factor)) * real_of(arguments[1]));
    }
    const std::string* const name = arguments.empty() ? nullptr : arguments[0].text();
    if (name == nullptr) return std::nullopt;
    const auto id = header_.find(expand_name(*name, family_.architecture.place(), scope_));
    if (function == "has" && arguments.size() == 1) return assets::Datum(std::int64_t{id.has_value()});
    if (function == "side" && arguments.size() == 2 && arguments[1].number() != nullptr)
      return id ? side(*id, *arguments[1].number()) : assets::Datum();
    if (function == "numbers" && arguments.size() == 1) return id ? vector_of(*id) : assets::Datum();
    if (function == "largest" && arguments.size() == 1) return id ? largest(vector_of(*id)) : assets::Datum();
    return std::nullopt;
  }

  assets::Datum side(graph::TensorId id, std::int64_t axis) const {
    const graph::Shape& shape = header_.graph().tensor(id).shape;
    if (axis < 0 || static_cast<std::uint64_t>(axis) >= shape.size()) return assets::Datum();
    return assets::Datum(static_cast<std::int64_t>(shape[static_cast<std::size_t>(axis)]));
  }

  static assets::Datum one(const assets::Datum& value) {
    if (value.list() == nullptr) return value;
    const std::vector<assets::Datum>& list = *value.list();
    const bool alike = !list.empty() && std::ranges::all_of(list, [&](const assets::Datum& item) {
      return item == list.front();
    });
    return alike ? list.front() : value;
  }
  static assets::Datum choose(const std::vector<assets::Datum>& list, const assets::Datum& yes,
                              const assets::Datum& no) {
    std::vector<assets::Datum> chosen;
    for (const assets::Datum& item : list) chosen.push_back(item.truth() ? yes : no);
    return assets::Datum(std::move(chosen));
  }

  static double real_of(const assets::Datum& value) {
    if (value.real() != nullptr) return *value.real();
    return value.number() == nullptr ? std::nan("") : static_cast<double>(*value.number());
  }

  static assets::Datum layer_kinds(const assets::Datum& layers, const assets::Datum& pattern) {
    const assets::Datum slides(std::string("sliding_attention")), sees_all(std::string("full_attention"));
    if (pattern.list() != nullptr) return choose(*pattern.list(), slides, sees_all);
    constexpr std::int64_t kMostLayers = 10'000;
    if (layers.number() == nullptr || *layers.number() > kMostLayers || pattern.number() == nullptr)
      return assets::Datum();
    std::vector<assets::Datum> kinds;
    for (std::int64_t i = 1; i <= *layers.number(); ++i)
      kinds.push_back(*pattern.number() == 0 || i % *pattern.number() != 0 ? slides : sees_all);
    return assets::Datum(std::move(kinds));
  }

  assets::Datum vector_of(graph::TensorId id) const {
    const graph::MetaGraph& graph = header_.graph();
    const graph::Tensor& tensor = graph.tensor(id);
    const std::uint64_t count = graph::elements(tensor);
    if (tensor.dtype != graph::DType::f32 || count > kMostNumbers)
      throw Error(ErrorCode::malformed, {.tensor = tensor.name.str()},
                  "{} {} numbers: a vector of F32 with at most {} expected", count,
                  graph::dtype_info(tensor.dtype).name, kMostNumbers);
    const graph::Storage& storage = graph.storage(tensor.storage);
    std::vector<assets::Datum> list;
    if (storage.file == graph::kNoFile || storage.encoding != graph::Encoding::plain)
      return assets::Datum(std::move(list));
    const io::SourceFile file = io::SourceFile::open(graph.file(storage.file).path);
    std::vector<float> values(count);
    file.read_at(storage.offset + tensor.offset, std::as_writable_bytes(std::span(values)));
    for (const float value : values) list.push_back(whole_or_real(value));
    return assets::Datum(std::move(list));
  }
  static assets::Datum largest(const assets::Datum& of) {
    std::optional<double> most;
    for (const assets::Datum& item : *of.list()) {
      const double value = item.real() != nullptr ? *item.real() : static_cast<double>(*item.number());
      most = std::max(most.value_or(value), value);
    }
    return most ? whole_or_real(*most) : assets::Datum();
  }

  // The type of most bytes of matrices; "float16" where they are quantized.
  std::string_view main_dtype() const {
    std::map<graph::DType, std::uint64_t> bytes;
    for (const graph::Tensor& tensor : header_.graph().tensors)
      if (tensor.shape.size() > 1) bytes[tensor.dtype] += graph::tensor_bytes(header_.graph(), tensor);
    graph::DType most = graph::DType::f16;
    for (const auto& [dtype, count] : bytes)
      if (!bytes.contains(most) || count > bytes[most]) most = dtype;
    const bool plain = most == graph::DType::f32 || most == graph::DType::bf16;
    return graph::dtype_info(plain ? most : graph::DType::f16).torch;
  }

  [[noreturn]] static void misfit(const ConfigRule& rule, const assets::Datum& value,
                                  std::string_view expected) {
    rule.value.place().fail("'{}' is {}: {} expected", rule.name, value.shown(), expected);
  }

  static Json json_of(const ConfigRule& rule, const assets::Datum& value) {
    if (value.null()) return nullptr;
    switch (rule.type) {
      case ConfigType::whole:
        if (value.list() != nullptr) return list_of(rule, value);  // one number for each layer
        if (value.number() == nullptr) misfit(rule, value, "a whole number");
        return *value.number();
      case ConfigType::boolean:
        return value.truth();
      case ConfigType::text:
        if (value.text() == nullptr) misfit(rule, value, "a text");
        return *value.text();
      case ConfigType::list:
        return list_of(rule, value);
      case ConfigType::real:
      case ConfigType::local:
        break;
    }
    return real(rule, value);
  }

  // What was written as F32 is shown with the digits that F32 needs: 1e-05, not 9.999999747378752e-06.
  static Json real(const ConfigRule& rule, const assets::Datum& value) {
    if (value.number() != nullptr) return static_cast<double>(*value.number());
    if (value.real() == nullptr || !std::isfinite(*value.real())) misfit(rule, value, "a number");
    const auto single = static_cast<float>(*value.real());
    if (static_cast<double>(single) != *value.real()) return *value.real();
    return std::stod(fmt::format("{}", single));
  }

  static Json list_of(const ConfigRule& rule, const assets::Datum& value) {
    if (value.list() == nullptr) misfit(rule, value, "a list");
    Json list = Json::array();
    for (const assets::Datum& item : *value.list()) {
      if (item.text() != nullptr)
        list.push_back(*item.text());
      else if (item.number() != nullptr)
        list.push_back(*item.number());
      else
        list.push_back(real(rule, item));
    }
    return list;
  }

  // "rope_scaling.factor" is the field of an object.
  static void put(Json& root, std::string_view name, Json value) {
    Json* at = &root;
    for (std::size_t dot = name.find('.'); dot != std::string_view::npos; dot = name.find('.')) {
      at = &(*at)[std::string(name.substr(0, dot))];
      name.remove_prefix(dot + 1);
    }
    (*at)[std::string(name)] = std::move(value);
  }

  const GgufFamily& family_;
  std::string prefix_;  // "llama."
  Header header_;
  assets::Scope scope_;
  std::uint64_t work_ = kMostWork;
  std::map<std::string, assets::Datum, std::less<>> names_;         // of earlier lines
  mutable std::map<std::string, assets::Datum, std::less<>> keys_;  // that were read
  mutable std::vector<std::string> found_;                          // of these, the file's
};

// Null for another format, and without the keys of an architecture: some files keep the names of a
// checkpoint.
const std::string* architecture_of(const graph::MetaGraph& graph) {
  const std::string* const name = graph.format == "gguf" ? graph::find_text(graph, kArchitecture) : nullptr;
  const auto is_own = [&](const graph::MetaEntry& entry) {
    return entry.key.size() > name->size() && entry.key.starts_with(*name) && entry.key[name->size()] == '.';
  };
  return name == nullptr || std::ranges::none_of(graph.metadata, is_own) ? nullptr : name;
}

}  // namespace

std::optional<GgufConfig> gguf_config(const graph::MetaGraph& graph, const GgufFamily& family) {
  const std::string* const architecture = architecture_of(graph);
  if (architecture == nullptr) return std::nullopt;
  const std::string path = graph.files.empty() ? "" : graph.files.front().path;
  try {
    return Reading(graph, family, *architecture).read();
  } catch (const Error& error) {
    if (error.place().file != family.path) throw;
    throw Error(error.code(), {.file = path}, "its keys do not fit the family '{}': {}",
                safe_display(*architecture, 60), error.what());
  }
}

std::optional<GgufConfig> gguf_config(const graph::MetaGraph& graph) {
  const std::string* const architecture = architecture_of(graph);
  if (architecture == nullptr || *architecture == kAnyArchitecture) return std::nullopt;
  const GgufFamily* const family = find_gguf_reader(*architecture);
  return family == nullptr ? std::nullopt : gguf_config(graph, *family);
}

std::optional<GgufConfig> usual_gguf_config(const graph::MetaGraph& graph) {
  return gguf_config(graph, *find_gguf_reader(kAnyArchitecture));
}

}  // namespace loadline::forward
