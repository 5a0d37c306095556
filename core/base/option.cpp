// Reads option values from words and writes them as words.
#include "core/base/option.h"

#include "core/base/error.h"
#include "core/base/text.h"

#include <algorithm>
#include <array>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace loadline {
namespace {

std::string exact_size(std::uint64_t bytes) {
  constexpr std::array<std::pair<std::uint64_t, std::string_view>, 4> kUnits = {
      {{std::uint64_t{1} << 40, "TiB"}, {1 << 30, "GiB"}, {1 << 20, "MiB"}, {1 << 10, "KiB"}}};
  constexpr std::uint64_t kReadable = 1 << 20;  // 40 GB as 39062500KiB is less readable than its bytes
  for (const auto& [unit, name] : kUnits)
    if (bytes != 0 && bytes % unit == 0 && bytes / unit <= kReadable)
      return fmt::format("{}{}", bytes / unit, name);
  return fmt::format("{}", bytes);
}

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view kBlanks = " \t";
  const std::size_t first = std::min(text.find_first_not_of(kBlanks), text.size());
  return text.substr(first, text.find_last_not_of(kBlanks) + 1 - first);
}

std::vector<std::string> parse_names(std::string_view text, char separator) {
  std::vector<std::string> names;
  for (const std::string_view part : split(text, separator))
    if (const std::string_view name = trimmed(part); !name.empty()) names.emplace_back(name);
  if (names.empty()) throw Error(ErrorCode::usage, "a name is needed");
  return names;
}

std::uint64_t parse_count(std::string_view text) {
  if (const auto number = text_as<std::uint64_t>(text)) return *number;
  throw Error(ErrorCode::usage, "'{}' is not a whole number below 2^64", safe_display(text, 40));
}

bool parse_flag(std::string_view text) {
  if (text == "on" || text == "true") return true;
  if (text == "off" || text == "false") return false;
  throw Error(ErrorCode::usage, "'{}' is neither on nor off", safe_display(text, 40));
}

// How many insertions, deletions, replacements and swaps of neighbors turn one word into the other.
std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::vector<std::size_t>> cost(a.size() + 1, std::vector<std::size_t>(b.size() + 1));
  for (std::size_t i = 0; i <= a.size(); ++i) cost[i][0] = i;
  for (std::size_t j = 0; j <= b.size(); ++j) cost[0][j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i)
    for (std::size_t j = 1; j <= b.size(); ++j) {
      cost[i][j] = std::min(
          {cost[i - 1][j] + 1, cost[i][j - 1] + 1, cost[i - 1][j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1)});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        cost[i][j] = std::min(cost[i][j], cost[i - 2][j - 2] + 1);
    }
  return cost[a.size()][b.size()];
}

}  // namespace

OptionValue parse_option(OptionKind kind, std::string_view text, char separator) {
  switch (kind) {
    case OptionKind::bytes:
      return parse_size(text, "");
    case OptionKind::count:
      return parse_count(text);
    case OptionKind::flag:
      return parse_flag(text);
    case OptionKind::names:
      return parse_names(text, separator);
    case OptionKind::choice:
    case OptionKind::text:
      break;
  }
  if (text.empty()) throw Error(ErrorCode::usage, "a value is needed");
  return std::string(text);
}

std::string print_option(OptionKind kind, const OptionValue& value, char separator) {
  if (const auto* const on = std::get_if<bool>(&value)) return *on ? "on" : "off";
  if (const auto* const number = std::get_if<std::uint64_t>(&value))
    return kind == OptionKind::bytes ? exact_size(*number) : fmt::format("{}", *number);
  if (const auto* const text = std::get_if<std::string>(&value)) return *text;
  if (const auto* const names = std::get_if<std::vector<std::string>>(&value))
    return fmt::format("{}", fmt::join(*names, separator == ',' ? "," : "; "));
  return "none";
}

std::string show_option(OptionKind kind, const OptionValue& value, char separator) {
  if (const auto* const on = std::get_if<bool>(&value)) return *on ? "yes" : "no";
  if (const auto* const number = std::get_if<std::uint64_t>(&value))
    return kind == OptionKind::bytes ? format_bytes(*number) : format_grouped(*number);
  if (const auto* const names = std::get_if<std::vector<std::string>>(&value))
    return fmt::format("{}", fmt::join(*names, separator == ',' ? ", " : "; "));
  return print_option(kind, value, separator);
}

void check_option_number(std::uint64_t value, std::uint64_t least, std::uint64_t most, bool bytes) {
  if (value >= least && value <= most) return;
  const auto shown = [&](std::uint64_t number) {
    return bytes ? print_option(OptionKind::bytes, number) : format_grouped(number);
  };
  throw Error(ErrorCode::usage,
              value < least
                  ? fmt::format("{} is less than {}, the least possible", shown(value), shown(least))
                  : fmt::format("{} is more than {}, the most possible", shown(value), shown(most)));
}

void check_option_choice(std::string_view word, const std::vector<std::string>& choices) {
  if (std::ranges::find(choices, word) != choices.end()) return;
  const std::string_view meant = nearest_word(lower_case(word), {choices.begin(), choices.end()});
  throw Error(ErrorCode::usage, "'{}' is none of: {}{}", safe_display(word, 60), fmt::join(choices, ", "),
              meant.empty() ? "" : fmt::format("; did you mean {}?", meant));
}

std::string_view nearest_word(std::string_view word, const std::vector<std::string_view>& known) {
  constexpr std::size_t kLongest = 64;
  if (word.size() > kLongest) return {};
  std::string_view best;
  std::size_t least = 1 + std::max<std::size_t>(1, word.size() / 3);
  for (const std::string_view candidate : known) {
    if (candidate.size() > kLongest) continue;
    const std::size_t distance = edit_distance(word, candidate);
    if (distance >= least) continue;
    least = distance;
    best = candidate;
  }
  return best;
}

}  // namespace loadline
