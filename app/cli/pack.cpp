// loadline pack: offsets in an arena for buffers with lifetimes.
#include "core/packing/pack.h"

#include "app/cli/commands.h"
#include "core/base/error.h"
#include "core/base/text.h"
#include "core/io/atomic_file.h"
#include "core/io/source_file.h"
#include "core/packing/csv.h"

#include <filesystem>
#include <numeric>
#include <span>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace loadline::cli {
namespace {

struct Options {
  std::string file;
  std::vector<std::string> capacity;
  bool minimize = false;
  double seconds = 10;
  unsigned threads = 1;
  std::uint64_t seed = 1;
  std::uint64_t alignment = 1;
  std::string out;
  bool force = false;
};

Problem read_problem(const Options& options) {
  constexpr std::uint64_t kMostFile = std::uint64_t{1} << 32;
  const SourceFile file = SourceFile::open(options.file);
  if (file.size() > kMostFile)
    throw Error(
        ErrorCode::limit, {.file = options.file},
        fmt::format("{} is over the limit of {}", format_bytes(file.size()), format_bytes(kMostFile)));
  const std::vector<std::byte> bytes = file.head(file.size());
  Problem problem =
      read_packing_csv({reinterpret_cast<const char*>(bytes.data()), bytes.size()}, options.file);
  // --align is what every buffer needs beside its own alignment
  for (Buffer& buffer : problem.buffers)
    if (buffer.alignment != 0) buffer.alignment = std::lcm(buffer.alignment, options.alignment);
  return problem;
}

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

double gap_percent(std::uint64_t height, std::uint64_t bound) {
  if (bound == 0) return 0;
  return 100 * (static_cast<double>(height) - static_cast<double>(bound)) / static_cast<double>(bound);
}

Json arena_json(const ArenaPacking& arena, std::optional<std::uint64_t> capacity) {
  Json json = {{"height", arena.height},
               {"lower_bound", arena.lower_bound},
               {"bound", {{"lower", arena.bound_ticks.lower}, {"upper", arena.bound_ticks.upper}}},
               {"gap_percent", gap_percent(arena.height, arena.lower_bound)},
               {"proven_optimal", arena.proven_optimal}};
  if (capacity) json["capacity"] = *capacity;
  return json;
}

Json packing_json(const Problem& problem, const Options& options, const PackOptions& asked,
                  const Packing& packing) {
  Json json = {{"buffers", problem.buffers.size()},
               {"lower_bound", packing.lower_bound()},
               {"height", packing.height()},
               {"verdict", verdict_name(packing.verdict)},
               {"proven_optimal", packing.proven_optimal()},
               {"seconds", packing.seconds},
               {"algorithm", packing.algorithm},
               {"seed", options.seed},
               {"threads", options.threads},
               {"nodes", packing.nodes},
               {"arenas", Json::array()}};
  for (std::size_t i = 0; i < packing.arenas.size(); ++i)
    json["arenas"].push_back(
        arena_json(packing.arenas[i], i < asked.capacity.size() ? asked.capacity[i] : std::nullopt));
  if (!options.out.empty()) json["out"] = json_text(options.out);
  return json;
}

std::string arena_text(const ArenaPacking& arena, std::optional<std::uint64_t> capacity) {
  std::string text = fmt::format("height {} ({})", format_bytes(arena.height), counted(arena.height, "byte"));
  if (capacity) text += fmt::format(" of {}", format_bytes(*capacity));
  if (arena.proven_optimal) return text + ", the least there is";
  return text + fmt::format("\n  at least {} ({}) are needed, in ticks {} to {}: {:.3f} % above that",
                            format_bytes(arena.lower_bound), counted(arena.lower_bound, "byte"),
                            arena.bound_ticks.lower, arena.bound_ticks.upper,
                            gap_percent(arena.height, arena.lower_bound));
}

std::string verdict_text(const Packing& packing, const PackOptions& asked) {
  switch (packing.verdict) {
    case Verdict::feasible:
      return asked.capacity.empty() ? "" : "Feasible.\n";
    case Verdict::infeasible:
      return "Infeasible: proved, no offsets keep the capacity.\n";
    case Verdict::undecided:
      break;
  }
  return "Undecided: neither a packing nor a proof was found in the time given.\n";
}

std::string packing_text(const Problem& problem, const PackOptions& asked, const Packing& packing) {
  std::string text;
  for (std::size_t i = 0; i < packing.arenas.size(); ++i) {
    if (packing.arenas.size() > 1) text += fmt::format("Arena {}: ", i);
    text +=
        arena_text(packing.arenas[i], i < asked.capacity.size() ? asked.capacity[i] : std::nullopt) + "\n";
  }
  text += verdict_text(packing, asked);
  text +=
      fmt::format("{} packed in {} by {}", counted(problem.buffers.size(), "buffer"),
                  format_seconds(packing.seconds), packing.algorithm.empty() ? "rule" : packing.algorithm);
  if (packing.nodes > 0) text += fmt::format(", {}", counted(packing.nodes, "decision"));
  return text + "\n";
}

void write_csv(const Options& options, const std::string& text) {
  std::error_code ignored;
  if (!options.force && std::filesystem::exists(options.out, ignored))
    throw Error(ErrorCode::usage, {.file = options.out}, "exists; --force replaces it");
  AtomicFile file(options.out);
  file.write_at(0, std::as_bytes(std::span(text)));
  file.sync();
  file.rename_into_place(options.force);
}

int pack_file(const Context& context, const Options& options) {
  const Problem problem = read_problem(options);
  const PackOptions asked = pack_options(options);
  Progress progress(context.stop);
  const Packing packing = pack(problem, asked, progress);
  const bool fits = packing.verdict == Verdict::feasible;
  if (!options.out.empty() && fits) write_csv(options, packing_csv(problem, packing.offsets));
  if (context.json) {
    print_json(packing_json(problem, options, asked, packing));
  } else if (!context.quiet || !fits) {
    fmt::print("{}", packing_text(problem, asked, packing));
  }
  if (packing.verdict == Verdict::infeasible) return kNoFit;
  return fits ? kDone : kFailed;
}

}  // namespace

