// Flags: added one by one, made from option tables, unknown ones, their layout in --help. Other files know
// CLI11's types by name only, because every file that includes it takes seconds more to compile.
#pragma once

#include "core/base/error.h"
#include "core/base/option.h"

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace CLI {
class App;
class FormatterBase;
class Option;
}  // namespace CLI

namespace loadline::cli {

// --- Adds options to a command, one at a time.

// A rule for each word of an option.
struct Check {
  std::string name = {};                                      // for messages
  std::function<std::string(const std::string&)> fault = {};  // what is wrong with a word; empty if nothing
};
Check one_of(const std::vector<std::string>& words);
Check whole_range(std::int64_t least, std::int64_t most);
// Refuses nan, which is neither below nor above a limit.
Check number_range(double least, double most);

// What an option may have beside its names, its variable and its help.
struct OptionRules {
  std::string value_name = {};    // in --help; empty: by the type of the variable
  std::string default_text = {};  // in --help
  bool show_default = false;      // the variable's value as default_text
  bool required = false;
  char separator = 0;  // between the words of a list
  Check check = {};
  std::string needs = {};     // another option, which must be given too
  std::string excludes = {};  // another option, which must not be given too
};

// `names`: "PATH", "--limit" or "-o,--out". The variable must outlive parsing.
void add_text(CLI::App& app, const std::string& names, std::string& text, const std::string& help,
              const OptionRules& rules = {});
void add_text(CLI::App& app, const std::string& names, std::optional<std::string>& text,
              const std::string& help, const OptionRules& rules = {});
void add_number(CLI::App& app, const std::string& names, std::uint64_t& number, const std::string& help,
                const OptionRules& rules = {});
void add_number(CLI::App& app, const std::string& names, std::optional<std::uint64_t>& number,
                const std::string& help, const OptionRules& rules = {});
void add_number(CLI::App& app, const std::string& names, unsigned& number, const std::string& help,
                const OptionRules& rules = {});
void add_number(CLI::App& app, const std::string& names, double& number, const std::string& help,
                const OptionRules& rules = {});
void add_number(CLI::App& app, const std::string& names, float& number, const std::string& help,
                const OptionRules& rules = {});
// Several words. A flag takes one each time it is given.
void add_list(CLI::App& app, const std::string& names, std::vector<std::string>& words,
              const std::string& help, const OptionRules& rules = {});
void add_flag(CLI::App& app, const std::string& names, bool& on, const std::string& help,
              const OptionRules& rules = {});

// The heading in --help of the options that are added after it.
void begin_group(CLI::App& app, const std::string& heading);
// Replaces the default that --help shows of an option.
void set_default_text(CLI::App& app, const std::string& flag, const std::string& text);

// After parsing: whether the option is on the command line.
bool was_given(const CLI::App& app, const std::string& flag);
std::string command_name(const CLI::App& app);

// --- Turns rows of an option table into flags of a command: the only place where an id becomes a flag.

// "device_budget" -> "--device-budget".
std::string flag_of(std::string_view id);

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
