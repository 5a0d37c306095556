// loadline convert, join, clean, merge and batch: write models within a memory budget.

#include "exporters/convert.h"

#include "app/cli/base/command.h"
#include "app/cli/base/option_flags.h"
#include "app/cli/convert/conversion.h"
#include "core/base/error.h"
#include "core/base/tasks.h"
#include "core/base/text.h"
#include "core/graph/names/tensor_names.h"
#include "core/io/file_system.h"
#include "core/io/unfinished.h"
#include "exporters/gguf/gguf.h"
#include "exporters/merge/merge_lora.h"
#include "exporters/writer/work_folder.h"
#include "exporters/writer/write_layout.h"
#include "importers/importer.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdio>
#include <filesystem>
#include <mutex>
#include <optional>
#include <set>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

namespace loadline::cli {

// --- loadline convert: writes a model in a chosen format within a memory budget.

namespace {

struct ConvertFlags {
  std::string in;
  std::optional<std::string> out;
  OptionFlags flags;
  bool dry_run = false;
};

// What an interrupted run has taken from its source is in its remains.
graph::MetaGraphPtr open_source(const Context& context, const std::string& path,
                                const exporters::ConvertRequest& request) {
  return request.write.consume && request.write.resume ? open_consumed(context, path)
                                                       : open_weights_for(context, path);
}

int convert(const Context& context, const ConvertFlags& options) {
  exporters::ConvertRequest request;
  for (const auto& option : exporters::convert_options()) options.flags.apply(option, request);
  (void)exporters::checked_exporter(request, options.out);  // before a model is opened
  // its source may be gone already
  if (const std::string out = options.out.value_or("");
      request.write.resume && !out.empty() && exporters::waits_for_last_step(out, options.in))
    return run_join(context, out, request.write.overwrite);
  const exporters::Conversion conversion = exporters::bind_conversion(
      open_source(context, options.in, request), request, options.out, convert_environment(context));
  return write_conversion(context, conversion, exporters::preflight(conversion), options.dry_run,
                          Json::object());
}

}  // namespace

Action setup_convert(CLI::App& app) {
  auto options = std::make_shared<ConvertFlags>();
  add_text(app, "IN", options->in, "the model to read", {.required = true});
  add_text(
      app, "OUT", options->out,
      "a file, or a folder for safetensors with config.json and shards; by default the model's name with "
      "-loadline, in the current folder");
  for (const auto& option : exporters::convert_options()) options->flags.add(app, option);
  begin_group(app, "Writing");
  add_flag(app, "--dry-run", options->dry_run, "show the files that would be written");
  return [options](Context& context) { return convert(context, *options); };
}

// --- loadline join: ends a conversion that several processes wrote, or whose last step was interrupted.

int run_join(const Context& context, const std::string& out, bool force) {
  Progress progress(context.stop);
  exporters::WriteReport report;
  {
    const ProgressLine line(context, "verifying", progress);
    report = exporters::join_parts(out, force, progress);
  }
  if (context.json) {
    print_json({{"files", files_json(report)},
                {"bytes_read", report.bytes_read},
                {"seconds", report.seconds},
                {"verified", report.verified}});
    return kDone;
  }
  print_files(report);
  fmt::print("{} read back and in place, in {}\n", counted(report.files.size(), "file"),
             format_seconds(report.seconds));
  return kDone;
}

Action setup_join(CLI::App& app) {
  struct Flags {
    std::string out;
    bool force = false;
  };
  auto flags = std::make_shared<Flags>();
  add_text(app, "OUT", flags->out, "the output of the conversion", {.required = true});
  add_flag(app, "--force", flags->force, "replace existing output");
  return [flags](Context& context) { return run_join(context, flags->out, flags->force); };
}

// --- loadline clean: removes what interrupted conversions left in a folder, and ends what they had begun to
// put in place.

namespace {

struct CleanFlags {
  std::string folder;
  bool dry_run = false;
  std::optional<std::uint64_t> discard;  // bytes that may be lost
};

// What must be typed to give remains up. Where nobody knows how much of the source is lost with them, it is
// what they have of the output.
std::uint64_t discarded_bytes(const exporters::Remains& remains) {
  return remains.list == exporters::ConsumedList::whole ? remains.consumed : remains.written;
}

// Why remains stay, or nothing.
std::string reason_to_keep(const exporters::Remains& remains, const CleanFlags& flags) {
  if (remains.alive) return "a process is writing it";
  const std::string_view record = remains.damaged_record ? "its job.json is damaged" : "its job.json is gone";
  if (remains.pending && !remains.record)
    return fmt::format(
        "it holds files that were to be put in place, and those that they replace (*.old); {}: put that "
        "back, or take out what you need and delete the folder",
        record);
  if (remains.pending || !remains.is_only_copy() || flags.discard == discarded_bytes(remains)) return {};
  const std::string way =
      !remains.record                                    ? fmt::format("{}: put that back", record)
      : remains.list == exporters::ConsumedList::whole   ? "continue with convert --consume --resume"
      : remains.list == exporters::ConsumedList::damaged ? "its list 'consumed' is damaged: put that back"
                                                         : "its list 'consumed' is lost: put that back";
  return fmt::format(
      "it holds the only copy of {} of a model that was being consumed; {}, or delete it with "
      "--discard-data {}",
      exporters::only_copy_text(remains), way, discarded_bytes(remains));
}

std::string output_of(const exporters::Remains& remains) {
  if (!remains.record || remains.record->files.empty()) return {};
  return remains.record->files.back().target;
}

// Ends what an interrupted run had begun to put in place. Why it could not, or nothing.
std::string end_or_reason(const Context& context, const exporters::Remains& remains) {
  try {
    Progress progress(context.stop);
    const ProgressLine line(context, "verifying", progress);
    exporters::end_publication(remains.path, progress);
    return {};
  } catch (...) {
    const Error error = current_error();
    if (error.code() == ErrorCode::canceled) throw;
    return fmt::format("its files are not all in place, and cannot be put there: {}", error.what());
  }
}

std::string describe(const exporters::Remains& remains) {
  const std::string output = output_of(remains);
  return fmt::format(
      "{}: {}{}", safe_display(std::filesystem::path(remains.path).filename().string()),
      format_bytes(remains.written),
      output.empty() ? std::string() : fmt::format(" of an output with '{}'", safe_display(output)));
}

// Removes what is no conversion's: folders of killed processes, and the mark of files that are gone.
Json clean_other(const Context& context, const CleanFlags& flags) {
  Json removed = Json::array();
  const auto add = [&](const std::string& path, std::uint64_t bytes, std::string_view what) {
    removed.push_back({{"path", json_text(path)}, {"output", ""}, {"bytes", bytes}, {"consumed_bytes", 0}});
    if (!context.json)
      fmt::print("{} {}: {}\n", flags.dry_run ? "would remove" : "removed",
                 safe_display(std::filesystem::path(path).filename().string()), what);
  };
  for (const std::string& folder : io::abandoned_folders(flags.folder)) {
    const std::uint64_t bytes = exporters::allocated_bytes(folder);
    if (!flags.dry_run) io::remove_abandoned(folder);
    add(folder, bytes, "files of a lesson or a window that was killed");
  }
  if (exporters::remove_consumed_mark(flags.folder, flags.dry_run))
    add((std::filesystem::path(flags.folder) / io::kConsumedMark).string(), 0,
        "the files that it marks are gone");
  return removed;
}

int clean(const Context& context, const CleanFlags& flags) {
  Json removed = clean_other(context, flags), ended = Json::array(), kept = Json::array();
  for (const exporters::Remains& remains : exporters::find_remains(flags.folder)) {
    std::string reason = reason_to_keep(remains, flags);
    const bool ends = reason.empty() && remains.pending;
    const bool goes = reason.empty() && !ends;
    const std::vector<std::string> damaged =
        goes ? exporters::damaged_sources(remains) : std::vector<std::string>();
    if (ends && !flags.dry_run) reason = end_or_reason(context, remains);
    if (goes && !flags.dry_run) exporters::remove_remains(remains, true);
    Json row = {{"path", json_text(remains.path)},
                {"output", json_text(output_of(remains))},
                {"bytes", remains.written},
                {"consumed_bytes", remains.consumed}};
    if (!reason.empty()) row["reason"] = json_text(reason);
    if (!damaged.empty()) row["damaged"] = json_texts(damaged);
    (!reason.empty() ? kept : ends ? ended : removed).push_back(std::move(row));
    if (context.json) continue;
    if (reason.empty() && ends)
      fmt::print("{} {}\n",
                 flags.dry_run ? "would put in place" : "all files are in place:", describe(remains));
    else if (reason.empty())
      fmt::print("{} {}\n", flags.dry_run ? "would remove" : "removed", describe(remains));
    else
      fmt::print("kept {}\n  {}\n", describe(remains), reason);
    for (const std::string& source : damaged)
      fmt::print("  {} parts of its weights for good, and stays marked: {}\n",
                 flags.dry_run ? "would lose" : "has lost", safe_display(source, 200));
  }
  const int code = kept.empty() ? kDone : kFailed;
  if (context.json)
    print_json({{"dry_run", flags.dry_run},
                {"removed", std::move(removed)},
                {"ended", std::move(ended)},
                {"kept", std::move(kept)}});
  else if (removed.empty() && ended.empty() && kept.empty())
    fmt::print("Nothing to remove: no conversion was interrupted here.\n");
  return code;
}

}  // namespace

Action setup_clean(CLI::App& app) {
  auto flags = std::make_shared<CleanFlags>();
  add_text(app, "FOLDER", flags->folder, "the output folder, or the folder of a single output file",
           {.required = true});
  add_flag(app, "--dry-run", flags->dry_run, "list what would be removed, or put in place");
  add_number(app, "--discard-data", flags->discard,
             "also remove remains that hold the only copy of a source: the number that clean says",
             {.value_name = "BYTES", .check = whole_range(0, kMostNumber)});
  return [flags](Context& context) { return clean(context, *flags); };
}

// --- loadline merge: writes a base with a LoRA adapter added to its weights.

namespace {

struct MergeFlags {
  std::string base, adapter, out;
  OptionFlags flags;
  bool dry_run = false;
};

struct Adapter {
  graph::MetaGraph graph;
  exporters::LoraConfig config;
  std::string folder;
};

Adapter open_adapter(const Context& context, const std::string& path) {
  const importers::Source source = importers::resolve(path, context.resolve_options());
  Adapter adapter;
  adapter.graph = importers::import_source(source);
  if (adapter.graph.format == "gguf")
    throw Error(
        ErrorCode::unsupported, {.file = path},
        "is a GGUF adapter; llama.cpp adds it when it loads a model, with --lora. Merge the PEFT adapter "
        "that it was made from");
  graph::require_sound(adapter.graph, "merge");
  const auto config = source.open_sibling(std::string(exporters::kLoraConfig));
  if (!config)
    throw Error(ErrorCode::io, {.file = path}, "has no {} beside its weights: it is not a PEFT adapter",
                exporters::kLoraConfig);
  adapter.config = exporters::parse_lora_config(config->head(exporters::kMostLoraConfig), config->path());
  const std::filesystem::path folder = std::filesystem::path(config->path()).parent_path();
  adapter.folder = folder.empty() ? "." : folder.string();
  return adapter;
}

int merge(const Context& context, const MergeFlags& options) {
  exporters::ConvertRequest request;
  for (const auto& option : exporters::convert_options()) options.flags.apply(option, request);
  // the adapter's settings, too, which no format limits
  exporters::ExportOptions ignoring;
  ignoring.ignored_settings = request.layout.ignored_settings;
  request.layout.ignored_settings.clear();
  const exporters::Exporter& exporter =
      exporters::checked_exporter(request, options.out);  // before a model is opened
  if (exporters::takes_option(exporter, "ignore"))
    request.layout.ignored_settings = ignoring.ignored_settings;
  if (request.write.resume && exporters::waits_for_last_step(options.out, options.base))
    return run_join(context, options.out, request.write.overwrite);
  const graph::MetaGraphPtr base = open_source(context, options.base, request);
  graph::require_sound(*base, "merge");
  exporters::Conversion conversion =
      exporters::bind_conversion(base, request, options.out, convert_environment(context));
  const Adapter adapter = open_adapter(context, options.adapter);
  // what is of the adapter is not of the output
  std::vector<std::string>& of_output = conversion.options.ignored_settings;
  std::erase_if(of_output, [&](const std::string& pattern) {
    return std::ranges::any_of(adapter.config.unaccounted, [&](const forward::Setting& setting) {
      return graph::glob_matches(pattern, setting.name);
    });
  });
  if (!exporters::takes_option(exporter, "ignore"))
    exporters::check_ignored(adapter.config.unaccounted, ignoring);
  (void)exporters::ignored_settings(adapter.config.unaccounted, ignoring, std::string(exporters::kLoraConfig),
                                    "not known to leave a merge as it is");
  const exporters::LoraMerge merged =
      exporters::merge_lora(*base, adapter.graph, adapter.config, conversion.options.outtype);
  conversion.graph = merged.graph;
  conversion.options.recipes = merged.recipes;
  conversion.options.tokenizer_folder = adapter.folder;
  conversion.write.consumable_files = base->files.size();  // the adapter stays
  const int code = write_conversion(context, conversion, exporters::preflight(conversion), options.dry_run,
                                    {{"merged", merged.merged}, {"replaced", merged.replaced}});
  if (!context.json)
    fmt::print("{}: {} merged, {} replaced\n", safe_display(options.adapter, 60),
               counted(merged.merged, "weight"), format_grouped(merged.replaced));
  return code;
}

}  // namespace

Action setup_merge(CLI::App& app) {
  auto options = std::make_shared<MergeFlags>();
  add_text(app, "BASE", options->base, "the model that the adapter was trained on", {.required = true});
  add_text(app, "ADAPTER", options->adapter, "folder of a PEFT LoRA: adapter_config.json and its weights",
           {.required = true});
  add_text(app, "OUT", options->out, "a file, or a folder for safetensors with config.json",
           {.required = true});
  for (const auto& option : exporters::convert_options()) options->flags.add(app, option);
  begin_group(app, "Writing");
  add_flag(app, "--dry-run", options->dry_run, "show the files that would be written");
  return [options](Context& context) { return merge(context, *options); };
}

// --- loadline batch: many conversions from a list.

namespace {

struct BatchFlags {
  std::string file;
  std::size_t jobs = 1;
  std::string memory_budget = "256MiB";
  bool keep_going = false;
};

enum class JobState : std::uint8_t { waiting, done, skipped, failed };
constexpr std::array<std::string_view, 4> kStateNames = {"not_run", "done", "skipped", "failed"};

// Runs the jobs of one list. Lines are printed one at a time.
class Batch {
 public:
  Batch(const Context& context, const BatchFlags& flags, std::uint64_t budget)
      : context_(context),
        jobs_(exporters::read_batch(
            flags.file,
            [&](const std::string& name) { return importers::cached_model(name, context.hub_cache); })),
        keep_going_(flags.keep_going),
        threads_(std::max<std::size_t>(std::min(flags.jobs, jobs_.size()), 1)),
        state_(flags.file),
        states_(jobs_.size(), JobState::waiting),
        progress_(context.stop) {
    constexpr std::uint64_t kLeast = 32 << 20;  // of one conversion
    share_ = budget / threads_;
    if (share_ < kLeast)
      throw Error(ErrorCode::usage, "--memory-budget: {} for {} jobs at a time, each needs 32MiB",
                  format_bytes(budget), threads_);
  }

