// Parses the command line, runs one command (by default the window), turns errors into messages and exit
// codes.

#include "app/cli/base/command.h"
#include "app/cli/base/option_flags.h"
#include "app/cli/base/rates.h"
#include "app/gui_request.h"
#include "core/base/error.h"
#include "core/base/option.h"
#include "core/base/tasks.h"
#include "core/base/text.h"
#include "core/forward/model/known_models.h"
#include "importers/importer.h"
#include "importers/resolve.h"
#include "importers/stores.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <filesystem>
#include <new>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/core.h>
#include <nlohmann/json.hpp>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <unistd.h>

namespace loadline::cli {

// --- Parses arguments, runs one command, and turns errors into messages and exit codes.

namespace {

std::string environment(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? "" : value;
}

// Searches in the same places as huggingface_hub.
std::string hub_cache_folder() {
  for (const char* name : {"HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE"})
    if (std::string folder = environment(name); !folder.empty()) return folder;
  if (const std::string home = environment("HF_HOME"); !home.empty()) return home + "/hub";
  if (const std::string cache = environment("XDG_CACHE_HOME"); !cache.empty())
    return cache + "/huggingface/hub";
  const std::string home = environment("HOME");
  return home.empty() ? "" : home + "/.cache/huggingface/hub";
}

// The folder for what can be computed anew.
std::string cache_folder() {
  if (const std::string folder = environment("XDG_CACHE_HOME"); !folder.empty()) return folder + "/loadline";
  const std::string home = environment("HOME");
  return home.empty() ? "" : home + "/.cache/loadline";
}

// The folder for the user's own architectures, profiles and devices.
std::string configuration_folder() {
  if (const std::string folder = environment("XDG_CONFIG_HOME"); !folder.empty()) return folder + "/loadline";
  const std::string home = environment("HOME");
  return home.empty() ? "" : home + "/.config/loadline";
}

std::shared_ptr<const forward::ForwardAssets> user_assets(const Context& context) {
  auto assets = context.config_folder.empty() ? forward::built_in_assets()
                                              : forward::load_assets(context.config_folder);
  if (!context.quiet)
    for (const std::string& fault : assets->faults) complain("ignored: " + fault);
  return assets;
}

// As setlocale() does: the first of these variables that is set decides.
bool locale_is_utf8() {
  for (const char* name : {"LC_ALL", "LC_CTYPE", "LANG"}) {
    const std::string value = lower_case(environment(name));
    if (value.empty()) continue;
    return value.find("utf-8") != std::string::npos || value.find("utf8") != std::string::npos;
  }
  return false;
}

std::size_t terminal_columns() {
  constexpr std::size_t kUsual = 80;
  struct winsize size = {};
  if (::isatty(STDOUT_FILENO) != 1 || ::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0) return kUsual;
  return size.ws_col == 0 ? kUsual : size.ws_col;
}

int exit_code(ErrorCode code) {
  if (code == ErrorCode::usage) return kUsage;
  if (code == ErrorCode::no_fit) return kNoFit;
  return code == ErrorCode::canceled ? kCanceled : kFailed;
}

int report(const Context& context, const Error& error) {
  if (context.json) {
    Json json = {{"code", error_code_name(error.code())}, {"message", json_text(error.what())}};
    const ErrorPlace& place = error.place();
    if (!place.file.empty()) json["file"] = json_text(place.file);
    if (place.byte) json["byte"] = *place.byte;
    if (place.tensor) json["tensor"] = json_text(*place.tensor);
    if (const auto& remedy = error.remedy())
      json["remedy"] = {{"option", remedy->option}, {"value", json_text(remedy->value)}};
    print_json({{"error", json}});
  }
  complain(error.what() + remedy_words(error.remedy()));
  return exit_code(error.code());
}

// Turns output that could not be written into a failure of the command.
int flushed(int code) {
  if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) return code;
  complain(fmt::format("cannot write the output: {}", std::strerror(errno)));
  return kFailed;
}

// A sharded model's files are all open at once: raises the limit to the system's maximum.
void raise_file_limit() {
  struct rlimit limit = {};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  (void)::setrlimit(RLIMIT_NOFILE, &limit);
}

// Waits for termination signals (Ctrl-C) in a thread of its own, so that no signal handler interrupts other
// code. The first signal requests a stop. A later one ends the program at once, unless it comes within two
// seconds: wrappers signal both a process and its group.
class Interrupt {
 public:
  Interrupt() {
    sigemptyset(&signals_);
    // signals that the parent ignores (nohup, background jobs of a script) stay ignored
    for (const int number : {SIGINT, SIGTERM, SIGHUP}) {
      struct sigaction current = {};
      if (::sigaction(number, nullptr, &current) == 0 && current.sa_handler == SIG_IGN) continue;
      sigaddset(&signals_, number);
    }
    sigaddset(&signals_, kWake);
    pthread_sigmask(SIG_BLOCK, &signals_, nullptr);
    thread_ = start_thread([this] {
      using Clock = std::chrono::steady_clock;
      constexpr std::chrono::seconds kImpatient(2);
      Clock::time_point asked;
      int number = 0;
      while (sigwait(&signals_, &number) == 0 && !finished_) {
        if (number == kWake) continue;
        if (source_.request_stop())
          asked = Clock::now();
        else if (Clock::now() - asked > kImpatient)
          ::_exit(kCanceled);
      }
    });
  }
  ~Interrupt() {
    finished_ = true;
    pthread_kill(thread_.native_handle(), kWake);
    thread_.join();
  }
  std::stop_token token() const { return source_.get_token(); }

