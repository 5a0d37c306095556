// Parses with a count of the levels.
#include "core/base/json.h"

#include <nlohmann/json.hpp>

namespace loadline {

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
  return deep ? Json(Json::value_t::discarded) : json;
}

template nlohmann::json small_json(std::string_view text);
template nlohmann::ordered_json small_json(std::string_view text);

}  // namespace loadline
