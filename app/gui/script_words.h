// What the words of a script mean: numbers, sizes, names out of a list.
#pragma once

#include "core/base/error.h"
#include "core/base/text.h"

#include <charconv>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include <fmt/format.h>

namespace loadline::gui {

[[noreturn]] inline void refuse(std::string_view detail) { throw Error(ErrorCode::usage, detail); }

template <typename Number>
Number parse_number(std::string_view text, Number least, Number most) {
  Number value{};
  const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), value);
  // in this form a NaN is out of range
  if (failed != std::errc() || end != text.data() + text.size() || !(value >= least && value <= most))
    refuse(fmt::format("'{}' is not a number between {} and {}", text, least, most));
  return value;
}

template <typename Names>
std::size_t position(std::string_view word, std::size_t count, Names name, std::string_view what) {
  std::string known;
  for (std::size_t i = 0; i < count; ++i) {
    if (name(i) == word) return i;
    known += (known.empty() ? "" : ", ") + std::string(name(i));
  }
  refuse(fmt::format("no {} '{}'; there are: {}", what, word, known));
}

// A size, or none at all.
inline std::optional<std::uint64_t> size_or_none(const std::string& text, std::string_view what) {
  return text == "none" ? std::nullopt : std::optional(parse_size(text, what));
}

inline bool on_or_off(const std::string& word) {
  if (word != "on" && word != "off") refuse(fmt::format("'{}' is neither on nor off", word));
  return word == "on";
}

}  // namespace loadline::gui
