// The table of commands, and the functions that commands share.
#include "app/cli/base/command.h"

#include "app/cli/base/option_flags.h"
#include "app/report/does_it_run.h"
#include "core/base/tasks.h"
#include "core/base/text.h"
#include "core/forward/model/known_models.h"
#include "core/load/order/optimal_order.h"
#include "exporters/convert.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <filesystem>
#include <mutex>
#include <thread>

#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <sys/stat.h>

namespace loadline::cli {

// --- The table of commands.

namespace {

constexpr std::array<Command, 24> kCommands = {{
    {"gui", "Open the window (also: loadline, loadline PATH)", false, setup_gui,
     "loadline gui llama-3-8b\nloadline gui llama-3-8b --panel methods --screenshot methods.png"},
    {"models", "List the models on this disk, and which of them run here", false, setup_models,
     "loadline models\nloadline models ~/models --prompt 8000 --target rtx-4060-8gb"},
    {"inspect", "Show what is in a model", true, setup_inspect,
     "loadline inspect llama-3-8b --tree\nloadline inspect model.gguf --doctor"},
    {"plan", "Project the memory peaks of ways to load a model", true, setup_plan,
     "loadline plan llama-3-8b --target rtx-4060-8gb --fits --context max"},
    {"rehearse", "Run load plans in ordinary memory and compare projected with measured peaks", true,
     setup_rehearse, "loadline rehearse demo --method sequential,mmap_copy"},
    {"report", "Write a report on a model as one HTML page", true, setup_report,
     "loadline report demo -o demo.html\nloadline report demo demo.gguf"},
    {"lesson", "Take lessons on memory and loading", false, setup_lesson,
     "loadline lesson list\nloadline lesson run six-ways\nloadline lesson run six-ways -o six-ways.html"},
    {"methods", "List the load methods, or explain some", false, setup_methods,
     "loadline methods\nloadline methods state_dict accelerate"},
    {"truth", "Show how far off projections are from real frameworks", false, setup_truth,
     "loadline truth\nloadline truth --csv > truth.csv"},
    {"targets", "List data sheets of devices for `plan --target`", false, setup_targets,
     "loadline targets\nloadline targets rtx-4060-8gb"},
    {"pack", "Find offsets in an arena for buffers with lifetimes", true, setup_pack,
     "loadline pack buffers.csv --capacity 1048576 -o packed.csv\nloadline pack falcon-7b --seq 2048"},
    {"convert", "Write a model as a flat file that can be mapped", true, setup_convert,
     "loadline convert llama-3-8b model.gguf\n"
     "loadline convert llama-3-8b out --max-shard-size 5GB --outtype bf16 --verify"},
    {"join", "End a conversion that several processes wrote", false, setup_join,
     "loadline join llama-3-8b-bf16"},
    {"clean", "Remove what interrupted conversions left in a folder", false, setup_clean,
     "loadline clean llama-3-8b-bf16 --dry-run\nloadline clean ."},
    {"merge", "Write a model with a LoRA adapter merged into its weights", true, setup_merge,
     "loadline merge llama-3-8b my-lora llama-3-8b-mine\n"
     "loadline merge llama-3-8b my-lora mine.gguf --outtype f16"},
    {"batch", "Run many conversions from a list; those that are done are skipped", true, setup_batch,
     "loadline batch jobs.json --jobs 4 --keep-going\nloadline batch jobs.json --memory-budget 1GiB --json"},
    {"edit", "Change metadata of a safetensors or GGUF file in place", false, setup_edit,
     "loadline edit model.gguf --set general.name=Mine --set my.version:u32=2\n"
     "loadline edit model.safetensors --remove author --dry-run"},
    {"verify", "Check that two models have the same tensors, across formats", true, setup_verify,
     "loadline verify llama-3-8b model.gguf\nloadline verify model-f32.safetensors model-bf16.gguf "
     "--tolerance 0,0.01"},
    {"diff", "Show what differs between two models: tensors, types, metadata", true, setup_diff,
     "loadline diff model-q4_k_m.gguf model-q5_k_m.gguf --no-values\n"
     "loadline diff llama-3-8b my-finetune --limit 5"},
    {"upload", "Load a model onto a GPU: projected beside measured", true, setup_upload,
     "loadline upload llama-3-8b --verify\nloadline upload llama-3-8b --method mmap_assign --device 1"},
    {"devices", "List the GPUs of this machine, and why one is chosen", false, setup_devices,
     "loadline devices\nloadline devices --measure"},
    {"synth", "Make a checkpoint from a configuration, without weights", true, setup_synth,
     "loadline synth llama-3-8b llama-3-8b --sparse\nloadline synth llama-3-8b llama-3-8b.gguf\nloadline "
     "synth demo demo --random 1"},
    {"formats", "List what can be read and written", false, setup_formats, "loadline formats"},
    {"help", "Print a page of the manual", false, setup_help, "loadline help\nloadline help planning"},
}};

}  // namespace

std::span<const Command> commands() { return kCommands; }

// --- Functions that several commands share.

void add_path_option(CLI::App& app, std::string& path) {
  add_text(app, "PATH", path, "model: file, folder, org/name, config.json, shard", {.required = true});
}

inspect::CanConvert conversion_trial(const Context& context, const graph::MetaGraphPtr& graph) {
  exporters::ConvertEnvironment environment{
      .policies = context.assets()->type_policies,
      .order = [stop = context.stop](
                   const graph::MetaGraph& model,
                   const std::string& order) { return load::written_order(model, order, Progress(stop)); },
      .importance = {},
      .share = {},
      .follow_links = context.open.follow_links};
  return [graph, environment](const std::vector<Remedy>& settings) {
    return exporters::can_convert(graph, settings, environment);
  };
}

namespace {

// Size and time of a file; empty if it is not there.
std::string state_of(const std::string& path) {
  struct stat status = {};
  if (::stat(path.c_str(), &status) != 0) return "";
  return fmt::format("{}@{}.{:09}", status.st_size, status.st_mtim.tv_sec, status.st_mtim.tv_nsec);
}

}  // namespace

report::KeptFacts kept_facts(const Context& context) {
  std::string program = fmt::format("loadline {} {}", LOADLINE_VERSION, state_of("/proc/self/exe"));
  // architectures of the user's own decide what a model needs
  std::vector<std::string> own;
  for (const char* const kind : {"architectures", "profiles", "types"}) {
    std::error_code failed;
    const std::filesystem::path folder = std::filesystem::path(context.config_folder) / kind;
    if (context.config_folder.empty()) break;
    for (const auto& entry : std::filesystem::directory_iterator(folder, failed))
      own.push_back(fmt::format(" {}={}", safe_display(entry.path().filename().string()),
                                state_of(entry.path().string())));
  }
  std::ranges::sort(own);
  for (const std::string& file : own) program += file;
  const std::string& folder = context.cache_folder;
  return {folder.empty() ? "" : folder + "/models.json", std::move(program)};
}

std::string note_text(const graph::Note& note) {
  return fmt::format("{}: {}{}", graph::severity_name(note.severity),
                     note.tensor ? fmt::format("tensor '{}': ", safe_display(*note.tensor, 120)) : "",
                     note.text);
}

namespace {

graph::MetaGraphPtr with_notes_shown(const Context& context, graph::MetaGraph model) {
  constexpr std::size_t kMostShown = 8;
  auto graph = std::make_shared<const graph::MetaGraph>(std::move(model));
  if (context.quiet || context.json) return graph;
  std::size_t count = 0;
  for (const graph::Note& note : graph->notes)
    if (note.severity != graph::Severity::info && ++count <= kMostShown) complain(note_text(note));
  if (count > kMostShown)
    complain(fmt::format("and {} more; `inspect --json` has them all", count - kMostShown));
  return graph;
}

}  // namespace

importers::ResolveOptions weights_alone(const Context& context) {
  importers::ResolveOptions options = context.resolve_options();
  options.weights_only = true;
  return options;
}

graph::MetaGraphPtr open_for(const Context& context, const std::string& path) {
  return with_notes_shown(context, importers::open_model(path, context.resolve_options()));
}

graph::MetaGraphPtr open_weights_for(const Context& context, const std::string& path) {
  return with_notes_shown(context, importers::open_model(path, weights_alone(context)));
}

graph::MetaGraphPtr open_consumed(const Context& context, const std::string& path) {
  return with_notes_shown(context, importers::open_consumed(path, weights_alone(context)));
}

void complain(const std::string& text) {
  const std::string line = "loadline: " + safe_display(text) + "\n";
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

Json notes_json(std::span<const graph::Note> notes) {
  Json list = Json::array();
  for (const graph::Note& note : notes)
    list.push_back({{"severity", graph::severity_name(note.severity)},
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
