// The table of runs, and what they share.
#include "app/lesson/runs.h"
#include "core/base/lookup.h"
#include "core/base/text.h"

#include <algorithm>
#include <array>
#include <charconv>

#include <fmt/format.h>

namespace loadline::lesson {
namespace {

using Keys = std::array<std::string_view, 4>;
constexpr Keys kRehearse = {"model", "method", "order", "staging"};
constexpr std::array<std::string_view, 1> kModel = {"model"};
constexpr std::array<std::string_view, 2> kMapped = {"model", "limit_percent"};
constexpr std::array<std::string_view, 3> kPack = {"model", "method", "sequence"};
constexpr std::array<std::string_view, 2> kQuantise = {"model", "types"};
constexpr std::array<std::string_view, 3> kContext = {"model", "method", "types"};
constexpr std::array<std::string_view, 2> kExperts = {"model", "layer"};

constexpr std::array kKinds = {
    RunKind{"rehearse", "loads a small random model by each method and counts its memory", kRehearse,
            run_rehearse},
    RunKind{"open", "opens a model's headers and counts what that costs", kModel, run_open},
    RunKind{"mapped", "maps a file, reads it, drops it, shares it, and sets it a memory limit", kMapped,
            run_mapped},
    RunKind{"commit", "asks for memory under a limit, anonymous and of a file", kModel, run_commit},
    RunKind{"pack", "packs a load and its pass into one arena", kPack, run_pack},
    RunKind{"quantise", "quantises weights and measures the error", kQuantise, run_quantise},
    RunKind{"sparsity", "prunes weights to 2:4 and compresses them", kModel, run_sparsity},
    RunKind{"context", "finds the largest context for the memory that is free now", kContext, run_context},
    RunKind{"experts", "maps a model with experts and reads only those that a token needs", kExperts,
            run_experts},
};

}  // namespace

std::span<const RunKind> run_kinds() { return kKinds; }

void check_run(const Run& run) {
  const RunKind* kind = nullptr;
  try {
    kind = &find_row(run_kinds(), run.kind, "run");
  } catch (const Error& error) {
    run.place.fail("{}", error.what());
  }
  for (const auto& [key, value] : run.settings)
    if (std::ranges::find(kind->settings, key) == kind->settings.end())
      run.place.fail("the run '{}' has no setting '{}'", run.kind, safe_display(key, 40));
}

RunResult do_run(const Run& run, const LoadEnvironment& environment, Progress& progress) {
  check_run(run);
  return find_row(run_kinds(), run.kind, "run").run({run, environment, progress});
}

std::string RunCall::text(std::string_view key, std::string_view otherwise) const {
  const auto found =
      std::ranges::find(run.settings, key, [](const auto& one) { return std::string_view(one.first); });
  return found == run.settings.end() ? std::string(otherwise) : found->second;
}

std::vector<std::string> RunCall::list(std::string_view key, std::string_view otherwise) const {
  const std::string words = text(key, otherwise);
  std::vector<std::string> items;
  for (const std::string_view word : split(words, ',')) items.emplace_back(word);
  return items;
}

std::uint64_t RunCall::number(std::string_view key, std::uint64_t otherwise, std::uint64_t most) const {
  const std::string word = text(key, "");
  if (word.empty()) return otherwise;
  std::uint64_t value = 0;
  const auto [end, failed] = std::from_chars(word.data(), word.data() + word.size(), value);
  if (failed != std::errc() || end != word.data() + word.size() || value > most)
    run.place.fail("'{}' is no whole number up to {}", key, most);
  return value;
}

Datum run_bytes(std::uint64_t bytes) { return Datum(static_cast<std::int64_t>(bytes)); }

std::string run_line(std::string_view label, std::string_view value, std::string_view remark) {
  return fmt::format("{:<34}  {:>12}{}{}", label, value, remark.empty() ? "" : "  ", remark);
}

}  // namespace loadline::lesson
