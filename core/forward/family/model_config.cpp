// Reads config.json with nlohmann::json.
#include "core/forward/family/model_config.h"

#include "core/assets/asset_file.h"
#include "core/base/json.h"
#include "core/base/text.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <iterator>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

namespace loadline::forward {

struct ModelConfig::Json {
  nlohmann::json root;
  const nlohmann::json* part = nullptr;  // of the root: where keys are looked up; null: the root
  bool decoder = false;                  // the part is no model of its own

  const nlohmann::json* find(std::string_view key) const;
  const nlohmann::json* find_rope(std::string_view key) const;
};

namespace {

using nlohmann::json;

constexpr std::string_view kRootPrefix = "root.", kRopePrefix = "rope.";
constexpr std::size_t kMostClasses = 100;  // real models have one

// A limit on nesting keeps the recursion of the parser and of the value short.
json parse(std::string_view text, const std::string& path) {
  int depth = 0;
  const auto bounded = [&](int, json::parse_event_t event, json&) {
    using E = json::parse_event_t;
    if (event == E::object_start || event == E::array_start) ++depth;
    if (event == E::object_end || event == E::array_end) --depth;
    if (depth > 64) throw Error(ErrorCode::malformed, {.file = path}, "nested more than 64 levels deep");
    return true;
  };
  try {
    json read = json::parse(text, bounded, false);
    if (!read.is_discarded()) return read;
    depth = 0;
    return json::parse(strict_json(text), bounded);
  } catch (const json::exception&) {
    throw Error(ErrorCode::malformed, {.file = path}, assets::json_fault(text));
  }
}

assets::Datum datum(const json& value) {
  if (value.is_boolean()) return assets::Datum(std::int64_t{value.get<bool>()});
  if (value.is_number_unsigned() && value.get<std::uint64_t>() > INT64_MAX)
    return assets::Datum(static_cast<double>(value.get<std::uint64_t>()));
  if (value.is_number_integer()) return assets::Datum(value.get<std::int64_t>());
  if (value.is_number_float()) {
    constexpr double kExact = 9007199254740992.0;  // 2^53
    const double number = value.get<double>();
    if (std::trunc(number) == number && std::abs(number) < kExact)
      return assets::Datum(static_cast<std::int64_t>(number));
    return assets::Datum(number);
  }
  if (value.is_string()) return assets::Datum(value.get<std::string>());
  if (value.is_array()) {
    std::vector<assets::Datum> list;
    for (const json& item : value) list.push_back(datum(item));
    return assets::Datum(std::move(list));
  }
  return value.is_object() ? assets::Datum(assets::Datum::Object{static_cast<std::int64_t>(value.size())})
                           : assets::Datum();
}

// The value at the dotted path, be it null; null where a part of it is missing.
const json* find_in(const json& in, std::string_view path) {
  const json* at = &in;
  while (!path.empty()) {
    const std::string_view key = path.substr(0, path.find('.'));
    path.remove_prefix(std::min(key.size() + 1, path.size()));
    if (at->is_array()) {  // "blocks.3.heads"
      const auto i = text_as<std::size_t>(key);
      if (!i || *i >= at->size()) return nullptr;
      at = &(*at)[*i];
      continue;
    }
    if (!at->is_object()) return nullptr;
    const auto found = at->find(std::string(key));
    if (found == at->end()) return nullptr;
    at = &*found;
  }
  return at;
}

constexpr std::string_view kTie = "tie_word_embeddings";

const json* held(const json* found) { return found != nullptr && !found->is_null() ? found : nullptr; }

std::string shown(const json& value) {
  constexpr std::size_t kMost = 60;
  if (value.is_array() && value.size() > 8) return fmt::format("a list of {}", value.size());
  if (value.is_object()) return fmt::format("an object of {}", value.size());
  return safe_display(value.dump(-1, ' ', false, json::error_handler_t::replace), kMost);
}

// The settings of a language model where those of several parts lie side by side. A width that all parts
// share may stand at the top.
const json* part_of(const json& root, std::initializer_list<std::string_view> names) {
  const bool sized = held(find_in(root, "hidden_size")) != nullptr;
  const bool layered =
      std::ranges::any_of(std::array{"num_hidden_layers", "num_layers", "n_layer"},
                          [&](const char* key) { return held(find_in(root, key)) != nullptr; });
  if (sized && (layered || held(find_in(root, "text_config.num_hidden_layers")) == nullptr)) return nullptr;
  for (const std::string_view name : names)
    if (const json* const found = find_in(root, name); found != nullptr && found->is_object()) return found;
  return nullptr;
}

// Settings at the top that hold for a part too. Any other describes the whole or another part: a "head_dim"
// at the top is none of the language model's.
bool is_of_all_parts(std::string_view key) {
  constexpr std::array<std::string_view, 9> kKeys = {"architectures",
                                                     "model_type",
                                                     "dtype",
                                                     "torch_dtype",
                                                     "id2label",
                                                     "num_labels",
                                                     kTie,
                                                     "projection_dim",
                                                     "loadline_stored_buffers"};
  return std::ranges::find(kKeys, key) != kKeys.end() || key.substr(0, key.find('.')).ends_with("_config");
}

}  // namespace

// Null counts as absent in a part of the file that another part stands in for.
const json* ModelConfig::Json::find(std::string_view key) const {
  if (key.starts_with(kRopePrefix)) return find_rope(key.substr(kRopePrefix.size()));
  const bool whole = key.starts_with(kRootPrefix);
  if (whole) key.remove_prefix(kRootPrefix.size());
  if (whole || part == nullptr) return find_in(root, key);
  // whether weights are tied is said at the top for all parts
  const bool top_first = key == kTie || (decoder && key == "model_type");
  const json* const top = top_first || is_of_all_parts(key) ? find_in(root, key) : nullptr;
  const json* const inner = find_in(*part, key);
  const json* const first = top_first ? top : inner;
  const json* const second = top_first ? inner : top;
  if (held(first) != nullptr) return first;
  return second != nullptr ? second : first;
}

// As PretrainedConfig.standardize_rope_params() of transformers 5 takes them.
const json* ModelConfig::Json::find_rope(std::string_view key) const {
  constexpr std::string_view kBeside[] = {"original_max_position_embeddings", "partial_rotary_factor",
                                          "rope_theta"};
  const bool beside = std::ranges::find(kBeside, key) != std::end(kBeside);
  const json* const outside = beside ? held(find(key)) : nullptr;
  if (outside != nullptr && key == kBeside[0]) return outside;
  for (const char* const name : {"rope_scaling", "rope_parameters"}) {
    const json* const object = held(find(name));
    if (object == nullptr || !object->is_object() || object->empty()) continue;
    const json* found = held(find_in(*object, key));
    if (found == nullptr && key.ends_with("rope_type"))  // an older spelling
      found = held(find_in(*object, std::string(key.substr(0, key.size() - 9)) + "type"));
    return found != nullptr ? found : outside;
  }
  return outside;
}

ModelConfig::ModelConfig(std::string_view text, const std::string& path) : path_(path) {
  auto parsed = std::make_shared<Json>();
  parsed->root = parse(text, path);
  if (!parsed->root.is_object()) throw fail("not a JSON object");
  const json* const classes = find_in(parsed->root, "architectures");
  if (classes != nullptr && !classes->is_null() && !classes->is_array())
    throw fail("'architectures' is {}: a list of class names expected", datum(*classes).shown());
  parsed->part = part_of(parsed->root, {"text_config", "language_config", "llm_config", "lm_config",
                                        "thinker_config.text_config", "vlm_config.text_config"});
  if (parsed->part == nullptr) {
    parsed->part = part_of(parsed->root, {"decoder", "decoder_config", "generator"});
    parsed->decoder = parsed->part != nullptr;
  }
  json_ = std::move(parsed);
}

assets::Datum ModelConfig::get(std::string_view key) const {
  constexpr std::uint64_t kMostValues = 100'000;  // expressions may look at all of them in every layer
  const json* const found = json_->find(key);
  const assets::Datum value = found == nullptr ? assets::Datum() : datum(*found);
  if (value.total() > kMostValues)
    throw fail(fmt::format("'{}' holds {} values, the limit is {}", safe_display(key, 60), value.total(),
                           kMostValues),
               ErrorCode::limit);
  return value;
}

bool ModelConfig::given(std::string_view key) const { return json_->find(key) != nullptr; }

std::vector<Setting> ModelConfig::settings() const {
  constexpr std::size_t kMostSettings = 10'000, kMostFields = 500;
  std::vector<Setting> all;
  const auto add = [&](const json& value, const std::string& path, bool top) {
    const json* const plain = json_->find(path);        // another one of this name may go first
    if (plain == &value || (!top && plain == nullptr))  // a name with a dot in it is not found
      all.push_back({path, shown(value)});
    else if (top && (plain == nullptr || *plain != value))
      all.push_back({std::string(kRootPrefix) + path, shown(value)});
  };
  const std::function<void(const json&, const std::string&, bool)> walk =
      [&](const json& in, const std::string& prefix, bool top) {
        for (const auto& [key, value] : in.items()) {
          if (top && &value == json_->part) continue;
          if (all.size() == kMostSettings) return;
          if (value.is_object() && value.size() <= kMostFields)
            walk(value, prefix + key + ".", top);
          else if (!value.is_null())
            add(value, prefix + key, top);
        }
      };
  if (json_->part != nullptr) walk(*json_->part, "", false);
  walk(json_->root, "", true);
  if (all.size() == kMostSettings) all.push_back({"...", fmt::format("behind {} others", kMostSettings)});
  return all;
}

std::string ModelConfig::text(std::string_view key, std::string_view otherwise) const {
  const assets::Datum value = get(key);
  if (value.null()) return std::string(otherwise);
  if (value.text() == nullptr) throw fail("'{}' is not a string", key);
  return *value.text();
}

std::vector<std::string> ModelConfig::architectures() const {
  std::vector<std::string> names;
  const json* const found = find_in(json_->root, "architectures");
  if (found != nullptr && found->is_array())
    for (const json& name : *found)
      if (name.is_string() && names.size() < kMostClasses) names.push_back(name.get<std::string>());
  return names;
}

std::optional<std::uint64_t> ModelConfig::first_count(std::initializer_list<std::string_view> keys) const {
  for (const std::string_view key : keys) {
    const assets::Datum value = get(key);
    if (value.number() != nullptr && *value.number() > 0) return static_cast<std::uint64_t>(*value.number());
  }
  return std::nullopt;
}

std::string ModelConfig::dtype_name(std::string_view otherwise) const {
  constexpr std::string_view kModule = "torch.";
  std::string name = text("dtype", text("torch_dtype", otherwise));
  if (name.starts_with(kModule)) name.erase(0, kModule.size());
  return name;
}

bool ModelConfig::is_part_of_another() const { return json_->part != nullptr; }

std::vector<std::string> ModelConfig::other_parts() const {
  std::vector<std::string> names;
  for (const auto& [name, value] : json_->root.items()) {
    const bool sized = std::ranges::any_of(
        std::array{"model_type", "hidden_size", "num_hidden_layers", "depth", "embed_dim", "width"},
        [&value = value](const char* key) { return value.is_object() && value.contains(key); });
    if (sized && name.ends_with("_config") && &value != json_->part && names.size() < kMostClasses)
      names.push_back(name);
  }
  return names;
}

}  // namespace loadline::forward
