// Sizes, counts and names as text, and back; splitting, natural order, escaping for a terminal.
#pragma once

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

namespace loadline {

// --- Numbers and names for display: sizes, rates, counts, natural order, escaping.

// Binary units with three significant decimals at most: "0 B", "512 B", "1.50 KiB", "14.96 GiB".
std::string format_bytes(std::uint64_t bytes);
// Decimal grouping for exact figures: 16060522496 -> "16,060,522,496".
std::string format_grouped(std::uint64_t value);
// A count and what is counted: "1 tensor", "1,024 tensors".
std::string counted(std::uint64_t count, std::string_view noun);
// Parameter counts, decimal: "8.03 B", "124 M", "512".
std::string format_count(std::uint64_t count);
// Bytes per second: "4.62 GB/s" (decimal, as links and disks are sold).
std::string format_rate(double bytes_per_second);
// "1.2 ms", "3.45 s", "2 min 05 s".
std::string format_seconds(double seconds);

// "64MiB" = 2^26, "5GB" = 5*10^9, "4096" = bytes. A bare K/M/G/T is refused because tools disagree on its
// meaning. Throws Error{usage}; the message begins with `what` unless that is empty.
std::uint64_t parse_size(std::string_view text, std::string_view what);

// ASCII letters in lower case; every other byte unchanged.
std::string lower_case(std::string_view text);
// Of ASCII, whatever the locale.
constexpr bool is_digit(char c) { return c >= '0' && c <= '9'; }
// The parts between separators: one more part than there are separators. Views of `text`.
std::vector<std::string_view> split(std::string_view text, char separator);
// The lines of a text without their '\n'; the last line may lack one. Views of `text`.
std::vector<std::string_view> lines_of(std::string_view text);

// Orders "layer.2" before "layer.10": runs of digits compare as numbers. A strict weak order;
// strings that differ only in leading zeros are ordered by plain comparison.
bool natural_less(std::string_view a, std::string_view b);

// Escapes a text for a terminal or a window: control characters, invalid UTF-8 and direction overrides become
// \xNN (bytes) or \u{NNNN}. Plain printable text comes back unchanged.
std::string safe_display(std::string_view raw);
// As safe_display, then shortened in the middle with "..." to at most `columns` code points.
std::string safe_display(std::string_view raw, std::size_t columns);

// Columns that `shown` (already escaped for display) takes on a terminal: East Asian wide characters and
// emoji take two, combining marks none.
std::size_t display_width(std::string_view shown);

// Whether `text` is well-formed UTF-8 (no surrogates, no overlong forms, at most U+10FFFF).
bool is_valid_utf8(std::string_view text);

// 'one', 'two', 'three' and 4 more: a list for a message, escaped and cut after `most` names.
std::string join_names(const std::vector<std::string>& names, std::size_t most);

// --- Numbers in texts.

// The number that the whole text is, without blanks and a plus sign. Nothing if the text is anything else, or
// if the type cannot hold the number.
template <typename Number>
std::optional<Number> text_as(std::string_view text) {
  Number number{};
  const char* const end = text.data() + text.size();
  const auto read = std::from_chars(text.data(), end, number);
  return read.ec == std::errc() && read.ptr == end ? std::optional(number) : std::nullopt;
}

// --- Short lists of words, kept as one text with single spaces between the words.

inline bool has_word(std::string_view words, std::string_view word) {
  while (!words.empty()) {
    const std::size_t end = std::min(words.find(' '), words.size());
    if (words.substr(0, end) == word) return true;
    words.remove_prefix(std::min(end + 1, words.size()));
  }
  return false;
}

}  // namespace loadline