  int run() {
    (void)context_.assets();  // read once, before there are threads
    {
      const ProgressLine line(context_, fmt::format("converting, {}", counted(jobs_.size(), "job")),
                              progress_);
      ParallelLoop(jobs_.size(), threads_, [this](std::size_t i) { run_job(i); }).finish();
    }
    // a job that failed may be in place and not noted: its folder tells the next run
    if (count(JobState::failed) == 0) remove_finished();
    if (!context_.json) print_counts();
    if (context_.json)
      for (std::size_t i = 0; i < jobs_.size(); ++i)
        if (states_[i] == JobState::waiting) print_line(i, Json::object());
    return count(JobState::failed) > 0 ? kFailed : kDone;
  }

 private:
  std::uint64_t count(JobState state) const {
    return static_cast<std::uint64_t>(std::ranges::count(states_, state));
  }

  void run_job(std::size_t i) {
    if (stopped_) return;
    try {
      if (is_done(i)) return finish(i, JobState::skipped, Json::object(), "is up to date");
      convert_job(i);
    } catch (...) {
      const Error error = current_error();
      if (error.code() == ErrorCode::canceled) throw;
      if (!keep_going_) stopped_ = true;
      Json json = {{"code", error_code_name(error.code())}, {"message", json_text(error.what())}};
      finish(i, JobState::failed, {{"error", json}}, error.what());
    }
  }

