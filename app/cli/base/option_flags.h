// Flags: made from option tables, unknown ones, their layout in --help.
#pragma once

#include "core/base/error.h"
#include "core/base/option.h"

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace CLI {
class App;
class FormatterBase;
class Option;
class Validator;
}  // namespace CLI

namespace loadline::cli {

// --- Turns rows of an option table into flags of a command: the only place where an id becomes a flag.

// "device_budget" -> "--device-budget".
std::string flag_of(std::string_view id);

// As CLI::Range, but also refuses nan, which is neither below nor above a limit.
CLI::Validator number_range(double least, double most);

// The fields of a row that a flag needs, independent of the row's table.
struct FlagRow {
  std::string_view id;
  std::string_view group;
  OptionKind kind = OptionKind::text;
  std::string_view value_name;
  std::string_view brief;
  std::string_view default_text;
  char separator = ',';
};

// The flags of one command that come from option tables.
class OptionFlags {
 public:
  template <typename T>
  void add(CLI::App& app, const Option<T>& option) {
    add_row(app, {option.id, option.group, option.kind, option.value_name, option.brief, option.default_text,
                  option.separator});
  }

  // After parsing: ids of the flags on the command line, in table order.
  std::vector<std::string_view> given_ids() const;

  // Sets the option if its flag was given. Throws Error{usage} whose message begins with the flag.
  template <typename T>
  void apply(const Option<T>& option, T& values) const {
    const std::vector<std::string> words = words_of(option.id);
    if (words.empty()) return;
    try {
      const bool list = option.kind == OptionKind::names && option.separator != ',';
      if (list && words != std::vector<std::string>{"none"})
        set_option_value(option, values, words);
      else
        set_option(option, values, joined(words));
    } catch (const Error& error) {
      refuse(option.id, error);
    }
  }

 private:
  struct Flag {
    std::string_view id;
    CLI::Option* option = nullptr;
    std::shared_ptr<std::vector<std::string>> words;
  };
  void add_row(CLI::App& app, const FlagRow& row);
  std::vector<std::string> words_of(std::string_view id) const;
  static std::string joined(const std::vector<std::string>& words);
  [[noreturn]] static void refuse(std::string_view id, const Error& error);

  std::vector<Flag> flags_;
};

// --- Reports unknown flags, with the nearest known flag.

// Throws Error{usage} for the first flag in `arguments` that neither `app` nor the named command knows; the
// message has the nearest known flag, or what there is instead.
void check_flags(const CLI::App& app, const std::vector<std::string>& arguments);

// "; --force allows it"; empty without a remedy.
std::string remedy_words(const std::optional<Remedy>& remedy);
// The remedy as a flag: "--align 64".
std::string remedy_flag(const Remedy& remedy);

// --- The layout of --help: examples first, then options by group, one line each.

std::shared_ptr<CLI::FormatterBase> help_formatter();

}  // namespace loadline::cli
