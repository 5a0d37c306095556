// loadline pack: finds offsets in an arena for buffers with lifetimes, from a file or from a model's run.
#include "app/cli/plan/pack.h"

#include "app/cli/base/commands.h"
#include "app/cli/base/option_flags.h"
#include "app/report/write_file.h"
#include "core/base/error.h"
#include "core/base/text.h"
#include "core/packing/csv.h"
#include "core/packing/validator.h"

#include <chrono>
#include <filesystem>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace loadline::cli {
namespace {

constexpr std::uint64_t kRunAlignment = 256;

struct PackFlags {
  std::string space = "device";
  std::vector<std::string> capacity;
  PackOptions search;  // without the capacity and the time limit
  double seconds = 10;
  std::string alignment;
  std::string out;
  bool force = false;
};

PackOptions pack_options(const PackFlags& options) {
  PackOptions result = options.search;
  for (const std::string& bytes : options.capacity)
    result.capacity.emplace_back(parse_size(bytes, "--capacity"));
  result.seconds = options.seconds;
  return result;
}

std::optional<std::uint64_t> alignment_of(const PackFlags& options) {
  constexpr std::uint64_t kMost = std::uint64_t{1} << 40;
  if (options.alignment.empty()) return std::nullopt;
  const std::uint64_t alignment = parse_size(options.alignment, "--align");
  if (alignment == 0 || alignment > kMost)
    throw Error(ErrorCode::usage, "--align: {} is not in 1 to {}", alignment, kMost);
  return alignment;
}

bool is_csv(const std::string& path) {
  return lower_case(std::filesystem::path(path).extension().string()) == ".csv";
}

void check_capacity(const PackFlags& options, const Problem& problem) {
  const std::size_t arenas = arena_count(problem);
  if (options.capacity.size() > arenas)
    throw Error(ErrorCode::usage, "--capacity: {} for {}", counted(options.capacity.size(), "value"),
                counted(arenas, "arena"));
}

// Time limit for the comparison with the greedy planner: as long as the packing may take.
StopRule stop_rule(const Context& context, const PackFlags& options) {
  using std::chrono::steady_clock;
  StopRule rule;
  rule.stop = context.stop;
  rule.deadline = steady_clock::now() + std::chrono::duration_cast<steady_clock::duration>(
                                            std::chrono::duration<double>(options.seconds));
  return rule;
}

// Checked before the search, which may take long.
void check_out(const PackFlags& options) {
  std::error_code ignored;
  if (!options.out.empty() && !options.force && std::filesystem::exists(options.out, ignored))
    throw Error(ErrorCode::usage, {.file = options.out}, "exists; --force replaces it");
}

// A wrong packing would make a program overwrite its own data: throws before anything is printed or written.
void require_sound(const PackAnswer& answer) {
  if (const auto fault = packing_fault(answer.problem, answer.packing, answer.asked.capacity))
    throw Error(ErrorCode::malformed, "internal error, please report it: the packing is wrong: " + *fault);
}

// Fills in the packing of `answer`.
int solve(const Context& context, const PackFlags& options, Progress& progress, PackAnswer answer) {
  check_capacity(options, answer.problem);
  answer.asked = pack_options(options);
  answer.asked_out = options.out;
  answer.packing = pack(answer.problem, answer.asked, progress);
  require_sound(answer);
  const Packing& packing = answer.packing;
  const bool fits = packing.verdict == Verdict::feasible;
  if (!options.out.empty() && fits) {
    report::write_file(options.out, packing_csv(answer.problem, packing.offsets), options.force);
    answer.out = options.out;
  }
  if (context.json)
    print_json(packing_json(answer));
  else
    fmt::print("{}", packing_text(answer));
  if (packing.verdict == Verdict::infeasible) return kNoFit;
  return fits ? kDone : kFailed;
}

int pack_file(const Context& context, const PackFlags& options, const LoadFlags& flags, bool space_given) {
  std::vector<std::string_view> given = flags.given();
  if (space_given) given.push_back("space");
  if (!given.empty())
    throw Error(ErrorCode::usage, "{} is for models: {} lists buffers", flag_of(given.front()),
                safe_display(flags.path(), 80));
  check_out(options);
  const Problem problem = file_problem(flags.path(), alignment_of(options).value_or(1));
  Progress progress(context.stop);
  return solve(context, options, progress, {.problem = problem});
}

int pack_model(const Context& context, const PackFlags& options, const LoadFlags& flags,
               const LoadRequest& request) {
  check_pack_request(request, flags);
  check_out(options);
  Progress progress(context.stop);
  const PackRun run = pack_run(context, flags.path(), request, options.space, progress);
  const std::uint64_t alignment = alignment_of(options).value_or(kRunAlignment);
  const RunProblem of_run = run_problem(run, alignment, stop_rule(context, options));
  return solve(context, options, progress,
               {.problem = of_run.problem, .run = &run, .of_run = &of_run, .alignment = alignment});
}

CLI::Option* add_solver_options(CLI::App& app, PackFlags& options) {
  app.option_defaults()->group("Packing");
  app.add_option("--capacity", options.capacity, "size of the arena; of several, each in turn")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->type_name("SIZE,...");
  app.add_flag("--minimize", options.search.minimize, "least height, and whether it is proved");
  app.add_option("--time-limit", options.seconds, "seconds that the search may take")
      ->check(number_range(0, 1e6))
      ->type_name("S")
      ->capture_default_str();
  app.add_option("--threads", options.search.threads, "attempts of exact search at once")
      ->check(CLI::Range(1, 64))
      ->type_name("N")
      ->capture_default_str();
  app.add_option("--seed", options.search.seed, "seed of the random search")
      ->check(CLI::Range(std::int64_t{0}, kMostNumber))
      ->type_name("N")
      ->capture_default_str();
  app.add_option("--align", options.alignment, "every offset is a multiple of it")
      ->type_name("SIZE")
      ->default_str("1; 256 for a model");
  CLI::Option* const space = app.add_option("--space", options.space, "of a model: device, staging or host")
                                 ->check(CLI::IsMember(packed_spaces()))
                                 ->type_name("ID")
                                 ->capture_default_str();
  app.add_option("-o,--out", options.out, "write the buffers with their offsets as CSV")
      ->check([](const std::string& path) { return path.empty() ? "a file's name is needed" : ""; })
      ->type_name("OUT.csv");
  app.add_flag("--force", options.force, "replace the output if it is there");
  return space;
}

}  // namespace

Action setup_pack(CLI::App& app) {
  auto options = std::make_shared<PackFlags>();
  auto flags = std::make_shared<LoadFlags>(app, LoadUser::pack);
  CLI::Option* const space = add_solver_options(app, *options);
  return [options, flags, space](Context& context) {
    const LoadRequest request = flags->request(context.quiet);
    return is_csv(flags->path()) ? pack_file(context, *options, *flags, space->count() > 0)
                                 : pack_model(context, *options, *flags, request);
  };
}

}  // namespace loadline::cli
