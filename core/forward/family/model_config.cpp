// Reads config.json with nlohmann::json.
#include "core/forward/family/model_config.h"

#include "core/assets/json_fault.h"
#include "core/base/text.h"

#include <cmath>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace loadline {

struct ModelConfig::Json {
  nlohmann::json root;
  bool nested = false;  // keys are looked up in text_config first
};

namespace {

using nlohmann::json;

constexpr std::string_view kRootPrefix = "root.";
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
    throw Error(ErrorCode::malformed, {.file = path}, json_fault(text));
  }
}

Datum datum(const json& value) {
  if (value.is_boolean()) return Datum(std::int64_t{value.get<bool>()});
  if (value.is_number_unsigned() && value.get<std::uint64_t>() > INT64_MAX)
    return Datum(static_cast<double>(value.get<std::uint64_t>()));
  if (value.is_number_integer()) return Datum(value.get<std::int64_t>());
  if (value.is_number_float()) {
    constexpr double kExact = 9007199254740992.0;  // 2^53
    const double number = value.get<double>();
    if (std::trunc(number) == number && std::abs(number) < kExact)
      return Datum(static_cast<std::int64_t>(number));
    return Datum(number);
  }
  if (value.is_string()) return Datum(value.get<std::string>());
  if (value.is_array()) {
    std::vector<Datum> list;
    for (const json& item : value) list.push_back(datum(item));
    return Datum(std::move(list));
  }
  return value.is_object() ? Datum(Datum::Object{static_cast<std::int64_t>(value.size())}) : Datum();
}

const json* find(const json& in, std::string_view path) {
  const json* at = &in;
  while (!path.empty()) {
    const std::string_view key = path.substr(0, path.find('.'));
    path.remove_prefix(std::min(key.size() + 1, path.size()));
    if (!at->is_object()) return nullptr;
    const auto found = at->find(std::string(key));
    if (found == at->end() || found->is_null()) return nullptr;
    at = &*found;
  }
  return at;
}

}  // namespace

ModelConfig::ModelConfig(std::string_view text, const std::string& path) : path_(path) {
  auto parsed = std::make_shared<Json>();
  parsed->root = parse(text, path);
  if (!parsed->root.is_object()) throw fail("not a JSON object");
  if (const json* const classes = find(parsed->root, "architectures"); classes && !classes->is_array())
    throw fail("'architectures' is {}: a list of class names expected", datum(*classes).shown());
  parsed->nested = !find(parsed->root, "hidden_size") && find(parsed->root, "text_config");
  json_ = std::move(parsed);
}

Datum ModelConfig::get(std::string_view key) const {
  constexpr std::uint64_t kMostValues = 100'000;  // expressions may look at all of them in every layer
  const Datum value = find_value(key);
  if (value.total() > kMostValues)
    throw fail(fmt::format("'{}' holds {} values, the limit is {}", safe_display(key, 60), value.total(),
                           kMostValues),
               ErrorCode::limit);
  return value;
}

Datum ModelConfig::find_value(std::string_view key) const {
  const bool whole = key.starts_with(kRootPrefix);
  if (whole) key.remove_prefix(kRootPrefix.size());
  if (json_->nested && !whole)
    if (const json* const found = find(json_->root, fmt::format("text_config.{}", key))) return datum(*found);
  const json* const found = find(json_->root, key);
  return found == nullptr ? Datum() : datum(*found);
}

std::string ModelConfig::text(std::string_view key, std::string_view otherwise) const {
  const Datum value = get(key);
  if (value.null()) return std::string(otherwise);
  if (value.text() == nullptr) throw fail("'{}' is not a string", key);
  return *value.text();
}

std::vector<std::string> ModelConfig::architectures() const {
  std::vector<std::string> names;
  const json* const found = find(json_->root, "architectures");
  if (found != nullptr && found->is_array())
    for (const json& name : *found)
      if (name.is_string() && names.size() < kMostClasses) names.push_back(name.get<std::string>());
  return names;
}

}  // namespace loadline
