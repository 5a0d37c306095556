// Compares metadata key by key.
#include "core/base/text.h"
#include "core/inspect/diff_metadata.h"
#include "core/io/graph_reader.h"

#include <algorithm>
#include <map>
#include <string_view>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace loadline {
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
