// What every command gets and uses: its context, exit codes, JSON output, progress line; the commands; run().
#pragma once

#include "core/base/progress.h"
#include "core/graph/meta_graph.h"
#include "core/inspect/doctor.h"
#include "importers/resolve.h"

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>

#include <nlohmann/json_fwd.hpp>

// --- The definition of a command, and the context that every command receives.

namespace CLI {
class App;
}

namespace loadline::report {
class KeptFacts;
}

namespace loadline {
struct GuiRequest;
}

namespace loadline::cli {

inline constexpr int kSchemaVersion = 2;

// Exit codes that scripts can rely on.
inline constexpr int kDone = 0;
inline constexpr int kFailed = 1;
inline constexpr int kUsage = 2;
inline constexpr int kNoFit = 3;
inline constexpr int kDifferent = 4;
inline constexpr int kCanceled = 130;

// Upper limit for numeric options: CLI11 would wrap negative or larger numbers.
inline constexpr std::int64_t kMostNumber = INT64_MAX;

using Json = nlohmann::ordered_json;

// Passed to every command; exists for the whole run.
struct Context {
  bool json = false;
  bool quiet = false;
  bool color = false;               // stdout is a terminal and NO_COLOR is not set
  bool unicode = false;             // the locale's encoding is UTF-8
  std::size_t columns = 80;         // width of the terminal behind stdout
  std::size_t prose_columns = 100;  // width of sentences; less if the terminal is narrower
  bool show_progress = false;       // stderr is a terminal, not --quiet and not --json
  importers::ResolveOptions open;   // as the flags of open_options() say
  std::string hub_cache;
  std::string cache_folder;      // may be emptied at any time; empty: none
  std::string config_folder;     // holds the user's own architectures, profiles and devices; empty: none
  forward::AssetsLoader assets;  // built-in and user's own; faults in the user's files go to stderr
  std::stop_token stop;          // requested by Ctrl-C
  int (*run_gui)(const GuiRequest&) = nullptr;  // null when built without the window

  importers::ResolveOptions resolve_options() const {
    importers::ResolveOptions options = open;
    options.hub_cache = hub_cache;
    options.assets = assets;
    return options;
  }
};

// A row of the table in command.cpp. `setup` adds options to the command's parser and returns the function
// that runs after parsing. The variables bound to the options live in that function.
using Action = std::function<int(Context&)>;
struct Command {
  std::string_view name;
  std::string_view summary;
  bool opens_model;
  Action (*setup)(CLI::App& app);
  std::string_view examples;  // lines for --help
};

std::span<const Command> commands();

// Adds the required positional PATH.
void add_path_option(CLI::App& app, std::string& path);
// Opens a model. Shows the first notes of severity warning and error on stderr, unless quiet.
graph::MetaGraphPtr open_for(const Context& context, const std::string& path);
// For what reads tensors alone: as ResolveOptions::weights_only.
importers::ResolveOptions weights_alone(const Context& context);
graph::MetaGraphPtr open_weights_for(const Context& context, const std::string& path);
// The same of a model of which a conversion has taken parts away, to go on with that.
graph::MetaGraphPtr open_consumed(const Context& context, const std::string& path);
// Tries an advice about the model.
inspect::CanConvert conversion_trial(const Context& context, const graph::MetaGraphPtr& graph);
// "error: tensor 'x': text", for display.
std::string note_text(const graph::Note& note);

// A list of {severity, tensor, text}.
Json notes_json(std::span<const graph::Note> notes);

// What was read of models before; read() is not called yet. Of this program with these assets of the user.
report::KeptFacts kept_facts(const Context& context);

// Writes a line to stderr. Never fails, since nobody may be reading it.
void complain(const std::string& text);

// Rows of a JSON array that may be too long to keep as objects: stored as text.
class JsonRows {
 public:
  // `key`: the key of the array in the object that print_json prints.
  explicit JsonRows(std::string key) : key_(std::move(key)) {}
  void add(const Json& row);
  const std::string& key() const { return key_; }
  // The text between the array's brackets, indented as print_json does.
  const std::string& text() const { return rows_; }

 private:
  std::string key_;
  std::string rows_;
};

// Prints one object that begins with schema_version and tool_version and ends with the rows, if given.
void print_json(Json object, const JsonRows* rows = nullptr);
// `raw` as a JSON string value: text that is not valid UTF-8 is escaped.
std::string json_text(std::string_view raw);
// The same of each, as a list.
Json json_texts(const std::vector<std::string>& raw);

// A progress line on stderr that follows `progress` until destruction; silent unless context.show_progress is
// set.
class ProgressLine {
 public:
  ProgressLine(const Context& context, std::string label, const Progress& progress);
  ~ProgressLine();

 private:
  struct Worker;
  std::unique_ptr<Worker> worker_;
};

// --- One setup function per command, each in its own file.

Action setup_batch(CLI::App& app);
Action setup_clean(CLI::App& app);
Action setup_convert(CLI::App& app);
Action setup_devices(CLI::App& app);
Action setup_diff(CLI::App& app);
Action setup_edit(CLI::App& app);
Action setup_formats(CLI::App& app);
Action setup_gui(CLI::App& app);
Action setup_help(CLI::App& app);
Action setup_inspect(CLI::App& app);
Action setup_join(CLI::App& app);
Action setup_merge(CLI::App& app);
Action setup_methods(CLI::App& app);
Action setup_plan(CLI::App& app);
Action setup_lesson(CLI::App& app);
Action setup_rehearse(CLI::App& app);
Action setup_report(CLI::App& app);
Action setup_synth(CLI::App& app);
Action setup_pack(CLI::App& app);
Action setup_targets(CLI::App& app);
Action setup_truth(CLI::App& app);
Action setup_models(CLI::App& app);
Action setup_upload(CLI::App& app);
Action setup_verify(CLI::App& app);

// --- The command line.

// Parses and runs; returns the exit code. `run_gui` is null when built without the window.
int run(int argc, char** argv, int (*run_gui)(const GuiRequest&));

}  // namespace loadline::cli