  bool is_done(std::size_t i) {
    const std::lock_guard lock(mutex_);
    return state_.is_done(jobs_[i]);
  }

  void convert_job(std::size_t i) {
    const exporters::BatchJob& job = jobs_[i];
    // its source may be gone already
    if (job.request.write.consume && exporters::waits_for_last_step(job.out, job.source)) return end_job(i);
    const auto open = job.request.write.consume ? importers::open_consumed : importers::open_model;
    const auto graph = std::make_shared<const graph::MetaGraph>(open(job.in, weights_alone(context_)));
    exporters::Conversion conversion =
        exporters::bind_conversion(graph, job.request, job.out, convert_environment(context_));
    conversion.write.memory_budget = share_;
    conversion.write.resume = true;  // what an interrupted run has written of a job counts
    // noted before the work folder goes: whatever moment this process dies at, the next run knows
    conversion.write.published = [&](const exporters::WriteReport& report) {
      std::vector<std::string> read;
      for (const graph::ModelFile& file : graph->files) read.push_back(file.path);
      set_done(job, read, report);
    };
    const exporters::Preflight planned = exporters::preflight(conversion);
    exporters::WriteReport report;
    try {
      report = exporters::write_model(conversion, planned.layout, progress_);
    } catch (const Error&) {
      tell_of_kept(context_, planned.layout);
      throw;
    }
    std::vector<std::string> remarks = exporters::remarks(planned);
    if (std::string faults = exporters::faults_text(report); !faults.empty())
      remarks.push_back(std::move(faults));
    finish(i, JobState::done,
           {{"files", files_json(report)},
            {"tensors", report.tensors},
            {"bytes_read", report.bytes_read},
            {"bytes_written", report.bytes_written},
            {"seconds", report.seconds},
            {"verified", report.verified},
            {"faulty", faulty_json(report)},
            {"left_out", json_texts(planned.left_out)},
            {"notes", notes_json(planned.layout.notes)}},
           fmt::format("{} in {}{}", format_bytes(report.bytes_written), format_seconds(report.seconds),
                       report.verified ? ", read back and equal" : ""),
           remarks);
  }

