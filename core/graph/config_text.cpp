// Looks into config.json; anything that is not a JSON object counts as no config.
#include "core/graph/config_text.h"

#include <nlohmann/json.hpp>

namespace loadline {
namespace {

using Json = nlohmann::json;

// Only the first two levels are built: a deeply nested file cannot make anything recurse.
Json parse_config(const MetaGraph& graph) {
  const MetaValue* const text = find_metadata(graph, kConfigKey);
  if (text == nullptr || !std::holds_alternative<std::string>(*text)) return Json();
  const auto keep = [](int depth, Json::parse_event_t, Json&) { return depth <= 2; };
  Json json = Json::parse(std::get<std::string>(*text), keep, false);
  return json.is_object() ? json : Json();
}

}  // namespace

std::optional<std::string> config_text(const MetaGraph& graph, std::string_view key) {
  const Json json = parse_config(graph);
  if (!json.is_object()) return std::nullopt;
  const auto found = json.find(std::string(key));
  return found != json.end() && found->is_string() ? std::optional(found->get<std::string>()) : std::nullopt;
}

std::optional<std::string> model_family(const MetaGraph& graph) {
  if (auto type = config_text(graph, "model_type")) return type;
  const MetaValue* const value = find_metadata(graph, "general.architecture");
  const auto* const text = value == nullptr ? nullptr : std::get_if<std::string>(value);
  return text == nullptr ? std::nullopt : std::optional(*text);
}

std::vector<std::pair<std::string, std::string>> config_entries(const MetaGraph& graph) {
  std::vector<std::pair<std::string, std::string>> entries;
  const Json json = parse_config(graph);
  if (!json.is_object()) return entries;
  for (const auto& [key, value] : json.items())
    entries.emplace_back(key, value.is_string() ? value.get<std::string>()
                                                : value.dump(-1, ' ', false, Json::error_handler_t::replace));
  return entries;
}

}  // namespace loadline
