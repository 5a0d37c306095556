// Reads JSON in small files that others wrote: configurations, settings, states.
#pragma once

#include <string_view>

#include <nlohmann/json_fwd.hpp>

namespace loadline {

// The value of the whole text; a discarded one if the text is not JSON, or is nested more than 64 levels
// deep: what walks over the value never recurses further. Json is nlohmann::json or nlohmann::ordered_json.
template <typename Json>
Json small_json(std::string_view text);

}  // namespace loadline
