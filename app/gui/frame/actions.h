// Parses the arguments of script lines: numbers, names from a list, pairs of words, on or off.
#pragma once

#include "core/base/error.h"
#include "core/base/number.h"

#include <algorithm>
#include <array>
#include <span>
#include <string>
#include <string_view>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace loadline::gui {

[[noreturn]] inline void refuse(std::string_view detail) { throw Error(ErrorCode::usage, detail); }

template <typename Number>
Number parse_number(std::string_view text, Number least, Number most) {
  const std::optional<Number> value = text_as<Number>(text);
  // in this form a NaN is out of range
  if (!value || !(*value >= least && *value <= most))
    refuse(fmt::format("'{}' is not a number between {} and {}", text, least, most));
  return *value;
}

// The position of a word in a list of names.
inline std::size_t position(std::string_view word, std::span<const std::string_view> names,
                            std::string_view what) {
  const auto found = std::ranges::find(names, word);
  if (found == names.end())
    refuse(fmt::format("no {} '{}'; there are: {}", what, word, fmt::join(names, ", ")));
  return static_cast<std::size_t>(found - names.begin());
}

// The two words of an argument.
inline std::array<std::string_view, 2> two_words(std::string_view argument, std::string_view what) {
  const std::size_t space = argument.find(' ');
  if (space == std::string_view::npos) refuse(fmt::format("'{}' is not {}", argument, what));
  return {argument.substr(0, space), argument.substr(space + 1)};
}

inline bool on_or_off(const std::string& word) {
  if (word != "on" && word != "off") refuse(fmt::format("'{}' is neither on nor off", word));
  return word == "on";
}

}  // namespace loadline::gui
