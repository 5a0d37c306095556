// Adds options to CLI11, binds option rows to it, names the nearest known flag, formats --help.
#include "app/cli/base/option_flags.h"

#include "app/cli/base/terminal.h"
#include "app/report/markdown.h"
#include "core/base/error.h"
#include "core/base/option.h"
#include "core/base/text.h"

#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>

namespace loadline::cli {

// --- Adds options to a command, one at a time.

namespace {

Check check_of(const CLI::Validator& validator) {
  return {validator.get_description(), [validator](const std::string& word) { return validator(word); }};
}

void set_rules(CLI::Option& option, const OptionRules& rules) {
  if (!rules.value_name.empty()) option.type_name(rules.value_name);
  if (!rules.default_text.empty()) option.default_str(rules.default_text);
  if (rules.show_default) option.capture_default_str();
  if (rules.separator != 0) option.delimiter(rules.separator);
  if (rules.check.fault) option.check(rules.check.fault, rules.check.name);
  if (!rules.needs.empty()) option.needs(rules.needs);
  if (!rules.excludes.empty()) option.excludes(rules.excludes);
  option.required(rules.required);
}

}  // namespace

Check one_of(const std::vector<std::string>& words) { return check_of(CLI::IsMember(words)); }

Check whole_range(std::int64_t least, std::int64_t most) { return check_of(CLI::Range(least, most)); }

Check number_range(double least, double most) {
  return {fmt::format("FLOAT in [{} - {}]", least, most), [least, most](const std::string& word) {
            double value = 0;
            if (CLI::detail::lexical_cast(word, value) && value >= least && value <= most)
              return std::string();
            return fmt::format("Value {} not in range {} to {}", word, least, most);
          }};
}

void add_text(CLI::App& app, const std::string& names, std::string& text, const std::string& help,
              const OptionRules& rules) {
  set_rules(*app.add_option(names, text, help), rules);
}

void add_text(CLI::App& app, const std::string& names, std::optional<std::string>& text,
              const std::string& help, const OptionRules& rules) {
  set_rules(*app.add_option(names, text, help), rules);
}

void add_number(CLI::App& app, const std::string& names, std::uint64_t& number, const std::string& help,
                const OptionRules& rules) {
  set_rules(*app.add_option(names, number, help), rules);
}

void add_number(CLI::App& app, const std::string& names, std::optional<std::uint64_t>& number,
                const std::string& help, const OptionRules& rules) {
  set_rules(*app.add_option(names, number, help), rules);
}

void add_number(CLI::App& app, const std::string& names, unsigned& number, const std::string& help,
                const OptionRules& rules) {
  set_rules(*app.add_option(names, number, help), rules);
}

void add_number(CLI::App& app, const std::string& names, double& number, const std::string& help,
                const OptionRules& rules) {
  set_rules(*app.add_option(names, number, help), rules);
}

void add_number(CLI::App& app, const std::string& names, float& number, const std::string& help,
                const OptionRules& rules) {
  set_rules(*app.add_option(names, number, help), rules);
}

void add_list(CLI::App& app, const std::string& names, std::vector<std::string>& words,
              const std::string& help, const OptionRules& rules) {
  CLI::Option& option = *app.add_option(names, words, help);
  if (names.starts_with('-')) option.allow_extra_args(false);
  set_rules(option, rules);
}

void add_flag(CLI::App& app, const std::string& names, bool& on, const std::string& help,
              const OptionRules& rules) {
  set_rules(*app.add_flag(names, on, help), rules);
}

void begin_group(CLI::App& app, const std::string& heading) { app.option_defaults()->group(heading); }

void set_default_text(CLI::App& app, const std::string& flag, const std::string& text) {
  app.get_option(flag)->default_str(text);
}

bool was_given(const CLI::App& app, const std::string& flag) { return app.get_option(flag)->count() > 0; }

std::string command_name(const CLI::App& app) { return app.get_name(); }

// --- Binds option rows to CLI11, which stores the words until the command asks for them.

std::string flag_of(std::string_view id) {
  std::string flag = "--" + std::string(id);
  std::replace(flag.begin(), flag.end(), '_', '-');
  return flag;
}

void OptionFlags::add_row(CLI::App& app, const FlagRow& row) {
  auto words = std::make_shared<std::vector<std::string>>();
  const std::string flag = flag_of(row.id), text(row.brief);
  CLI::Option* option = nullptr;
  if (row.kind == OptionKind::flag) {
    option = app.add_flag(flag, text);
  } else {
    option = app.add_option(flag, *words, text)->type_name(std::string(row.value_name));
    option->allow_extra_args(false);
    if (row.kind != OptionKind::names) option->expected(1);
    if (!row.default_text.empty()) option->default_str(std::string(row.default_text));
  }
  option->group(std::string(row.group));
  flags_.push_back({row.id, option, std::move(words)});
}

std::vector<std::string_view> OptionFlags::given_ids() const {
  std::vector<std::string_view> ids;
  for (const Flag& flag : flags_)
    if (flag.option->count() > 0) ids.push_back(flag.id);
  return ids;
}

std::vector<std::string> OptionFlags::words_of(std::string_view id) const {
  const auto flag = std::ranges::find_if(flags_, [&](const Flag& f) { return f.id == id; });
  if (flag == flags_.end() || flag->option->count() == 0) return {};
  return flag->option->get_items_expected_max() == 0 ? std::vector<std::string>{"on"} : *flag->words;
}

std::string OptionFlags::joined(const std::vector<std::string>& words) {
  return fmt::format("{}", fmt::join(words, ","));
}

void OptionFlags::refuse(std::string_view id, const Error& error) {
  throw Error(error.code(), "{}: {}", flag_of(id), error.what());
}

// --- A check of the command line before it is parsed.

namespace {

// A flag that a user may expect, and what there is instead. An empty `command` stands for all commands.
struct Expected {
  std::string_view command;
  std::string_view flag;
  std::string_view instead;
};
constexpr std::array<Expected, 2> kExpected = {{
    {"upload", "--target",
     "an upload has no --target: it runs on this machine, on the GPU that --device names"},
    {"", "--help-all", "`loadline COMMAND --help` prints the options of one command"},
}};

std::string flag_in(const std::string& word) { return word.substr(0, word.find('=')); }

bool knows(const CLI::App& app, const std::string& flag) { return app.get_option_no_throw(flag) != nullptr; }

std::vector<std::string> flags_of(const CLI::App& app) {
  std::vector<std::string> flags;
  for (const CLI::Option* option : app.get_options())
    for (const std::string& name : option->get_lnames()) flags.push_back("--" + name);
  return flags;
}

const CLI::App* find_command(const CLI::App& app, const std::string& name) {
  const auto found =
      app.get_subcommands([&](const CLI::App* command) { return command->get_name() == name; });
  return found.empty() ? nullptr : found.front();
}

// Whether the word before is a flag that takes a value; if so, this word may be anything.
bool is_value(const CLI::App& app, const std::string& before) {
  if (before.rfind('-', 0) != 0 || before.find('=') != std::string::npos) return false;
  const CLI::Option* const option = app.get_option_no_throw(before);
  return option != nullptr && option->get_type_size() > 0;
}

[[noreturn]] void refuse(const CLI::App& command, const std::string& flag) {
  for (const Expected& row : kExpected)
    if (row.flag == flag && (row.command.empty() || row.command == command.get_name()))
      throw Error(ErrorCode::usage, "{}: {}", flag, row.instead);
  const std::vector<std::string> flags = flags_of(command);
  const std::string_view meant = nearest_word(flag, {flags.begin(), flags.end()});
  throw Error(ErrorCode::usage, "{} has no option {}{} (see --help)", command.get_name(),
              safe_display(flag, 60), meant.empty() ? "" : fmt::format("; did you mean {}?", meant));
}

}  // namespace

void check_flags(const CLI::App& app, const std::vector<std::string>& arguments) {
  const CLI::App* command = nullptr;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const std::string& word = arguments[i];
    if (command == nullptr) {
      command = find_command(app, word);
      if (const std::string flag = flag_in(word);
          flag.size() > 2 && flag.starts_with("--") && !knows(app, flag))
        refuse(app, flag);
      continue;
    }
    if (word == "--") return;
    const std::string flag = flag_in(word);
    if (flag.rfind("--", 0) != 0 || is_value(*command, arguments[i - 1])) continue;
    if (!knows(*command, flag) && !knows(app, flag)) refuse(*command, flag);
  }
}

