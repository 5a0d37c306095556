// Reads JSON in small files that others wrote: configurations, settings, states.
#pragma once

#include <string>
#include <string_view>

#include <nlohmann/json_fwd.hpp>

namespace loadline {

// Python writes NaN, Infinity and -Infinity where JSON has no number for them, and reads them back. Gives
// null for the first, and the largest numbers for the others, outside of texts; anything else stays as it is.
std::string strict_json(std::string_view text);

// The value of the whole text, as Python reads it; a discarded one if the text is not JSON, or is nested more
// than 64 levels deep: what walks over the value never recurses further. Json is nlohmann::json or
// nlohmann::ordered_json.
template <typename Json>
Json small_json(std::string_view text);

}  // namespace loadline
