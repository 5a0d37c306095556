// Formatting and parsing of sizes, counts and names.
#include "core/base/text.h"

#include "core/base/checked_arithmetic.h"
#include "core/base/error.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <cmath>
#include <cstring>

#include <fmt/core.h>

namespace loadline {
namespace {

// One decoded code point, or the single byte that could not be decoded.
struct Decoded {
  char32_t point = 0;
  std::size_t length = 1;
  bool valid = false;
};

Decoded decode_utf8(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char lead = byte(0);
  if (lead < 0x80) return {lead, 1, true};
  const std::size_t length = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : 2;
  if (lead < 0xC2 || lead > 0xF4 || text.size() < length) return {};
  char32_t point = lead & (0x7Fu >> length);
  for (std::size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xC0u) != 0x80u) return {};
    point = (point << 6) | (byte(i) & 0x3Fu);
  }
  // overlong forms, surrogates and points past the end of Unicode are not text
  constexpr std::array<char32_t, 5> kSmallest = {0, 0, 0x80, 0x800, 0x10000};
  if (point < kSmallest[length] || point > 0x10FFFF || (point >= 0xD800 && point <= 0xDFFF)) return {};
  return {point, length, true};
}

// Control characters, and marks that reorder or hide text on a terminal.
bool must_escape(char32_t point) {
  return point < 0x20 || (point >= 0x7F && point < 0xA0) || point == 0xAD || point == 0x61C ||
         (point >= 0x200B && point <= 0x200F) || (point >= 0x2028 && point <= 0x202E) ||
         (point >= 0x2060 && point <= 0x206F) || point == 0xFEFF;
}

// Approximates Unicode's East Asian Width by its large ranges; combining marks take no column.
std::size_t point_width(char32_t point) {
  const auto in = [&](char32_t first, char32_t last) { return point >= first && point <= last; };
  if (in(0x300, 0x36F) || in(0x20D0, 0x20FF) || in(0xFE00, 0xFE0F)) return 0;
  const bool wide = in(0x1100, 0x115F) || in(0x2E80, 0x303E) || in(0x3041, 0xA4CF) || in(0xAC00, 0xD7A3) ||
                    in(0xF900, 0xFAFF) || in(0xFE30, 0xFE6F) || in(0xFF00, 0xFF60) || in(0xFFE0, 0xFFE6) ||
                    in(0x1F300, 0x1FAFF) || in(0x20000, 0x3FFFD);
  return wide ? 2 : 1;
}

struct Unit {
  std::string_view suffix;
  std::uint64_t bytes;
};
constexpr std::array<Unit, 10> kUnits = {{{"", 1},
                                          {"B", 1},
                                          {"KiB", 1ull << 10},
                                          {"MiB", 1ull << 20},
                                          {"GiB", 1ull << 30},
                                          {"TiB", 1ull << 40},
                                          {"KB", 1'000ull},
                                          {"MB", 1'000'000ull},
                                          {"GB", 1'000'000'000ull},
                                          {"TB", 1'000'000'000'000ull}}};

bool equal_ignoring_case(std::string_view a, std::string_view b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](char x, char y) {
    return std::tolower(static_cast<unsigned char>(x)) == std::tolower(static_cast<unsigned char>(y));
  });
}

std::size_t digit_run(std::string_view text) {
  return static_cast<std::size_t>(std::ranges::find_if_not(text, is_digit) - text.begin());
}

}  // namespace