std::string remedy_flag(const Remedy& remedy) {
  const std::string flag = flag_of(remedy.option);
  return remedy.value.empty() || remedy.value == "on" ? flag : flag + " " + shell_word(remedy.value);
}

std::string remedy_words(const std::optional<Remedy>& remedy) {
  return remedy ? fmt::format("; {} allows it", remedy_flag(*remedy)) : "";
}

// --- A help formatter for CLI11.

namespace {

constexpr std::size_t kColumns = 80;
constexpr std::size_t kCommandNames = 12;
constexpr std::size_t kNames = 29;  // width of the column of flags, with indent and gap

class HelpFormatter final : public CLI::Formatter {
 public:
  // The whole help text. The description of `app` has the examples after its first line.
  std::string make_help(const CLI::App* app, std::string name, CLI::AppFormatMode) const override {
    std::string text = report::wrapped(first_line(app->get_description()), "", kColumns);
    text.pop_back();  // wrapped() ends with a line break, which follows below
    text += app->get_description().substr(first_line(app->get_description()).size());
    text += "\n\nUsage: " + usage(app, name) + "\n";
    for (const CLI::Option* option : positionals(app)) text += line(option->get_name(), option);
    const std::vector<const CLI::App*> commands = subcommands(app);
    if (!commands.empty()) text += "\nCommands:\n";
    for (const CLI::App* command : commands)
      text += row(command->get_name(), first_line(command->get_description()), kCommandNames);
    std::vector<const CLI::Option*> common, own;
    for (const std::string& group : groups(app)) {
      text += fmt::format("{}:\n", group);
      for (const CLI::Option* option : app->get_options())
        if (option->get_group() == group && !option->get_positional()) text += line(flags(option), option);
    }
    for (const CLI::Option* option : app->get_options())
      if (option->get_group() == kCommon && !option->get_positional())
        (is_common(*option) ? common : own).push_back(option);
    if (!own.empty()) text += "Options:\n";
    for (const CLI::Option* option : own) text += line(flags(option), option);
    text += common_lines(common);
    const std::string footer = app->get_footer();
    return footer.empty() ? text : text + "\n" + footer + "\n";
  }

