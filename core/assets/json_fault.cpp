// Parses the text again with nlohmann::json, which is slower but reports what it expected.
#include "core/assets/json_fault.h"

#include "core/base/text.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace loadline {
namespace {

using nlohmann::json;

std::string parse_error(std::string_view text) {
  const auto keep_nothing = [](int, json::parse_event_t, json&) { return false; };
  try {
    const json nothing = json::parse(text, keep_nothing);
    return "";
  } catch (const json::exception& error) {
    return error.what();
  }
}

}  // namespace

std::string json_fault(std::string_view text) {
  const std::string whole = parse_error(text);
  // "[json.exception.ID] parse error at line 1, column 2: syntax error while parsing value - unexpected X;
  // ..."
  std::string_view message = whole;
  if (message.empty()) return "no JSON: something stands behind the end, or a name occurs twice";
  const auto drop_to = [&](std::string_view mark) {
    const std::size_t at = message.find(mark);
    if (at != message.npos) message.remove_prefix(at + mark.size());
  };
  drop_to("] ");
  drop_to("parse error at ");
  const std::size_t colon = message.find(": ");
  const std::string_view place = message.starts_with("line ") ? message.substr(0, colon) : "";
  if (!place.empty()) drop_to(": ");
  if (message.starts_with("syntax error")) drop_to(" - ");
  constexpr std::size_t kShown = 160;
  return fmt::format("{}{}not valid JSON: {}", place, place.empty() ? "" : ": ",
                     safe_display(message, kShown));
}

}  // namespace loadline
