// Reads config.json with nlohmann::json.
#include "core/forward/family/model_config.h"

#include "core/assets/asset_file.h"
#include "core/base/text.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <iterator>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

namespace loadline::forward {

struct ModelConfig::Json {
  nlohmann::json root;
  bool nested = false;  // keys are looked up in text_config first

  const nlohmann::json* find(std::string_view key) const;
  const nlohmann::json* find_rope(std::string_view key) const;
};

namespace {

using nlohmann::json;

constexpr std::string_view kRootPrefix = "root.", kRopePrefix = "rope.";
constexpr const char* kText = "text_config";
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
    return json::parse(text, bounded);
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
    if (!at->is_object()) return nullptr;
    const auto found = at->find(std::string(key));
    if (found == at->end()) return nullptr;
    at = &*found;
  }
  return at;
}

std::string shown(const json& value) {
  constexpr std::size_t kMost = 60;
  if (value.is_array() && value.size() > 8) return fmt::format("a list of {}", value.size());
  if (value.is_object()) return fmt::format("an object of {}", value.size());
  return safe_display(value.dump(-1, ' ', false, json::error_handler_t::replace), kMost);
}

}  // namespace

// Null counts as absent in a part of the file that another part stands in for.
const json* ModelConfig::Json::find(std::string_view key) const {
  if (key.starts_with(kRopePrefix)) return find_rope(key.substr(kRopePrefix.size()));
  const bool whole = key.starts_with(kRootPrefix);
  if (whole) key.remove_prefix(kRootPrefix.size());
  if (nested && !whole)
    if (const json* const found = find_in(root[kText], key); found && !found->is_null()) return found;
  const json* const found = find_in(root, key);
  return found == nullptr && nested && !whole ? find_in(root[kText], key) : found;
}

// As PretrainedConfig.standardize_rope_params() of transformers 5 takes them.
const json* ModelConfig::Json::find_rope(std::string_view key) const {
  const auto held = [](const json* found) { return found != nullptr && !found->is_null() ? found : nullptr; };
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
  const json* const width = find_in(parsed->root, "hidden_size");
  const json* const text_part = find_in(parsed->root, kText);
  parsed->nested = (width == nullptr || width->is_null()) && text_part != nullptr && text_part->is_object();
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
  const std::function<void(const json&, const std::string&, bool)> walk =
      [&](const json& in, const std::string& prefix, bool hidden) {
        for (const auto& [key, value] : in.items()) {
          const std::string path = prefix + key;
          if (hidden && path == kText) continue;
          if (all.size() == kMostSettings) return;
          if (value.is_object() && value.size() <= kMostFields) {
            walk(value, path + ".", hidden);
          } else if (!value.is_null()) {
            const json* const inner = hidden ? find_in(json_->root[kText], path) : nullptr;
            const bool shadowed = inner != nullptr && !inner->is_null();
            if (shadowed && *inner == value) continue;
            all.push_back({(shadowed ? std::string(kRootPrefix) : "") + path, shown(value)});
          }
        }
      };
  if (json_->nested) walk(json_->root[kText], "", false);
  walk(json_->root, "", json_->nested);
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

}  // namespace loadline::forward
