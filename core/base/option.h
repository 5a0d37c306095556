// Options as data: a row, how a row is found by its id, how a row reads and sets a member of a struct.
#pragma once

#include "core/base/error.h"
#include "core/base/text.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

namespace loadline {

// --- Options as data: one row says what an option is called, what it means and how its value is read and
// printed. The command line, the window, scripts, saved requests and JSON iterate such rows.

enum class OptionKind : std::uint8_t {
  bytes,   // a size: "64MiB"
  count,   // a whole number
  flag,    // on or off
  choice,  // one of choices()
  names,   // several words
  text,
};

// The value of an option. The kind decides which alternative it holds: std::uint64_t for bytes and count,
// bool for flag, std::string for choice and text, a list for names. monostate: not set.
using OptionValue = std::variant<std::monostate, bool, std::uint64_t, std::string, std::vector<std::string>>;

// How an option's value is read and set.
template <typename T>
struct Access {
  OptionValue (*get)(const T& values) = nullptr;
  // Takes a value as get() returns it. Its Error{usage} does not name the option: the caller adds the name.
  void (*set)(T& values, const OptionValue& value) = nullptr;
  bool can_be_unset = false;  // set() takes monostate; written "none"
};

// One option of the plain struct T. Rows are constants; their texts are plain English for the user.
template <typename T>
struct Option {
  std::string_view id = {};  // JSON key and script word; the flag is "--" and the id with hyphens
  std::string_view group = {};
  OptionKind kind = OptionKind::text;
  std::string_view title = {};         // "Staging ring": a label in the window, a row of a page
  std::string_view value_name = {};    // "SIZE"
  std::string_view brief = {};         // a line of help, at most 48 characters
  std::string_view help = {};          // whole sentences
  std::string_view default_text = {};  // for display: what applies while unset; empty: nothing
  // The allowed words of a `choice`; for `names` and `text` only suggestions.
  std::vector<std::string> (*choices)() = nullptr;
  Access<T> access = {};
  std::uint64_t least = 0;  // limits for bytes and count
  std::uint64_t most = UINT64_MAX;
  char separator = ',';                                     // between names
  std::string (*spelled)(std::string_view word) = nullptr;  // choice: another spelling of a word as the word

  OptionValue get(const T& values) const { return access.get(values); }
  void set(T& values, const OptionValue& value) const { access.set(values, value); }
  bool can_be_unset() const { return access.can_be_unset; }
};

// Reads a value: a size with its unit, a whole number, "on" or "off", or names separated by `separator`.
// Throws Error{usage} that says what is wrong with `text`.
OptionValue parse_option(OptionKind kind, std::string_view text, char separator = ',');
// Writes a value so that parse_option() reads it back; "none" if it is not set. Sizes are exact: "64MiB",
// "1000".
std::string print_option(OptionKind kind, const OptionValue& value, char separator = ',');
// Writes a value for display: "64.00 MiB", "4", "yes".
std::string show_option(OptionKind kind, const OptionValue& value, char separator = ',');

// Throws Error{usage} for a number outside of [least, most] or a word that is not among the choices.
void check_option_number(std::uint64_t value, std::uint64_t least, std::uint64_t most, bool bytes);
void check_option_choice(std::string_view word, const std::vector<std::string>& choices);

// The word of `known` that is nearest to `word` by edit distance; empty if none is near.
std::string_view nearest_word(std::string_view word, const std::vector<std::string_view>& known);

// Sets the option after a check of the row's limits and choices. Throws Error{usage}.
template <typename T>
void set_option_value(const Option<T>& option, T& values, const OptionValue& value) {
  if (const auto* const number = std::get_if<std::uint64_t>(&value))
    check_option_number(*number, option.least, option.most, option.kind == OptionKind::bytes);
  const auto* const word = std::get_if<std::string>(&value);
  if (word == nullptr || option.kind != OptionKind::choice) return option.set(values, value);
  const std::string spelled = option.spelled == nullptr ? *word : option.spelled(*word);
  check_option_choice(spelled, option.choices());
  option.set(values, spelled);
}

// Sets the option from a word; "none" unsets it if the row allows that. Throws Error{usage}.
template <typename T>
void set_option(const Option<T>& option, T& values, std::string_view word) {
  if (option.can_be_unset() && word == "none") return option.set(values, std::monostate());
  const OptionValue value = parse_option(option.kind, word, option.separator);
  set_option_value(option, values, value);
}

template <typename T>
bool same_option(const Option<T>& option, const T& a, const T& b) {
  return option.get(a) == option.get(b);
}

// The table's row with this id; null if there is none.
template <typename Row>
const Row* find_option(std::span<const Row> table, std::string_view id) {
  for (const Row& row : table)
    if (row.id == id) return &row;
  return nullptr;
}

// --- Finds a row of a const table by its id.

// "file, name, forward": the ids of a table, for help and messages.
template <typename Row>
std::string id_list(std::span<const Row> table) {
  std::string ids;
  for (const Row& row : table) ids.append(ids.empty() ? "" : ", ").append(safe_display(row.id, 60));
  return ids;
}

// The row with this id. Throws Error{usage} that lists all ids and suggests the nearest one. `kind` is the
// message's noun for a row: "method".
template <typename Row>
const Row& find_row(std::span<const Row> table, std::string_view id, std::string_view kind) {
  const auto row = std::ranges::find_if(table, [&](const Row& r) { return r.id == id; });
  if (row != table.end()) return *row;
  std::vector<std::string_view> ids;
  for (const Row& r : table) ids.emplace_back(r.id);
  const std::string meant = safe_display(nearest_word(id, ids), 60);
  throw Error(ErrorCode::usage, "no {} is called '{}'; {}{}there are: {}", kind, safe_display(id, 60),
              meant.empty() ? "" : "did you mean ", meant.empty() ? meant : meant + "? ", id_list(table));
}

}  // namespace loadline

