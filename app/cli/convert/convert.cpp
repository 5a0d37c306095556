// loadline batch: many conversions from a list.
#include "exporters/convert.h"

#include "app/cli/base/commands.h"
#include "app/cli/convert/conversion.h"
#include "app/cli/convert/written_files.h"
#include "core/base/error.h"
#include "core/base/parallel.h"
#include "core/base/text.h"
#include "exporters/batch_file.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdio>
#include <mutex>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace loadline::cli {
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
        jobs_(read_batch(flags.file)),
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
      if (is_done(i))
        return finish(i, JobState::skipped, Json::object(), "is written already, nothing has changed");
      convert_job(i);
    } catch (const Error& error) {
      if (error.code() == ErrorCode::cancelled) throw;
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
    const BatchJob& job = jobs_[i];
    const auto graph = std::make_shared<const MetaGraph>(open_model(job.in, context_.resolve_options()));
    ConvertRequest request = job.request;
    complete_request(context_, *graph, request);
    const Exporter& exporter = chosen_exporter(request.to, job.out);
    const Preflight planned = preflight(*graph, exporter, request.layout, job.out);
    WriteOptions& write = request.write;
    write.memory_budget = share_;
    write.resume = true;  // what an interrupted run has written of a job counts
    const WriteReport report = write_model(graph, planned.layout, write, progress_);
    std::vector<std::string> read, written;
    for (const ModelFile& file : graph->files) read.push_back(file.path);
    for (const WrittenFile& file : report.files) written.push_back(file.path);
    {
      const std::lock_guard lock(mutex_);
      state_.set_done(job, read, written);
    }
    finish(i, JobState::done,
           {{"files", files_json(report)},
            {"tensors", report.tensors},
            {"bytes_read", report.bytes_read},
            {"bytes_written", report.bytes_written},
            {"seconds", report.seconds},
            {"verified", report.verified},
            {"left_out", json_texts(planned.left_out)},
            {"notes", notes_json(planned.layout.notes)}},
           fmt::format("{} in {}{}", format_bytes(report.bytes_written), format_seconds(report.seconds),
                       report.verified ? ", read back and equal" : ""),
           remarks(planned));
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
  std::vector<BatchJob> jobs_;
  bool keep_going_;
  std::size_t threads_;
  BatchState state_;
  std::vector<JobState> states_;
  std::uint64_t share_ = 0;  // of the memory, for one job
  Progress progress_;
  std::atomic<bool> stopped_ = false;
  std::mutex mutex_;
};

}  // namespace

Action setup_batch(CLI::App& app) {
  auto flags = std::make_shared<BatchFlags>();
  app.add_option("JOBS", flags->file, "JSON file: {\"jobs\": [{\"in\", \"out\", \"options\"}]}")->required();
  app.add_option("--jobs", flags->jobs, "jobs that run at a time")
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{256}))
      ->type_name("N")
      ->capture_default_str();
  app.add_option("--memory-budget", flags->memory_budget, "memory for buffers of all jobs together")
      ->type_name("SIZE")
      ->capture_default_str();
  app.add_flag("--keep-going", flags->keep_going, "run the other jobs if one fails");
  return [flags](Context& context) {
    return Batch(context, *flags, parse_size(flags->memory_budget, "--memory-budget")).run();
  };
}

}  // namespace loadline::cli
