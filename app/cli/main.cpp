// Parses arguments, runs one command, and turns errors into messages and exit codes.
#include "app/cli/main.h"

#include "app/cli/command.h"
#include "core/base/error.h"
#include "core/base/text.h"

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <unistd.h>

namespace loadline::cli {
namespace {

std::string environment(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? "" : value;
}

// As huggingface_hub looks for it.
std::string hub_cache_folder() {
  for (const char* name : {"HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE"})
    if (std::string folder = environment(name); !folder.empty()) return folder;
  if (const std::string home = environment("HF_HOME"); !home.empty()) return home + "/hub";
  if (const std::string cache = environment("XDG_CACHE_HOME"); !cache.empty())
    return cache + "/huggingface/hub";
  const std::string home = environment("HOME");
  return home.empty() ? "" : home + "/.cache/huggingface/hub";
}

int exit_code(ErrorCode code) {
  switch (code) {
    case ErrorCode::usage:
      return kUsage;
    case ErrorCode::no_fit:
      return kNoFit;
    case ErrorCode::cancelled:
      return kCancelled;
    default:
      return kFailed;
  }
}

int report(const Context& context, const Error& error) {
  if (context.json) {
    Json json = {{"code", error_code_name(error.code())}, {"message", json_text(error.what())}};
    const ErrorPlace& place = error.place();
    if (!place.file.empty()) json["file"] = json_text(place.file);
    if (place.byte) json["byte"] = *place.byte;
    if (place.tensor) json["tensor"] = json_text(*place.tensor);
    print_json({{"error", json}});
  }
  fmt::print(stderr, "loadline: {}\n", error.what());
  return exit_code(error.code());
}

// Waits for Ctrl-C or a request to end in a thread of its own, so that no handler runs in the middle
// of anything. A second signal ends the program the hard way.
class Interrupt {
 public:
  Interrupt() {
    sigemptyset(&signals_);
    for (const int number : {SIGINT, SIGTERM, SIGHUP}) sigaddset(&signals_, number);
    pthread_sigmask(SIG_BLOCK, &signals_, nullptr);
    thread_ = std::thread([this] {
      int number = 0;
      while (sigwait(&signals_, &number) == 0 && !finished_) {
        if (source_.stop_requested()) ::_exit(kCancelled);
        source_.request_stop();
      }
    });
  }
  ~Interrupt() {
    finished_ = true;
    pthread_kill(thread_.native_handle(), SIGTERM);
    thread_.join();
  }
  std::stop_token token() const { return source_.get_token(); }

 private:
  sigset_t signals_ = {};
  std::stop_source source_;
  std::atomic<bool> finished_ = false;
  std::thread thread_;
};

// `loadline` and `loadline PATH` open the window.
std::vector<std::string> with_default_command(int argc, char** argv, bool has_gui) {
  std::vector<std::string> arguments(argv + 1, argv + argc);
  if (!has_gui) return arguments;
  const auto is_command = [](const std::string& word) {
    for (const Command& command : commands())
      if (command.name == word) return true;
    return false;
  };
  std::size_t first = 0;
  while (first < arguments.size() && (arguments[first] == "--quiet" || arguments[first] == "-q")) ++first;
  if (first == arguments.size()) {
    arguments.emplace_back("gui");
    return arguments;
  }
  const std::string& word = arguments[first];
  const bool option = word.rfind('-', 0) == 0;
  if (!option && !is_command(word) && (std::filesystem::exists(word) || word.find('/') != std::string::npos))
    arguments.insert(arguments.begin() + static_cast<std::ptrdiff_t>(first), "gui");
  return arguments;
}

}  // namespace

int run(int argc, char** argv, int (*run_gui)(const GuiRequest&)) {
  Context context;
  context.run_gui = run_gui;
  context.hub_cache = hub_cache_folder();

  CLI::App app(
      "How deep a model sits in memory before it is loaded: inspects checkpoints, projects the peak of "
      "every way to load them, converts them and uploads them.",
      "loadline");
  app.set_version_flag("--version", std::string("loadline ") + LOADLINE_VERSION);
  app.require_subcommand(1);
  app.fallthrough();
  app.set_help_all_flag("--help-all", "Print the options of every command");
  app.footer(
      "PATH is a file, a model folder, a Hugging Face cache folder, org/name from the local cache, a "
      "config.json or "
      "one shard.\nExit codes: 0 done, 1 failed, 2 usage, 3 does not fit the budget, 4 differs, 130 "
      "cancelled.");
  app.add_flag("-q,--quiet", context.quiet, "No progress and no notes on stderr");
  std::vector<Action> actions;
  std::vector<CLI::App*> parsers;
  for (const Command& command : commands()) {
    CLI::App* const parser = app.add_subcommand(std::string(command.name), std::string(command.summary));
    parser->add_flag("--json", context.json, "Print one JSON object");
    parser->add_flag("--follow-links", context.follow_links, "Allow links that leave the model's folder");
    actions.push_back(command.setup(*parser));
    parsers.push_back(parser);
  }

  try {
    std::vector<std::string> arguments = with_default_command(argc, argv, run_gui != nullptr);
    std::reverse(arguments.begin(), arguments.end());  // CLI11 takes them from the back
    app.parse(std::move(arguments));
  } catch (const CLI::ParseError& error) {
    const int code = app.exit(error);
    return code == 0 ? kDone : kUsage;
  }

  context.colour = ::isatty(STDOUT_FILENO) == 1 && environment("NO_COLOR").empty();
  context.show_progress = ::isatty(STDERR_FILENO) == 1 && !context.quiet && !context.json;
  try {
    for (std::size_t i = 0; i < parsers.size(); ++i) {
      if (!parsers[i]->parsed()) continue;
      if (commands()[i].name == "gui") return actions[i](context);
      const Interrupt interrupt;
      context.stop = interrupt.token();
      return actions[i](context);
    }
  } catch (const Error& error) {
    return report(context, error);
  } catch (const std::bad_alloc&) {
    return report(context, Error(ErrorCode::limit, "out of memory"));
  } catch (const std::exception& error) {
    return report(context, Error(ErrorCode::io, fmt::format("unexpected failure: {}", error.what())));
  }
  return kUsage;
}

}  // namespace loadline::cli