namespace loadline::access {

// --- Getters and setters for members of plain structs, for rows of Option<T>. A nested member is named by
// its path: access::flag<&Request::write, &WriteOptions::verify>.

template <typename T, typename Member>
T struct_with(Member T::*);
// The struct that the member pointer belongs to.
template <auto member>
using StructWith = decltype(struct_with(member));

template <auto member, auto... deeper, typename T>
auto& member_of(T& values) {
  if constexpr (sizeof...(deeper) == 0)
    return (values.*member);
  else
    return member_of<deeper...>(values.*member);
}

inline std::string text_in(const OptionValue& value) {
  const auto* const text = std::get_if<std::string>(&value);
  return text == nullptr ? std::string() : *text;
}

template <auto first, auto... deeper>
constexpr Access<StructWith<first>> number = {
    [](const auto& values) -> OptionValue { return std::uint64_t{member_of<first, deeper...>(values)}; },
    [](auto& values, const OptionValue& value) {
      auto& member = member_of<first, deeper...>(values);
      member = static_cast<std::remove_reference_t<decltype(member)>>(std::get<std::uint64_t>(value));
    }};

// A number for which 0 means not set.
template <auto first, auto... deeper>
constexpr Access<StructWith<first>> number_or_none = {
    [](const auto& values) {
      const std::uint64_t number = member_of<first, deeper...>(values);
      return number == 0 ? OptionValue() : OptionValue(number);
    },
    [](auto& values, const OptionValue& value) {
      const auto* const number = std::get_if<std::uint64_t>(&value);
      auto& member = member_of<first, deeper...>(values);
      member = static_cast<std::remove_reference_t<decltype(member)>>(number == nullptr ? 0 : *number);
    },
    true};

template <auto first, auto... deeper>
constexpr Access<StructWith<first>> optional_number = {
    [](const auto& values) {
      const auto& member = member_of<first, deeper...>(values);
      return member ? OptionValue(*member) : OptionValue();
    },
    [](auto& values, const OptionValue& value) {
      const auto* const number = std::get_if<std::uint64_t>(&value);
      member_of<first, deeper...>(values) = number == nullptr ? std::nullopt : std::optional(*number);
    },
    true};

template <auto first, auto... deeper>
constexpr Access<StructWith<first>> flag = {
    [](const auto& values) -> OptionValue { return member_of<first, deeper...>(values); },
    [](auto& values, const OptionValue& value) {
      member_of<first, deeper...>(values) = std::get<bool>(value);
    }};

// A text for which empty means not set.
template <auto first, auto... deeper>
constexpr Access<StructWith<first>> text = {
    [](const auto& values) {
      const std::string& member = member_of<first, deeper...>(values);
      return member.empty() ? OptionValue() : OptionValue(member);
    },
    [](auto& values, const OptionValue& value) { member_of<first, deeper...>(values) = text_in(value); },
    true};

// A std::optional written as a word: parse(std::string) and print() convert between the two.
template <auto parse, auto print, auto first, auto... deeper>
constexpr Access<StructWith<first>> word = {[](const auto& values) {
                                              const auto& member = member_of<first, deeper...>(values);
                                              return member ? OptionValue(std::string(print(*member)))
                                                            : OptionValue();
                                            },
                                            [](auto& values, const OptionValue& value) {
                                              const std::string text = text_in(value);
                                              auto& member = member_of<first, deeper...>(values);
                                              member.reset();
                                              if (!text.empty()) member = parse(text);
                                            },
                                            true};

// A vector whose elements are each written as a word. Empty means not set.
template <auto parse, auto print, auto first, auto... deeper>
constexpr Access<StructWith<first>> words = {
    [](const auto& values) {
      std::vector<std::string> texts;
      for (const auto& element : member_of<first, deeper...>(values)) texts.emplace_back(print(element));
      return texts.empty() ? OptionValue() : OptionValue(std::move(texts));
    },
    [](auto& values, const OptionValue& value) {
      std::remove_reference_t<decltype(member_of<first, deeper...>(values))> elements;
      if (const auto* const texts = std::get_if<std::vector<std::string>>(&value))
        for (const std::string& text : *texts) elements.push_back(parse(text));
      member_of<first, deeper...>(values) = std::move(elements);
    },
    true};

}  // namespace loadline::access
