// The table of renamed flags, and a check of the command line before it is parsed.
#include "app/cli/base/unknown_flags.h"

#include "app/cli/base/option_flags.h"
#include "core/base/error.h"
#include "core/base/option.h"
#include "core/base/text.h"

#include <array>
#include <string_view>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

namespace loadline::cli {
namespace {

// A flag that no longer exists, and its replacement. An empty `command` stands for all commands.
struct Renamed {
  std::string_view command;
  std::string_view flag;
  std::string_view now;
};
constexpr std::array<Renamed, 9> kRenamed = {{
    {"", "--memory-limit", "it is called --runai-buffer now"},
    {"", "--max-memory", "it is called --auto-map now"},
    {"", "--max-peak", "it is called --require-peak now"},
    {"", "--cache-limit", "it is called --page-cache-budget now"},
    {"plan", "--measure", "`loadline rehearse PATH --method METHODS` does that now"},
    {"plan", "--cold", "`loadline rehearse PATH --cold` does that now"},
    {"plan", "--device",
     "a data sheet is --target now; --device names a GPU of this machine, in `upload` and `devices`"},
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
  for (const Renamed& row : kRenamed)
    if (row.flag == flag && (row.command.empty() || row.command == command.get_name()))
      throw Error(ErrorCode::usage, "{}: {}", flag, row.now);
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
  return remedy.value.empty() || remedy.value == "on" ? flag : flag + " " + remedy.value;
}

std::string remedy_words(const std::optional<Remedy>& remedy) {
  return remedy ? fmt::format("; {} allows it", remedy_flag(*remedy)) : "";
}

}  // namespace loadline::cli