 private:
  static constexpr int kWake = SIGUSR1;  // ends the thread
  sigset_t signals_ = {};
  std::stop_source source_;
  std::atomic<bool> finished_ = false;
  std::jthread thread_;
};

// Throws unless a word that is not a command names a model: a file here or a model in the hub cache.
void require_model(const std::string& word, const Context& context) {
  std::error_code ignored;
  if (!word.empty() && std::filesystem::exists(word, ignored)) return;
  try {
    if (!word.empty()) return (void)importers::resolve(word, context.resolve_options());
  } catch (const Error& error) {
    if (error.code() != ErrorCode::io) return;  // the model exists: the window reports its fault
  }
  std::vector<std::string_view> names;
  for (const Command& command : commands()) names.push_back(command.name);
  const std::string_view meant = nearest_word(word, names);
  throw Error(ErrorCode::usage,
              "no command, no file and no model in the hub cache is called '{}'; {}`loadline "
              "--help` lists the commands",
              safe_display(word, 100), meant.empty() ? "" : fmt::format("did you mean {}? ", meant));
}

constexpr std::string_view kDefaultCommand = "gui";

// Adds the command `gui` for `loadline` and `loadline PATH`, which open the window.
std::vector<std::string> with_default_command(int argc, char** argv, const Context& context) {
  std::vector<std::string> arguments(argv + 1, argv + argc);
  std::size_t first = 0;
  while (first < arguments.size() && (arguments[first] == "--quiet" || arguments[first] == "-q")) ++first;
  if (first == arguments.size()) {
    if (context.run_gui != nullptr) arguments.emplace_back(kDefaultCommand);
    return arguments;
  }
  const std::string& word = arguments[first];
  const bool is_command =
      std::ranges::any_of(commands(), [&](const Command& command) { return command.name == word; });
  if (word.starts_with('-') || is_command) return arguments;
  require_model(word, context);
  arguments.insert(arguments.begin() + static_cast<std::ptrdiff_t>(first), std::string(kDefaultCommand));
  return arguments;
}

// The context without the parts that depend on the command line and the terminal.
Context make_context(int (*run_gui)(const GuiRequest&)) {
  Context context;
  context.run_gui = run_gui;
  context.hub_cache = hub_cache_folder();
  context.config_folder = configuration_folder();
  context.cache_folder = cache_folder();
  return context;
}

// The summary of the command as the first line, then its examples.
std::string description_of(const Command& command) {
  std::string text = std::string(command.summary) + ".\n\nExamples:";
  for (const std::string_view example : lines_of(command.examples)) text += fmt::format("\n  {}", example);
  return text;
}

struct Parsers {
  std::vector<Action> actions;
  std::vector<CLI::App*> parsers;  // parallel to actions
};

// Whether the arguments may run a command: each has many options, and a start must not pay for all of them.
bool may_run(const Command& command, std::span<char* const> arguments) {
  return command.name == kDefaultCommand ||
         std::ranges::any_of(arguments, [&](const char* word) { return command.name == word; });
}

void add_open_option(CLI::App& parser, const Option<importers::ResolveOptions>& option, Context& context) {
  const auto set = [&option, &context](const std::string& word) {
    try {
      set_option(option, context.open, word);
    } catch (const Error& error) {
      throw CLI::ValidationError(flag_of(option.id), error.what());
    }
  };
  if (option.kind == OptionKind::flag)
    parser.add_flag_callback(
        flag_of(option.id), [set] { set("on"); }, std::string(option.brief));
  else
    parser.add_option_function<std::string>(flag_of(option.id), set, std::string(option.brief))
        ->type_name(std::string(option.value_name));
}

// Options are bound to `context`, which must outlive `app`.
Parsers add_commands(CLI::App& app, std::span<char* const> arguments, Context& context) {
  app.set_version_flag("--version", std::string("loadline ") + LOADLINE_VERSION);
  app.require_subcommand(1);
  app.fallthrough();
  app.formatter(help_formatter());
  app.footer(
      "`loadline COMMAND --help` lists the options of a command, `loadline help` the\nmanual.\n"
      "Exit codes: 0 done, 1 failed, 2 usage, 3 does not fit the budget, 4 differs,\n130 canceled.");
  app.add_flag("-q,--quiet", context.quiet, "No progress and no notes on stderr");
  Parsers added;
  for (const Command& command : commands()) {
    CLI::App* const parser = app.add_subcommand(std::string(command.name), description_of(command));
    parser->footer("");
    if (!may_run(command, arguments)) continue;
    parser->add_flag("--json", context.json, "Print one JSON object");
    if (command.opens_model)
      for (const auto& option : importers::open_options()) add_open_option(*parser, option, context);
    added.actions.push_back(command.setup(*parser));
    added.parsers.push_back(parser);
  }
  return added;
}

// Returns the exit code if no command is left to run.
std::optional<int> parse(CLI::App& app, int argc, char** argv, Context& context) {
  // scripts that ask for JSON get JSON even if the command line is wrong
  context.json =
      std::any_of(argv + 1, argv + argc, [](const char* word) { return std::string_view(word) == "--json"; });
  try {
    std::vector<std::string> arguments = with_default_command(argc, argv, context);
    check_flags(app, arguments);
    std::ranges::reverse(arguments);  // CLI11 reads them from the back
    app.parse(std::move(arguments));
    return std::nullopt;
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() != 0)
      return report(context, Error(ErrorCode::usage, "{} (see --help)", safe_display(error.what())));
    app.exit(error);  // --help and --version
    return flushed(kDone);
  } catch (...) {
    return report(context, current_error());
  }
}

