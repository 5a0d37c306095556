// A help formatter for CLI11.
#include "app/cli/base/help_format.h"
#include "app/report/wrap.h"

#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

namespace loadline::cli {
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
    constexpr std::array<std::string_view, 5> kShared = {"help", "version", "json", "quiet", "follow-links"};
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
      text += (text.empty() ? "" : ", ") + option->get_name(false, true);
    // every command takes it, before its name or behind it
    return report::wrapped("Common options: " + text + ", -q,--quiet", "  ", kColumns).substr(2);
  }
};

}  // namespace

std::shared_ptr<CLI::FormatterBase> help_formatter() { return std::make_shared<HelpFormatter>(); }

}  // namespace loadline::cli
