// Options as data: one row says what an option is called, what it means and how its value is read and
// printed. The command line, the window, scripts, saved requests and JSON iterate such rows.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace loadline {

enum class OptionKind : std::uint8_t {
  bytes,   // a size: "64MiB"
  count,   // a whole number
  flag,    // on or off
  choice,  // one of choices()
  names,   // several words
  text,
};

// What an option is set to. The alternative follows from the kind: bytes and count are std::uint64_t, flag is
// bool, choice and text are std::string, names are a list. monostate: not set.
using OptionValue = std::variant<std::monostate, bool, std::uint64_t, std::string, std::vector<std::string>>;

// One option of the plain struct T. Rows are constants; the texts are plain English for a person.
template <typename T>
struct Option {
  std::string_view id = {};  // the JSON key and the script word; as a flag "--" and hyphens
  std::string_view group = {};
  OptionKind kind = OptionKind::text;
  std::string_view title = {};         // "Staging ring": a label in the window, a row of a page
  std::string_view value_name = {};    // "SIZE"
  std::string_view brief = {};         // a line of help, at most 48 characters
  std::string_view help = {};          // whole sentences
  std::string_view default_text = {};  // what holds where it is not set; empty: nothing
  // All there are for `choice`; for `names` and `text` those that are offered, beside others.
  std::vector<std::string> (*choices)() = nullptr;
  OptionValue (*get)(const T& values) = nullptr;
  // Takes the value that get() would give back. Throws Error{usage} without an option's name: who asked adds
  // it.
  void (*set)(T& values, const OptionValue& value) = nullptr;
  std::uint64_t least = 0;  // of bytes and count
  std::uint64_t most = UINT64_MAX;
  bool can_be_unset = false;  // set() takes monostate; written "none"
  char separator = ',';       // between names
};

// The value that a word stands for: a size with its unit, a whole number, "on" or "off", names separated by
// `separator`. Throws Error{usage} that says what is wrong with `text`.
OptionValue parse_option(OptionKind kind, std::string_view text, char separator = ',');
// What parse_option() takes back; "none" where nothing is set. Sizes lose no byte: "64MiB", "1000".
std::string print_option(OptionKind kind, const OptionValue& value, char separator = ',');
// The same for a person: "64.00 MiB", "4", "yes".
std::string show_option(OptionKind kind, const OptionValue& value, char separator = ',');

// Throws Error{usage} for a number outside of [least, most] or a word that is not among the choices.
void check_option_number(std::uint64_t value, std::uint64_t least, std::uint64_t most, bool bytes);
void check_option_choice(std::string_view word, const std::vector<std::string>& choices);

// The word among `known` that somebody may have meant by `word`, or an empty one: a small edit distance.
std::string_view nearest_word(std::string_view word, const std::vector<std::string_view>& known);

// Checks the value against the row's limits and choices. Throws Error{usage}.
template <typename T>
void set_option_value(const Option<T>& option, T& values, const OptionValue& value) {
  if (const auto* const number = std::get_if<std::uint64_t>(&value))
    check_option_number(*number, option.least, option.most, option.kind == OptionKind::bytes);
  if (const auto* const word = std::get_if<std::string>(&value);
      word != nullptr && option.kind == OptionKind::choice)
    check_option_choice(*word, option.choices());
  option.set(values, value);
}

// Sets one option from a word, "none" where it can be unset. Throws Error{usage}.
template <typename T>
void set_option(const Option<T>& option, T& values, std::string_view word) {
  if (option.can_be_unset && word == "none") return option.set(values, std::monostate());
  const OptionValue value = parse_option(option.kind, word, option.separator);
  set_option_value(option, values, value);
}

template <typename T>
bool same_option(const Option<T>& option, const T& a, const T& b) {
  return option.get(a) == option.get(b);
}

// The row of a table with that id; null if there is none.
template <typename Row>
const Row* find_option(std::span<const Row> table, std::string_view id) {
  for (const Row& row : table)
    if (row.id == id) return &row;
  return nullptr;
}

}  // namespace loadline
