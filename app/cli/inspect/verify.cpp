// loadline verify: whether two models have the same tensors.
#include "app/cli/base/commands.h"
#include "app/cli/inspect/comparison_view.h"
#include "app/report/wrap.h"
#include "core/base/error.h"
#include "core/base/text.h"

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace loadline::cli {
namespace {

int exit_code_of(const ComparedModels& models) {
  if (models.same()) return kDone;
  const Comparison& found = models.comparison;
  const std::uint64_t known = found.count(PairState::equal) + found.count(PairState::refused);
  const bool only_refused =
      known == found.results.size() && found.match.only_a.empty() && found.match.only_b.empty();
  return only_refused ? kFailed : kDifferent;
}

int verify(const Context& context, const ComparisonFlags& flags) {
  const CompareOptions options{true, parse_tolerance(flags.tolerance)};
  const MetaGraphPtr a = open_for(context, flags.a), b = open_for(context, flags.b);
  require_sound(*a, "verify");
  require_sound(*b, "verify");
  const ComparedModels models = compare_for(context, a, b, options, "comparing");
  const Comparison& found = models.comparison;
  const int code = exit_code_of(models);
  if (context.json) {
    Json json = {{"a", json_text(flags.a)}, {"b", json_text(flags.b)}, {"same", models.same()}};
    if (options.tolerance)
      json["tolerance"] = {{"absolute", options.tolerance->absolute},
                           {"relative", options.tolerance->relative}};
    json.update(counts_json(models));
    json["bytes"] = found.bytes;
    json["bytes_read"] = found.bytes_read;
    json["seconds"] = models.seconds;
    const JsonRows rows = differences_json(models);
    print_json(std::move(json), &rows);
    return code;
  }
  if (!models.same()) {
    fmt::print("A: {}\nB: {}\n", safe_display(flags.a, 76), safe_display(flags.b, 76));
    print_differences(models, flags.limit, DifferenceKinds::all);
    fmt::print("\n{}", report::wrapped(counts_text(models), "", context.prose_columns));
    if (const std::string advice = advice_text(models, options.tolerance.has_value()); !advice.empty())
      fmt::print("{}", report::wrapped(advice, "", context.prose_columns));
    return code;
  }
  fmt::print("{} equal, {}{}{}\n", counted(found.match.pairs.size(), "tensor"),
             options.tolerance ? tolerance_text(*options.tolerance) : "byte for byte",
             found.match.tied > 0 ? fmt::format(", {} of them tied in one model and stored once in the other",
                                                found.match.tied)
                                  : "",
             models.mapped ? ", under llama.cpp's names" : "");
  fmt::print("{} compared in {}\n", format_bytes(found.bytes), format_seconds(models.seconds));
  return code;
}

}  // namespace

Action setup_verify(CLI::App& app) {
  auto flags = std::make_shared<ComparisonFlags>();
  add_comparison_options(app, *flags);
  return [flags](Context& context) { return verify(context, *flags); };
}

}  // namespace loadline::cli