  // Ends a job whose files an interrupted run had begun to put in place.
  void end_job(std::size_t i) {
    const exporters::WriteReport report = exporters::join_parts(
        jobs_[i].out, false, progress_,
        [&](const exporters::WriteReport& written) { set_done(jobs_[i], {}, written); });
    finish(i, JobState::done,
           {{"files", files_json(report)},
            {"bytes_read", report.bytes_read},
            {"seconds", report.seconds},
            {"verified", report.verified}},
           "was written by an interrupted run, read back and equal");
  }

  void set_done(const exporters::BatchJob& job, const std::vector<std::string>& read,
                const exporters::WriteReport& report) {
    std::vector<std::string> written;
    for (const exporters::WrittenFile& file : report.files) written.push_back(file.path);
    const std::lock_guard lock(mutex_);
    state_.set_done(job, read, written);
  }

  // What a run leaves that dies after its job is noted.
  void remove_finished() const {
    for (std::size_t i = 0; i < jobs_.size(); ++i) {
      if (states_[i] != JobState::done && states_[i] != JobState::skipped) continue;
      try {
        exporters::remove_finished(jobs_[i].out);
      } catch (const Error&) {  // the job is done all the same
      }
    }
  }

  void finish(std::size_t i, JobState state, const Json& more, const std::string& words,
              const std::vector<std::string>& left_out = {}) {
    const std::lock_guard lock(mutex_);
    states_[i] = state;
    if (!context_.quiet)
      for (const std::string& loss : left_out) complain(fmt::format("job {}: note: {}", i + 1, loss));
    if (state == JobState::failed) complain(fmt::format("job {}: {}", i + 1, words));
    if (context_.json) return print_line(i, more);
    if (state != JobState::failed)
      fmt::print("job {}: {}: {}\n", i + 1, safe_display(jobs_[i].out, 100), words);
    (void)std::fflush(stdout);
  }