 private:
  static constexpr const char* kCommon = "Options";  // CLI11's own group

  // The options that every command has.
  static bool is_common(const CLI::Option& option) {
    constexpr std::array<std::string_view, 6> kShared = {"help",  "version",      "json",
                                                         "quiet", "follow-links", "picture-side"};
    return !option.get_lnames().empty() &&
           std::ranges::find(kShared, option.get_lnames().front()) != kShared.end();
  }

  static std::string usage(const CLI::App* app, const std::string& name) {
    std::string text = name;
    for (const CLI::Option* option : positionals(app))
      text += option->get_required() ? " " + option->get_name() : " [" + option->get_name() + "]";
    return text + (app->get_parent() == nullptr ? " COMMAND [OPTIONS]" : " [OPTIONS]");
  }

  static std::vector<const CLI::Option*> positionals(const CLI::App* app) {
    return app->get_options([](const CLI::Option* option) { return option->get_positional(); });
  }

  static std::vector<const CLI::App*> subcommands(const CLI::App* app) {
    return app->get_subcommands([](const CLI::App* command) { return !command->get_name().empty(); });
  }

  // Groups in the order of their first option.
  static std::vector<std::string> groups(const CLI::App* app) {
    std::vector<std::string> names;
    for (const CLI::Option* option : app->get_options())
      if (!option->get_positional() && !option->get_group().empty() && option->get_group() != kCommon &&
          std::ranges::find(names, option->get_group()) == names.end())
        names.push_back(option->get_group());
    return names;
  }

  static std::string first_line(const std::string& text) { return text.substr(0, text.find('\n')); }

  // Flags and value name: "-o,--out OUT.csv".
  static std::string flags(const CLI::Option* option) {
    std::string text = option->get_name(false, true);
    const std::string type = option->get_type_name();
    // CLI11 validators append their description after a colon
    return option->get_type_size() == 0 ? text : text + " " + type.substr(0, type.find(':'));
  }

  static std::string line(const std::string& names, const CLI::Option* option) {
    std::string text = option->get_description();
    const std::string unset = option->get_default_str();
    // a default too long for the line is left to the manual
    if (!unset.empty() && kNames + text.size() + unset.size() + 3 <= kColumns)
      text += fmt::format(" [{}]", unset);
    return row(names, text, kNames);
  }

  // A line with `names` on the left and `text` beside it.
  static std::string row(const std::string& names, const std::string& text, std::size_t indent) {
    std::string head = fmt::format("  {:<{}}", names, indent - 2);
    if (names.size() + 2 >= indent) head = fmt::format("  {}  ", names);
    const std::string beside = report::wrapped(text, std::string(indent, ' '), kColumns);
    return head + beside.substr(std::min(beside.size(), indent));
  }

  static std::string common_lines(const std::vector<const CLI::Option*>& options) {
    if (options.empty()) return "";
    std::string text;
    for (const CLI::Option* option : options)
      if (option->get_lnames() != std::vector<std::string>{"quiet"})
        text += option->get_name(false, true) + ", ";
    // every command takes it, before its name or behind it
    return report::wrapped("Common options: " + text + "-q,--quiet", "  ", kColumns).substr(2);
  }
};

}  // namespace

std::shared_ptr<CLI::FormatterBase> help_formatter() { return std::make_shared<HelpFormatter>(); }

}  // namespace loadline::cli