Action setup_pack(CLI::App& app) {
  auto options = std::make_shared<Options>();
  app.add_option("FILE", options->file,
                 "CSV with a header: lower, upper, size, and perhaps id, alignment, offset (pinned), gaps "
                 "(7-9 12-14), group (shares memory), arena")
      ->required();
  app.add_option("--capacity", options->capacity,
                 "Bytes of the arena; of each arena, in turn. Ends with the first packing that keeps it")
      ->delimiter(',');
  app.add_flag("--minimize", options->minimize,
               "The least height, and whether that is proved; as without --capacity");
  app.add_option("--time-limit", options->seconds, "Seconds")
      ->check(CLI::Range(0.0, 1e6))
      ->capture_default_str();
  app.add_option("--threads", options->threads, "Attempts of exact search that run at once")
      ->check(CLI::Range(1, 64))
      ->capture_default_str();
  app.add_option("--seed", options->seed, "Of what is random: the same seed gives the same packing")
      ->check(CLI::Range(std::int64_t{0}, kMostNumber))
      ->capture_default_str();
  app.add_option("--align", options->alignment, "What every offset is a multiple of")
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{1} << 40))
      ->capture_default_str();
  app.add_option("-o,--out", options->out, "Write the buffers with their offsets as CSV");
  app.add_flag("--force", options->force, "Replace the output if it is there");
  app.footer(
      "Exit code 0: packed within the capacity; 3: proved that nothing fits; 1: undecided in the time "
      "given.");
  return [options](Context& context) { return pack_file(context, *options); };
}

}  // namespace loadline::cli