void look_at_terminal(Context& context) {
  context.color = ::isatty(STDOUT_FILENO) == 1 && environment("NO_COLOR").empty();
  context.unicode = locale_is_utf8();
  context.columns = terminal_columns();
  if (::isatty(STDOUT_FILENO) == 1) context.prose_columns = std::min(context.prose_columns, context.columns);
  context.show_progress = ::isatty(STDERR_FILENO) == 1 && !context.quiet && !context.json;
}

int run_command(const Action& action, Context& context) {
  try {
    const Interrupt interrupt;
    context.stop = interrupt.token();
    return flushed(action(context));
  } catch (...) {
    return report(context, current_error());
  }
}

int run_line(int argc, char** argv, int (*run_gui)(const GuiRequest&)) {
  Context context = make_context(run_gui);
  // shared by all copies: read once, and faults reported once
  context.assets = [&context, loaded = std::make_shared<std::shared_ptr<const forward::ForwardAssets>>()] {
    if (!*loaded) *loaded = user_assets(context);
    return *loaded;
  };
  CLI::App app(
      "Shows how much memory a model needs before it is loaded: inspects checkpoints, projects the peak of "
      "every way to load them, converts them and uploads them.",
      "loadline");
  const Parsers commands = add_commands(app, {argv, static_cast<std::size_t>(argc)}, context);
  if (const std::optional<int> code = parse(app, argc, argv, context)) return *code;
  raise_file_limit();
  // a file that may not grow (ulimit -f) is an error of that write, not the end of the process
  std::signal(SIGXFSZ, SIG_IGN);
  look_at_terminal(context);
  for (std::size_t i = 0; i < commands.parsers.size(); ++i)
    if (commands.parsers[i]->parsed()) return run_command(commands.actions[i], context);
  return kUsage;
}

// Needs no memory: where there was none for a message either.
void complain_at_end(std::string_view text) {
  for (const std::string_view part : {std::string_view("loadline: "), text, std::string_view("\n")})
    (void)!::write(STDERR_FILENO, part.data(), part.size());
}