  // One JSON object on one line.
  void print_line(std::size_t i, const Json& more) const {
    Json line = {{"schema_version", kSchemaVersion},
                 {"tool_version", LOADLINE_VERSION},
                 {"job", i + 1},
                 {"in", json_text(jobs_[i].in)},
                 {"out", json_text(jobs_[i].out)},
                 {"state", kStateNames[static_cast<std::size_t>(states_[i])]}};
    line.update(more);
    const std::string text = line.dump(-1, ' ', true) + "\n";
    (void)!std::fwrite(text.data(), 1, text.size(), stdout);
    (void)std::fflush(stdout);
  }

  void print_counts() const {
    std::string text = fmt::format("{}: {} done", counted(jobs_.size(), "job"), count(JobState::done));
    const auto add = [&](JobState state, std::string_view what) {
      if (const std::uint64_t number = count(state); number > 0) text += fmt::format(", {} {}", number, what);
    };
    add(JobState::skipped, "skipped");
    add(JobState::failed, "failed");
    add(JobState::waiting, "not run: --keep-going runs them");
    fmt::print("{}.\n", text);
  }

  const Context& context_;
  std::vector<exporters::BatchJob> jobs_;
  bool keep_going_;
  std::size_t threads_;
  exporters::BatchState state_;
  std::vector<JobState> states_;
  std::uint64_t share_ = 0;  // of the memory, for one job
  Progress progress_;
  std::atomic<bool> stopped_ = false;
  std::mutex mutex_;
};

}  // namespace

Action setup_batch(CLI::App& app) {
  auto flags = std::make_shared<BatchFlags>();
  add_text(app, "JOBS", flags->file, "JSON file: {\"jobs\": [{\"in\", \"out\", \"options\"}]}",
           {.required = true});
  add_number(app, "--jobs", flags->jobs, "jobs that run at a time",
             {.value_name = "N", .show_default = true, .check = whole_range(1, 256)});
  add_text(app, "--memory-budget", flags->memory_budget, "memory for buffers of all jobs together",
           {.value_name = "SIZE", .show_default = true});
  add_flag(app, "--keep-going", flags->keep_going, "run the other jobs if one fails");
  return [flags](Context& context) {
    return Batch(context, *flags, parse_size(flags->memory_budget, "--memory-budget")).run();
  };
}

}  // namespace loadline::cli
