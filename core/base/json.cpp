// Replaces bare words of Python; parses with a count of the levels.
#include "core/base/json.h"

#include <nlohmann/json.hpp>

namespace loadline {

std::string strict_json(std::string_view text) {
  constexpr std::string_view kWords[] = {"NaN", "Infinity"},
                             kNumbers[] = {"\"NaN\"", "1.7976931348623157e308"};
  std::string result;
  bool quoted = false;
  for (std::size_t at = 0; at < text.size(); ++at) {
    const bool is_nan = !quoted && text.substr(at).starts_with(kWords[0]),
               is_infinite = !quoted && text.substr(at).starts_with(kWords[1]);
    if (is_nan || is_infinite) {
      result += kNumbers[is_infinite];
      at += kWords[is_infinite].size() - 1;
      continue;
    }
    if (text[at] == '"') quoted = !quoted;
    result += text[at];
    if (quoted && text[at] == '\\' && at + 1 < text.size()) result += text[++at];
  }
  return result;
}

template <typename Json>
Json small_json(std::string_view text) {
  constexpr int kMostDepth = 64;
  bool deep = false;
  // what lies deeper is not even built
  const auto measure = [&](int depth, typename Json::parse_event_t, Json&) {
    deep |= depth > kMostDepth;
    return depth <= kMostDepth;
  };
  Json json = Json::parse(text, measure, false);
  if (json.is_discarded() && !deep) json = Json::parse(strict_json(text), measure, false);
  return deep ? Json(Json::value_t::discarded) : json;
}

template nlohmann::json small_json(std::string_view text);
template nlohmann::ordered_json small_json(std::string_view text);

}  // namespace loadline