// Memory can also run out where nothing may be thrown, as in a destructor.
[[noreturn]] void end_program() {
  try {
    if (const std::exception_ptr thrown = std::current_exception()) std::rethrow_exception(thrown);
  } catch (const std::bad_alloc&) {
    complain_at_end("out of memory");
    ::_exit(kFailed);
  } catch (const Error& error) {
    complain_at_end(error.what());
    ::_exit(kFailed);
  } catch (const std::exception&) {
    complain_at_end("an error where none can be reported");
    ::_exit(kFailed);
  } catch (...) {
  }
  // inside a library's noexcept functions the exception cannot be had any more
  if (std::uncaught_exceptions() == 0) std::abort();
  complain_at_end("an error where none can be reported: most likely memory ran out");
  ::_exit(kFailed);
}

}  // namespace

int run(int argc, char** argv, int (*run_gui)(const GuiRequest&)) {
  std::set_terminate(end_program);
  try {
    return run_line(argc, argv, run_gui);
  } catch (const std::bad_alloc&) {
    complain_at_end("out of memory");
    return kFailed;
  } catch (...) {  // while the commands were described
    const Error error = current_error();
    complain(error.what());
    return exit_code(error.code());
  }
}

// --- loadline gui: opens the window, or draws one frame of it into a picture file.

namespace {

struct GuiFlags {
  GuiRequest request;
  std::string theme = "dark";
  std::string size = "1280x800";
};

void parse_window_size(const std::string& text, GuiRequest& request) {
  int width = 0, height = 0, used = 0;
  if (std::sscanf(text.c_str(), "%5dx%5d%n", &width, &height, &used) != 2 ||
      static_cast<std::size_t>(used) != text.size() || width < 1024 || height < 600 || width > 7680 ||
      height > 4320)
    throw Error(ErrorCode::usage, "--size {}: write WIDTHxHEIGHT, from 1024x600 to 7680x4320", text);
  request.width = width;
  request.height = height;
}

}  // namespace

Action setup_gui(CLI::App& app) {
  auto options = std::make_shared<GuiFlags>();
  GuiRequest& request = options->request;
  add_list(app, "PATH", request.paths, "models to open, each in a tab");
  add_text(app, "--request", request.request, "open a saved request: its model, or the last PATH",
           {.value_name = "FILE"});
  add_text(app, "--screenshot", request.screenshot, "draw one frame into this PNG, without a display",
           {.value_name = "FILE"});
  add_text(app, "--script", request.script, "play a file of commands", {.value_name = "FILE"});
  add_flag(app, "--offscreen", request.offscreen, "play the script without a display", {.needs = "--script"});
  add_text(app, "--panel", request.panel, "panel to show first", {.value_name = "ID"});
  add_text(app, "--lesson", request.lesson, "play this lesson (`loadline lesson list`)",
           {.value_name = "ID"});
  add_text(app, "--size", options->size, "logical size of the window [as remembered]",
           {.value_name = "WIDTHxHEIGHT"});
  add_text(app, "--theme", options->theme, "dark, light, or the system's [as remembered]",
           {.value_name = "NAME", .check = one_of({"dark", "light", "system"})});
  add_number(app, "--scale", request.scale, "pixels per logical pixel [the monitor's]",
             {.value_name = "FACTOR", .check = number_range(0.5, 4)});
  app.footer("`loadline help scripting` lists the words of a script.");
  return [options, &app](Context& context) {
    if (context.run_gui == nullptr) throw Error(ErrorCode::unsupported, "built without the window");
    GuiRequest& wanted = options->request;
    parse_window_size(options->size, wanted);
    if (!wanted.screenshot.empty() && !wanted.screenshot.ends_with(".png"))
      throw Error(ErrorCode::usage, "--screenshot {}: pictures are PNG files",
                  safe_display(wanted.screenshot));
    wanted.dark = options->theme != "light";
    wanted.follows_desktop = options->theme == "system";
    wanted.size_given = was_given(app, "--size");
    wanted.theme_given = was_given(app, "--theme");
    wanted.stores = importers::usual_stores(context.hub_cache, environment);
    if (!context.config_folder.empty()) {
      wanted.state_file = context.config_folder + "/window.json";
      wanted.lesson_folder = context.config_folder + "/lessons";
    }
    wanted.assets = context.assets();
    const load::Targets targets = load::load_targets(context.config_folder);
    if (!context.quiet)
      for (const std::string& fault : targets.faults) complain("ignored: " + fault);
    wanted.targets = targets.rows;
    wanted.rates = kept_rates(context);
    wanted.facts = kept_facts(context);
    wanted.stop = context.stop;
    const int code = context.run_gui(wanted);
    if (context.json && !wanted.screenshot.empty())
      print_json({{"screenshot", json_text(wanted.screenshot)}});
    return code;
  };
}

}  // namespace loadline::cli
