// Looks into config.json; anything that is not a JSON object counts as no config.
#include "core/graph/packed/config_text.h"

#include <nlohmann/json.hpp>

namespace loadline {

namespace {

// The top-level value under `key`; null without one.
nlohmann::json config_value(const MetaGraph& graph, std::string_view key) {
  const std::string* const text = find_text(graph, kConfigKey);
  if (text == nullptr) return {};
  // only the first two levels are built: a deeply nested file cannot make anything recurse
  const auto keep = [](int depth, nlohmann::json::parse_event_t, nlohmann::json&) { return depth <= 2; };
  const auto json = nlohmann::json::parse(*text, keep, false);
  return json.is_object() ? json.value(std::string(key), nlohmann::json()) : nlohmann::json();
}

}  // namespace

std::optional<std::string> config_text(const MetaGraph& graph, std::string_view key) {
  const nlohmann::json value = config_value(graph, key);
  return value.is_string() ? std::optional(value.get<std::string>()) : std::nullopt;
}

std::optional<bool> config_flag(const MetaGraph& graph, std::string_view key) {
  const nlohmann::json value = config_value(graph, key);
  return value.is_boolean() ? std::optional(value.get<bool>()) : std::nullopt;
}

std::optional<std::string> model_family(const MetaGraph& graph) {
  if (auto type = config_text(graph, "model_type")) return type;
  const std::string* const text = find_text(graph, "general.architecture");
  return text == nullptr ? std::nullopt : std::optional(*text);
}

}  // namespace loadline