std::string format_bytes(std::uint64_t bytes) {
  constexpr std::array<const char*, 6> kNames = {"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  if (bytes < 1024) return fmt::format("{} B", bytes);
  double value = static_cast<double>(bytes) / 1024;
  std::size_t unit = 0;
  // 1023.995 would round to "1024.00"
  while (value >= 1023.995 && unit + 1 < kNames.size()) value /= 1024, ++unit;
  return fmt::format("{:.2f} {}", value, kNames[unit]);
}

std::string format_grouped(std::uint64_t value) {
  std::string digits = fmt::format("{}", value);
  for (std::size_t i = digits.size(); i > 3; i -= 3) digits.insert(i - 3, 1, ',');
  return digits;
}

std::string counted(std::uint64_t count, std::string_view noun) {
  return fmt::format("{} {}{}", format_grouped(count), noun, count == 1 ? "" : "s");
}

std::string format_count(std::uint64_t count) {
  constexpr std::array<const char*, 5> kNames = {"K", "M", "B", "T", "Q"};
  if (count < 1000) return fmt::format("{}", count);
  double value = static_cast<double>(count) / 1000;
  std::size_t unit = 0;
  while (value >= 999.5 && unit + 1 < kNames.size()) value /= 1000, ++unit;
  const int decimals = value < 9.995 ? 2 : value < 99.95 ? 1 : 0;
  return fmt::format("{:.{}f} {}", value, decimals, kNames[unit]);
}

std::string format_rate(double bytes_per_second) {
  constexpr std::array<const char*, 4> kNames = {"kB/s", "MB/s", "GB/s", "TB/s"};
  double value = bytes_per_second / 1000;
  std::size_t unit = 0;
  while (value >= 999.5 && unit + 1 < kNames.size()) value /= 1000, ++unit;
  return fmt::format("{:.{}f} {}", value, value < 99.95 ? 2 : 0, kNames[unit]);
}

std::string format_seconds(double seconds) {
  if (seconds < 0.001) return fmt::format("{:.0f} us", seconds * 1e6);
  if (seconds < 1) return fmt::format("{:.1f} ms", seconds * 1e3);
  if (seconds < 60) return fmt::format("{:.2f} s", seconds);
  const auto whole = static_cast<std::uint64_t>(std::llround(seconds));
  return fmt::format("{} min {:02} s", whole / 60, whole % 60);
}

std::uint64_t parse_size(std::string_view text, std::string_view what) {
  const auto refuse = [&](std::string_view why) {
    return Error(ErrorCode::usage, "{}{}'{}' {}", what, what.empty() ? "" : ": ", safe_display(text), why);
  };
  const std::size_t number_end = std::min(text.find_first_not_of("0123456789."), text.size());
  double number = 0;
  const char* const end = text.data() + number_end;
  const auto parsed = std::from_chars(text.data(), end, number);
  if (number_end == 0 || parsed.ec != std::errc{} || parsed.ptr != end)
    throw refuse("is not a size; write for example 64MiB, 5GB or 4096");

  std::string_view suffix = text.substr(number_end);
  if (!suffix.empty() && suffix.front() == ' ') suffix.remove_prefix(1);
  if (suffix.size() == 1 && std::string_view("kKmMgGtT").find(suffix) != std::string_view::npos)
    throw refuse(fmt::format("is ambiguous: write {0}iB (powers of 1024) or {0}B (powers of 1000)",
                             static_cast<char>(std::toupper(static_cast<unsigned char>(suffix[0])))));
  const auto unit =
      std::ranges::find_if(kUnits, [&](const Unit& u) { return equal_ignoring_case(u.suffix, suffix); });
  if (unit == kUnits.end()) throw refuse("has an unknown unit; use B, KiB, MiB, GiB, TiB, KB, MB, GB or TB");

  // whole numbers stay exact; only a fraction goes through floating point
  std::uint64_t whole = 0;
  if (const auto exact = std::from_chars(text.data(), end, whole); exact.ptr == end) {
    if (exact.ec != std::errc{}) throw refuse("is too large");
    const auto bytes = checked_mul(whole, unit->bytes);
    if (!bytes) throw refuse("is too large");
    return *bytes;
  }
  const double bytes = number * static_cast<double>(unit->bytes);
  if (!(bytes < 9.2e18)) throw refuse("is too large");
  return static_cast<std::uint64_t>(std::llround(bytes));
}

std::string lower_case(std::string_view text) {
  std::string result(text);
  for (char& c : result)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return result;
}

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(separator, begin), text.size());
    parts.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return parts;
}

std::vector<std::string_view> lines_of(std::string_view text) {
  if (text.empty()) return {};
  if (text.ends_with('\n')) text.remove_suffix(1);
  return split(text, '\n');
}

namespace {

// The number of bytes that both begin with.
std::size_t common_prefix(std::string_view a, std::string_view b) {
  const std::size_t most = std::min(a.size(), b.size());
  std::size_t same = 0;
  for (std::uint64_t x = 0, y = 0; same + sizeof x <= most; same += sizeof x) {
    std::memcpy(&x, a.data() + same, sizeof x);
    std::memcpy(&y, b.data() + same, sizeof y);
    if (x != y) break;
  }
  while (same < most && a[same] == b[same]) ++same;
  return same;
}

}  // namespace

