// Looks into config.json; anything that is not a JSON object counts as no config.
#include "core/graph/config_text.h"

#include <nlohmann/json.hpp>

namespace loadline {

std::optional<std::string> config_text(const MetaGraph& graph, std::string_view key) {
  const std::string* const text = find_text(graph, kConfigKey);
  if (text == nullptr) return std::nullopt;
  // only the first two levels are built: a deeply nested file cannot make anything recurse
  const auto keep = [](int depth, nlohmann::json::parse_event_t, nlohmann::json&) { return depth <= 2; };
  const auto json = nlohmann::json::parse(*text, keep, false);
  if (!json.is_object()) return std::nullopt;
  const auto found = json.find(std::string(key));
  return found != json.end() && found->is_string() ? std::optional(found->get<std::string>()) : std::nullopt;
}

std::optional<std::string> model_family(const MetaGraph& graph) {
  if (auto type = config_text(graph, "model_type")) return type;
  const std::string* const text = find_text(graph, "general.architecture");
  return text == nullptr ? std::nullopt : std::optional(*text);
}

}  // namespace loadline
