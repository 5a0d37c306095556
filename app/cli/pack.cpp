// loadline pack: offsets in an arena for buffers with lifetimes, of a file or of a model's run.
#include "core/packing/pack.h"

#include "app/cli/commands.h"
#include "app/cli/number_range.h"
#include "app/cli/pack_problem.h"
#include "app/cli/pack_report.h"
#include "app/cli/pack_run.h"
#include "core/base/error.h"
#include "core/base/text.h"
#include "core/io/atomic_file.h"
#include "core/packing/csv.h"
#include "core/packing/validator.h"

#include <algorithm>
#include <cctype>
#include <chrono>
#include <filesystem>
#include <span>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace loadline::cli {
namespace {

constexpr std::uint64_t kRunAlignment = 256;

struct Options {
  std::string path;
  PackRunArguments run;
  std::vector<std::string> capacity;
  bool minimize = false;
  double seconds = 10;
  unsigned threads = 1;
  std::uint64_t seed = 1;
  std::string alignment;
  std::string out;
  bool force = false;
  std::vector<GivenOption> given;
};

PackOptions pack_options(const Options& options) {
  PackOptions result;
  for (const std::string& bytes : options.capacity)
    result.capacity.emplace_back(parse_size(bytes, "--capacity"));
  result.minimize = options.minimize;
  result.seconds = options.seconds;
  result.threads = options.threads;
  result.seed = options.seed;
  return result;
}

std::optional<std::uint64_t> alignment_of(const Options& options) {
  constexpr std::uint64_t kMost = std::uint64_t{1} << 40;
  if (options.alignment.empty()) return std::nullopt;
  const std::uint64_t alignment = parse_size(options.alignment, "--align");
  if (alignment == 0 || alignment > kMost)
    throw Error(ErrorCode::usage, fmt::format("--align: {} is not in 1 to {}", alignment, kMost));
  return alignment;
}

bool is_csv(const std::string& path) {
  std::string extension = std::filesystem::path(path).extension().string();
  std::transform(extension.begin(), extension.end(), extension.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return extension == ".csv";
}

void check_capacity(const Options& options, const Problem& problem) {
  const std::size_t arenas = arena_count(problem);
  if (options.capacity.size() > arenas)
    throw Error(ErrorCode::usage,
                fmt::format("--capacity: {} for {}", counted(options.capacity.size(), "value"),
                            counted(arenas, "arena")));
}

// For what is worked out beside the packing, and may take as long as that.
StopRule stop_rule(const Context& context, const Options& options) {
  using std::chrono::steady_clock;
  StopRule rule;
  rule.stop = context.stop;
  rule.deadline = steady_clock::now() + std::chrono::duration_cast<steady_clock::duration>(
                                            std::chrono::duration<double>(options.seconds));
  return rule;
}

// Before the search, which may take its time.
void check_out(const Options& options) {
  std::error_code ignored;
  if (!options.out.empty() && !options.force && std::filesystem::exists(options.out, ignored))
    throw Error(ErrorCode::usage, {.file = options.out}, "exists; --force replaces it");
}

void write_csv(const Options& options, const std::string& text) {
  AtomicFile file(options.out);
  file.write_at(0, std::as_bytes(std::span(text)));
  file.sync();
  file.rename_into_place(options.force);
}

// A wrong packing would let a program overwrite its own data: nothing of it is printed or written.
void require_sound(const PackAnswer& answer) {
  if (const auto fault = packing_fault(answer.problem, answer.packing, answer.asked.capacity))
    throw Error(ErrorCode::malformed, "internal error, please report it: the packing is wrong: " + *fault);
}

// `answer` lacks the packing.
int solve(const Context& context, const Options& options, Progress& progress, PackAnswer answer) {
  check_capacity(options, answer.problem);
  answer.asked = pack_options(options);
  answer.asked_out = options.out;
  answer.packing = pack(answer.problem, answer.asked, progress);
  require_sound(answer);
  const Packing& packing = answer.packing;
  const bool fits = packing.verdict == Verdict::feasible;
  if (!options.out.empty() && fits) {
    write_csv(options, packing_csv(answer.problem, packing.offsets));
    answer.out = options.out;
  }
  if (context.json) {
    print_json(packing_json(answer));
  } else {
    fmt::print("{}", packing_text(answer));
  }
  if (packing.verdict == Verdict::infeasible) return kNoFit;
  return fits ? kDone : kFailed;
}

int pack_file(const Context& context, const Options& options) {
  for (const GivenOption& option : options.given)
    if (is_pack_run_option(option.name))
      throw Error(ErrorCode::usage, fmt::format("{} is for models: {} lists buffers", option.name,
                                                safe_display(options.path, 80)));
  check_out(options);
  const Problem problem = file_problem(options.path, alignment_of(options).value_or(1));
  Progress progress(context.stop);
  return solve(context, options, progress, {.problem = problem});
}

int pack_model(const Context& context, const Options& options) {
  check_pack_run(options.run, options.given);
  check_out(options);
  Progress progress(context.stop);
  const PackRun run = pack_run(context, options.path, options.run, progress);
  const std::uint64_t alignment = alignment_of(options).value_or(kRunAlignment);
  const RunProblem of_run = run_problem(run, alignment, stop_rule(context, options));
  return solve(context, options, progress,
               {.problem = of_run.problem, .run = &run, .of_run = &of_run, .alignment = alignment});
}

void add_solver_options(CLI::App& app, Options& options) {
  app.add_option(
         "--capacity", options.capacity,
         "Bytes of the arena; of each arena, in turn, those without a value unbounded. Ends with the first "
         "packing that keeps it")
      ->delimiter(',');
  app.add_flag("--minimize", options.minimize,
               "The least height, and whether that is proved; as without --capacity");
  app.add_option("--time-limit", options.seconds,
                 "Seconds of the search; of a model also of the comparison with greedy by size")
      ->check(number_range(0, 1e6))
      ->capture_default_str();
  app.add_option("--threads", options.threads, "Attempts of exact search that run at once")
      ->check(CLI::Range(1, 64))
      ->capture_default_str();
  app.add_option("--seed", options.seed, "Of what is random: the same seed gives the same packing")
      ->check(CLI::Range(std::int64_t{0}, kMostNumber))
      ->capture_default_str();
  app.add_option("--align", options.alignment, "What every offset is a multiple of")
      ->default_str("1; 256 for a model, whose sizes are rounded up to it");
  app.add_option("-o,--out", options.out,
                 "Write the buffers with their offsets, the last column, as CSV; a model's are called as its "
                 "tensors and values")
      ->check([](const std::string& path) { return path.empty() ? "a file's name is needed" : ""; });
  app.add_flag("--force", options.force, "Replace the output if it is there");
}

}  // namespace

Action setup_pack(CLI::App& app) {
  auto options = std::make_shared<Options>();
  app.add_option("PATH", options->path,
                 "A .csv file with a header: lower, upper, size, and perhaps id, alignment, offset (pinned), "
                 "gaps (7-9 12-14), group (shares memory), arena; or a model")
      ->required();
  add_solver_options(app, *options);
  add_pack_run_options(app, options->run);
  app.footer(fmt::format(
      "Of a model one space of one run is packed: with --method that of a load, with --seq (or --dim) that "
      "of "
      "a forward\npass alone, without the weights, with both that of the load and then the pass; with "
      "neither "
      "that of a pass over {} tokens.\nExit code 0: packed within the capacity; 3: proved that nothing fits; "
      "1: undecided in the time given.",
      kPackedTokens));
  return [options, &app](Context& context) {
    options->given = given_options(app);
    return is_csv(options->path) ? pack_file(context, *options) : pack_model(context, *options);
  };
}

}  // namespace loadline::cli
