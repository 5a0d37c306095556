// Functions that several commands share.
#include "app/cli/base/command.h"

#include "core/base/recent_rate.h"
#include "core/base/start_thread.h"
#include "core/base/text.h"
#include "core/io/in_place.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <mutex>
#include <thread>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace loadline::cli {

void add_path_option(CLI::App& app, std::string& path) {
  app.add_option("PATH", path, "model: file, folder, org/name, config.json, shard")->required();
}

std::string note_text(const Note& note) {
  return fmt::format("{}: {}{}", severity_name(note.severity),
                     note.tensor ? fmt::format("tensor '{}': ", safe_display(*note.tensor, 120)) : "",
                     note.text);
}

void warn_of_interrupted_edit(const Context& context, const std::string& path) {
  if (!context.quiet && edit_was_interrupted(path))
    complain(
        fmt::format("{}: an edit of this file was interrupted; `loadline edit {}` puts the old header back",
                    safe_display(path, 100), safe_display(path, 100)));
}

MetaGraphPtr open_for(const Context& context, const std::string& path) {
  constexpr std::size_t kMostShown = 8;
  warn_of_interrupted_edit(context, path);
  auto graph = std::make_shared<const MetaGraph>(open_model(path, context.resolve_options()));
  if (context.quiet || context.json) return graph;
  std::size_t count = 0;
  for (const Note& note : graph->notes)
    if (note.severity != Severity::info && ++count <= kMostShown) complain(note_text(note));
  if (count > kMostShown)
    complain(fmt::format("and {} more; `inspect --json` has them all", count - kMostShown));
  return graph;
}

void complain(const std::string& text) {
  const std::string line = "loadline: " + text + "\n";
  (void)!std::fwrite(line.data(), 1, line.size(), stderr);
}

// ASCII only, so that a name in JSON cannot send control sequences to a terminal.
void JsonRows::add(const Json& row) {
  constexpr std::string_view kBreak = "\n    ";
  rows_.append(rows_.empty() ? "" : ",").append(kBreak);
  const std::string text = row.dump(2, ' ', true);  // line breaks in strings are escaped
  rows_.append(fmt::format("{}", fmt::join(lines_of(text), kBreak)));
}

// Write errors are checked at the end of the run, for all commands alike.
void print_json(Json object, const JsonRows* rows) {
  Json whole = {{"schema_version", kSchemaVersion}, {"tool_version", LOADLINE_VERSION}};
  for (auto& [key, value] : object.items()) whole[key] = std::move(value);
  const std::string text = whole.dump(2, ' ', true);
  const auto write = [](std::string_view part) { (void)!std::fwrite(part.data(), 1, part.size(), stdout); };
  if (rows == nullptr) return write(text + "\n");
  write(std::string_view(text).substr(0, text.size() - std::string_view("\n}").size()));
  write(fmt::format(",\n  {}: [", Json(rows->key()).dump()));
  write(rows->text());
  write(rows->text().empty() ? "]\n}\n" : "\n  ]\n}\n");
}

std::string json_text(std::string_view raw) {
  return is_valid_utf8(raw) ? std::string(raw) : safe_display(raw);
}

Json json_texts(const std::vector<std::string>& raw) {
  Json list = Json::array();
  for (const std::string& text : raw) list.push_back(json_text(text));
  return list;
}

Json notes_json(std::span<const Note> notes) {
  Json list = Json::array();
  for (const Note& note : notes)
    list.push_back({{"severity", severity_name(note.severity)},
                    {"tensor", note.tensor ? Json(json_text(*note.tensor)) : Json()},
                    {"text", json_text(note.text)}});
  return list;
}

namespace {

// Ignores write errors: a closed terminal must not stop the work.
void show(const std::string& text) {
  (void)!std::fwrite(text.data(), 1, text.size(), stderr);
  (void)std::fflush(stderr);
}

}  // namespace

struct ProgressLine::Worker {
  std::mutex mutex;
  std::condition_variable_any wake;
  std::jthread thread;
};

ProgressLine::ProgressLine(const Context& context, std::string label, const Progress& progress) {
  if (!context.show_progress) return;
  worker_ = std::make_unique<Worker>();
  Worker& worker = *worker_;
  worker.thread = start_thread([&worker, &progress, label = std::move(label)](const std::stop_token& stop) {
    RecentRate rate;
    rate.add(0);
    std::unique_lock lock(worker.mutex);
    // tasks shorter than this show nothing
    while (!worker.wake.wait_for(lock, stop, std::chrono::milliseconds(200), [] { return false; })) {
      if (stop.stop_requested()) break;
      const std::uint64_t done = progress.done(), total = progress.total();
      const double bytes_per_second = rate.add(done);
      const double left = static_cast<double>(total - std::min(done, total)) / bytes_per_second;
      show(
          fmt::format("\r\033[K{} {:3.0f}%  {} of {}  {}{}", label, 100 * progress.fraction(),
                      format_bytes(done), format_bytes(total), format_rate(bytes_per_second),
                      bytes_per_second > 0 ? fmt::format("  {} left", format_seconds(left)) : std::string()));
    }
    show("\r\033[K");
  });
}

ProgressLine::~ProgressLine() = default;

}  // namespace loadline::cli
