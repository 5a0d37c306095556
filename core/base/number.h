// Numbers in texts.
#pragma once

#include <charconv>
#include <optional>
#include <string_view>
#include <system_error>

namespace loadline {

// The number that the whole text is, without blanks and a plus sign. Nothing if the text is anything else, or
// if the type cannot hold the number.
template <typename Number>
std::optional<Number> text_as(std::string_view text) {
  Number number{};
  const char* const end = text.data() + text.size();
  const auto read = std::from_chars(text.data(), end, number);
  return read.ec == std::errc() && read.ptr == end ? std::optional(number) : std::nullopt;
}

}  // namespace loadline
