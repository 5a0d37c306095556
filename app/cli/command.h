// What a command is, and what every command gets.
#pragma once

#include "core/base/progress.h"
#include "core/graph/meta_graph.h"
#include "importers/resolve.h"

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>

#include <nlohmann/json_fwd.hpp>

namespace CLI {
class App;
}

namespace loadline {
struct GuiRequest;
}

namespace loadline::cli {

inline constexpr int kSchemaVersion = 2;

// Exit codes of the contract.
inline constexpr int kDone = 0;
inline constexpr int kFailed = 1;
inline constexpr int kUsage = 2;
inline constexpr int kNoFit = 3;
inline constexpr int kDifferent = 4;
inline constexpr int kCancelled = 130;

// The most that a numeric option takes: CLI11 would wrap what is negative or larger.
inline constexpr std::int64_t kMostNumber = INT64_MAX;

using Json = nlohmann::ordered_json;

// Given to every command; lives for the whole run.
struct Context {
  bool json = false;
  bool quiet = false;
  bool colour = false;         // stdout is a terminal and NO_COLOR is not set
  bool unicode = false;        // the locale's characters are UTF-8
  std::size_t columns = 80;    // of the terminal that stdout is
  bool show_progress = false;  // stderr is a terminal, not --quiet and not --json
  bool follow_links = false;
  std::string hub_cache;
  std::string config_folder;  // of the user's own architectures, profiles and devices; empty: none
  AssetsLoader assets;        // built in, and the user's own; what is wrong with those is told
  std::stop_token stop;       // requested by Ctrl-C
  int (*run_gui)(const GuiRequest&) = nullptr;  // null when built without the window

  ResolveOptions resolve_options() const { return {hub_cache, follow_links, assets}; }
};

// A row of the table in commands.cpp. `setup` adds options to the command's parser and returns what
// runs after parsing; the options it binds live in the returned function.
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
// open_model, with the first notes of severity warning and error shown on stderr unless quiet.
MetaGraphPtr open_for(const Context& context, const std::string& path);
// "error: tensor 'x': text", for a person.
std::string note_text(const Note& note);

// A line for a person on stderr. Never fails: there may be nobody to read it.
void complain(const std::string& text);

// The rows of an array that can be too long for objects: kept as text.
class JsonRows {
 public:
  // `key` is the array's in the object that print_json prints.
  explicit JsonRows(std::string key) : key_(std::move(key)) {}
  void add(const Json& row);
  const std::string& key() const { return key_; }
  // What stands between the array's brackets, as print_json indents it.
  const std::string& text() const { return rows_; }

 private:
  std::string key_;
  std::string rows_;
};

// Prints one object with schema_version and tool_version in front and, if given, rows at its end.
void print_json(Json object, const JsonRows* rows = nullptr);
// JSON text must be UTF-8: names that are not are shown escaped.
std::string json_text(std::string_view raw);

// A line on stderr that follows `progress` until it is destroyed; silent where the context says so.
class ProgressLine {
 public:
  ProgressLine(const Context& context, std::string label, const Progress& progress);
  ~ProgressLine();

 private:
  struct Worker;
  std::unique_ptr<Worker> worker_;
};

}  // namespace loadline::cli