bool natural_less(std::string_view a, std::string_view b) {
  // names of one model share most of their text: the comparison starts where they differ, or at the first
  // digit of the number that they differ in
  std::size_t same = common_prefix(a, b);
  while (same > 0 && is_digit(a[same - 1])) --same;
  std::string_view x = a.substr(same), y = b.substr(same);
  while (!x.empty() && !y.empty()) {
    std::size_t n = digit_run(x), m = digit_run(y);
    if (n == 0 || m == 0) {
      if (x.front() != y.front())
        return static_cast<unsigned char>(x.front()) < static_cast<unsigned char>(y.front());
      x.remove_prefix(1), y.remove_prefix(1);
      continue;
    }
    std::string_view p = x.substr(0, n), q = y.substr(0, m);
    x.remove_prefix(n), y.remove_prefix(m);
    p.remove_prefix(std::min(p.find_first_not_of('0'), p.size()));
    q.remove_prefix(std::min(q.find_first_not_of('0'), q.size()));
    if (p.size() != q.size()) return p.size() < q.size();
    if (p != q) return p < q;
  }
  if (x.empty() != y.empty()) return x.empty();
  return a < b;
}

std::string safe_display(std::string_view raw) {
  std::string shown;
  shown.reserve(raw.size());
  while (!raw.empty()) {
    const Decoded next = decode_utf8(raw);
    if (!next.valid || (next.length == 1 && must_escape(next.point)))
      shown += fmt::format("\\x{:02x}", static_cast<unsigned char>(raw.front()));
    else if (must_escape(next.point))
      shown += fmt::format("\\u{{{:x}}}", static_cast<std::uint32_t>(next.point));
    else
      shown.append(raw.substr(0, next.length));
    raw.remove_prefix(next.length);
  }
  return shown;
}

namespace {

bool starts_point(char c) { return (static_cast<unsigned char>(c) & 0xC0u) != 0x80u; }

// The byte offset of code point number `index`.
std::size_t offset_of(std::string_view text, std::size_t index) {
  std::size_t seen = 0, at = 0;
  for (; at < text.size(); ++at)
    if (starts_point(text[at]) && seen++ == index) break;
  return at;
}

std::size_t points_of(std::string_view text) {
  return static_cast<std::size_t>(std::ranges::count_if(text, starts_point));
}

// The last bytes of a text, about so many, from the begin of a code point on.
std::string_view end_of(std::string_view text, std::size_t bytes) {
  text.remove_prefix(text.size() - bytes);
  for (int i = 0; i < 3 && !starts_point(text.front()); ++i) text.remove_prefix(1);
  return text;
}

}  // namespace

std::string safe_display(std::string_view raw, std::size_t columns) {
  if (columns < 5) return safe_display(raw);
  // of a name of a megabyte only both ends are looked at: a code point has at most four bytes, and is shown
  // as at least one
  const bool is_long = raw.size() > 16 * columns;
  const std::string shown = safe_display(is_long ? raw.substr(0, 8 * columns) : raw);
  if (!is_long && points_of(shown) <= columns) return shown;
  const std::size_t head = (columns - 3) / 2, tail = columns - 3 - head;
  const std::string end = is_long ? safe_display(end_of(raw, 8 * columns)) : shown;
  return shown.substr(0, offset_of(shown, head)) + "..." + end.substr(offset_of(end, points_of(end) - tail));
}

std::size_t display_width(std::string_view shown) {
  std::size_t columns = 0;
  while (!shown.empty()) {
    const Decoded next = decode_utf8(shown);
    columns += next.valid ? point_width(next.point) : 1;
    shown.remove_prefix(next.length);
  }
  return columns;
}

bool is_valid_utf8(std::string_view text) {
  while (!text.empty()) {
    const Decoded next = decode_utf8(text);
    if (!next.valid) return false;
    text.remove_prefix(next.length);
  }
  return true;
}

std::string join_names(const std::vector<std::string>& names, std::size_t most) {
  std::string text;
  for (std::size_t i = 0; i < std::min(names.size(), most); ++i)
    text += fmt::format("{}'{}'", i == 0 ? "" : ", ", safe_display(names[i], 100));
  if (names.size() > most) text += fmt::format(" and {} more", names.size() - most);
  return text;
}

}  // namespace loadline
