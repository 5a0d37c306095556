// Reads config.json with nlohmann::json; follows names back to settings for messages.
#include "core/forward/family/model_config.h"

#include "core/assets/asset_file.h"
#include "core/base/text.h"

#include <algorithm>
#include <cmath>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

namespace loadline::forward {

// --- Reads config.json with nlohmann::json.

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

assets::Datum ModelConfig::get(std::string_view key) const {
  constexpr std::uint64_t kMostValues = 100'000;  // expressions may look at all of them in every layer
  const assets::Datum value = find_value(key);
  if (value.total() > kMostValues)
    throw fail(fmt::format("'{}' holds {} values, the limit is {}", safe_display(key, 60), value.total(),
                           kMostValues),
               ErrorCode::limit);
  return value;
}

assets::Datum ModelConfig::find_value(std::string_view key) const {
  const bool whole = key.starts_with(kRootPrefix);
  if (whole) key.remove_prefix(kRootPrefix.size());
  if (json_->nested && !whole)
    if (const json* const found = find(json_->root, fmt::format("text_config.{}", key))) return datum(*found);
  const json* const found = find(json_->root, key);
  return found == nullptr ? assets::Datum() : datum(*found);
}

std::string ModelConfig::text(std::string_view key, std::string_view otherwise) const {
  const assets::Datum value = get(key);
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

// --- Follows defined names back to the settings that they were made from.

namespace {

constexpr std::size_t kMostRead = 16, kMostSettings = 8;  // of one line

void add_once(std::vector<std::string>& names, std::string_view name, std::size_t most) {
  if (names.size() < most && std::ranges::find(names, name) == names.end()) names.emplace_back(name);
}

}  // namespace

void SettingsRead::note(std::string_view name) { add_once(read_, name, kMostRead); }

void SettingsRead::define(std::string_view name) {
  defined_by_.insert_or_assign(std::string(name), settings());
}

std::vector<std::string> SettingsRead::settings() const {
  std::vector<std::string> found;
  for (const std::string& name : read_) {
    const auto defined = defined_by_.find(name);
    if (defined != defined_by_.end())
      for (const std::string& setting : defined->second) add_once(found, setting, kMostSettings);
    else if (held_.contains(name))
      add_once(found, name, kMostSettings);
  }
  return found;
}

std::string SettingsRead::misfit(std::string_view message, const std::string& path) const {
  const std::string begin = path + ": line ";
  const std::size_t end = message.starts_with(begin) ? message.find(": ", begin.size()) : message.npos;
  if (end == message.npos) return fmt::format("does not fit the architecture: {}", message);
  std::string held, lacking;
  for (const std::string& setting : settings()) {
    std::string& list = held_.find(setting)->second ? held : lacking;
    list += fmt::format("{}'{}'", list.empty() ? "" : ", ", safe_display(setting, 60));
  }
  std::string reads = held.empty() ? "" : ", which reads " + held;
  if (!lacking.empty()) reads += "; not set: " + lacking;
  return fmt::format("does not fit the architecture: {} ({}{})", message.substr(end + 2),
                     message.substr(0, end), reads);
}

}  // namespace loadline::forward
