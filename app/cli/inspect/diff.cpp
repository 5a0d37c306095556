// loadline diff: what differs between two models; loadline verify: whether they have the same tensors.

#include "app/cli/base/command.h"
#include "app/cli/base/option_flags.h"
#include "app/cli/base/terminal.h"
#include "app/cli/inspect/comparison_view.h"
#include "app/report/markdown.h"
#include "app/report/match_models.h"
#include "core/base/error.h"
#include "core/base/text.h"
#include "core/inspect/model_differences.h"

#include <algorithm>
#include <map>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

namespace loadline::cli {

// --- loadline diff: what differs between two models.

namespace {

constexpr std::size_t kColumns = 80;

struct DiffFlags {
  ComparisonFlags shared;
  bool no_values = false;
};

struct ModelDiff {
  ComparedModels models;
  std::vector<inspect::TypeGroup> types;
  std::vector<inspect::MetadataDifference> metadata;
  std::vector<std::vector<std::string>> ties_a, ties_b;  // that the other model has not
  bool values = true;

  // With a tolerance numbers may be equal although their types differ.
  bool same() const {
    return models.same() && metadata.empty() && ties_a.empty() && ties_b.empty() &&
           std::ranges::all_of(types, [](const inspect::TypeGroup& group) { return group.a == group.b; });
  }
};

double bits_of(std::uint64_t bytes, std::uint64_t elements) {
  return elements == 0 ? 0 : 8 * static_cast<double>(bytes) / static_cast<double>(elements);
}

std::string model_line(std::string_view letter, const std::string& path, const graph::MetaGraph& graph) {
  const std::uint64_t bytes = graph::storage_bytes(graph), parameters = graph::parameter_count(graph);
  return fmt::format("{}: {}\n   {}, {}, {} parameters, {}, {:.2f} bits per parameter\n", letter,
                     safe_display(path, kColumns - 3), safe_display(graph.format),
                     counted(graph.tensors.size(), "tensor"), format_count(parameters), format_bytes(bytes),
                     bits_of(bytes, parameters));
}

// "+12.30 MiB", "-1.00 KiB", "0"
std::string change_text(std::uint64_t from, std::uint64_t to) {
  if (from == to) return "0";
  return to > from ? "+" + format_bytes(to - from) : "-" + format_bytes(from - to);
}

std::string type_cell(const std::string& type, std::uint64_t bytes, std::uint64_t elements) {
  return fmt::format("{} {:.2f}", type, bits_of(bytes, elements));
}

// One row for each group whose types differ, its layers below it where other layers have other types.
void print_types(const Context& context, const ModelDiff& diff) {
  std::vector<const inspect::TypeGroup*> other;
  std::map<std::string, std::uint64_t> equal;
  for (const inspect::TypeGroup& group : diff.types)
    if (group.a == group.b)
      equal[group.a] += group.count;
    else
      other.push_back(&group);
  if (other.empty()) return;
  const std::vector<Align> alignment = {kLeft, kRight, kLeft, kLeft, kRight};
  const auto lines_for = [&](std::size_t name_columns) {
    Table table({"types and bits per weight", "count", "A", "B", "bytes"}, alignment);
    for (const inspect::TypeGroup* group : other)
      table.row({safe_display(group->pattern, name_columns), format_grouped(group->count),
                 type_cell(group->a, group->bytes_a, group->elements),
                 type_cell(group->b, group->bytes_b, group->elements),
                 change_text(group->bytes_a, group->bytes_b)});
    return table.text(context.color);
  };
  // names take what the other columns leave of 80
  std::string text = lines_for(kColumns);
  std::size_t widest = 0;
  for (const std::string_view line : lines_of(text)) widest = std::max(widest, display_width(line));
  std::size_t longest = 25;
  for (const inspect::TypeGroup* group : other)
    longest = std::max(longest, display_width(safe_display(group->pattern, kColumns)));
  if (widest > kColumns)
    text = lines_for(longest > widest - kColumns + 25 ? longest - (widest - kColumns) : 25);
  fmt::print("\n");
  std::size_t row = 0;
  for (const std::string_view line : lines_of(text)) {
    fmt::print("{}\n", line);
    if (row > 0 && row <= other.size() && !other[row - 1]->all_layers && !other[row - 1]->layers.empty())
      fmt::print("{}",
                 report::wrapped("layers " + inspect::ranges_text(other[row - 1]->layers), "    ", kColumns));
    ++row;
  }
  if (equal.empty()) return;
  std::vector<std::string> parts;
  for (const auto& [type, count] : equal)
    parts.push_back(fmt::format("{} of {}", counted(count, "tensor"), type));
  fmt::print("{}",
             report::wrapped(fmt::format("The same in both: {}.", fmt::join(parts, ", ")), "", kColumns));
}

void print_metadata_diff(const ModelDiff& diff, std::size_t limit) {
  if (diff.metadata.empty()) return;
  fmt::print("\nMetadata, {}:\n", counted(diff.metadata.size(), "key"));
  constexpr std::size_t kKey = 70, kValue = 66;
  std::size_t shown = 0;
  for (const inspect::MetadataDifference& found : diff.metadata) {
    if (shown++ == limit) {
      fmt::print("  ... and {} more; --limit shows more of them\n", diff.metadata.size() - limit);
      break;
    }
    fmt::print("  {}\n", safe_display(found.key, kKey));
    if (!found.b) fmt::print("    only in A: {}\n", safe_display(*found.a, kValue));
    if (!found.a) fmt::print("    only in B: {}\n", safe_display(*found.b, kValue));
    if (found.a && found.b)
      fmt::print("    A: {}\n    B: {}\n", safe_display(*found.a, kValue), safe_display(*found.b, kValue));
  }
}

void print_ties(std::string_view letter, const std::vector<std::vector<std::string>>& ties,
                std::size_t limit) {
  if (ties.empty()) return;
  fmt::print("\nTied only in {}, {}:\n", letter, counted(ties.size(), "group"));
  for (std::size_t i = 0; i < std::min(ties.size(), limit); ++i)
    fmt::print("{}", report::wrapped(join_names(ties[i], 8), "  ", kColumns));
  if (ties.size() > limit) fmt::print("  ... and {} more; --limit shows more of them\n", ties.size() - limit);
}

Json totals_json(const graph::MetaGraph& graph) {
  const std::uint64_t bytes = graph::storage_bytes(graph), parameters = graph::parameter_count(graph);
  return {{"format", graph.format},
          {"parameters", parameters},
          {"bytes", bytes},
          {"bits_per_parameter", bits_of(bytes, parameters)}};
}

Json ties_json(const std::vector<std::vector<std::string>>& ties) {
  Json list = Json::array();
  for (const auto& group : ties) list.push_back(json_texts(group));
  return list;
}

void print_diff_json(const DiffFlags& flags, const ModelDiff& diff) {
  Json json = {{"a", json_text(flags.shared.a)},
               {"b", json_text(flags.shared.b)},
               {"same", diff.same()},
               {"values_compared", diff.values},
               {"model_a", totals_json(*diff.models.a)},
               {"model_b", totals_json(*diff.models.b)}};
  json.update(counts_json(diff.models));
  json["types"] = Json::array();
  for (const inspect::TypeGroup& group : diff.types)
    json["types"].push_back({{"pattern", json_text(group.pattern)},
                             {"layers", group.layers},
                             {"count", group.count},
                             {"a", group.a},
                             {"b", group.b},
                             {"elements", group.elements},
                             {"bytes_a", group.bytes_a},
                             {"bytes_b", group.bytes_b}});
  json["metadata"] = Json::array();
  for (const inspect::MetadataDifference& found : diff.metadata) {
    Json row = {{"key", json_text(found.key)}};
    if (found.a) row["a"] = json_text(*found.a);
    if (found.b) row["b"] = json_text(*found.b);
    json["metadata"].push_back(row);
  }
  json["tied_only_a"] = ties_json(diff.ties_a);
  json["tied_only_b"] = ties_json(diff.ties_b);
  const JsonRows rows = differences_json(diff.models);
  print_json(std::move(json), &rows);
}

int run_diff(const Context& context, const DiffFlags& flags) {
  const auto tolerance = parse_tolerance(flags.shared.tolerance);
  if (tolerance && flags.no_values)
    throw Error(ErrorCode::usage, "--tolerance has no effect with --no-values");
  const graph::MetaGraphPtr a = open_weights_for(context, flags.shared.a),
                            b = open_weights_for(context, flags.shared.b);
  ModelDiff diff;
  diff.values = !flags.no_values && !graph::shapes_only(*a) && !graph::shapes_only(*b);
  if (diff.values)
    for (const graph::MetaGraphPtr& graph : {a, b}) graph::require_sound(*graph, "compare the values of");
  diff.models = compare_for(context, a, b, {diff.values, tolerance}, "comparing");
  Progress progress(context.stop);
  std::string problem;
  diff.metadata = report::diff_model_metadata(*a, *b, diff.models.mapped, progress, problem);
  if (!problem.empty()) complain("note: not all metadata is compared: " + problem);
  diff.types = inspect::type_groups(*a, *b, diff.models.comparison.match);
  if (!diff.models.mapped) {
    diff.ties_a = inspect::ties_missing(*a, *b);
    diff.ties_b = inspect::ties_missing(*b, *a);
  }
  const int code = diff.same() ? kDone : kDifferent;
  if (context.json) {
    print_diff_json(flags, diff);
    return code;
  }
  fmt::print("{}{}", model_line("A", flags.shared.a, *a), model_line("B", flags.shared.b, *b));
  print_types(context, diff);
  print_differences(diff.models, flags.shared.limit, DifferenceKinds::without_types);
  print_ties("A", diff.ties_a, flags.shared.limit);
  print_ties("B", diff.ties_b, flags.shared.limit);
  print_metadata_diff(diff, flags.shared.limit);
  fmt::print("\n{}", report::wrapped(counts_text(diff.models), "", kColumns));
  if (diff.models.mapped)
    fmt::print("{}", report::wrapped("Compared under llama.cpp's names: tensors, and the keys that say how "
                                     "the model runs. Descriptions (general.*) were not compared.",
                                     "", kColumns));
  if (!diff.values) fmt::print("Values were not compared.\n");
  if (const std::string advice = advice_text(diff.models, tolerance.has_value() || !diff.values);
      !advice.empty())
    fmt::print("{}", report::wrapped(advice, "", kColumns));
  if (diff.same()) fmt::print("Nothing differs.\n");
  return code;
}

}  // namespace

Action setup_diff(CLI::App& app) {
  auto flags = std::make_shared<DiffFlags>();
  add_comparison_options(app, flags->shared);
  add_flag(app, "--no-values", flags->no_values, "compare names, shapes, types and metadata only");
  return [flags](Context& context) { return run_diff(context, *flags); };
}

// --- loadline verify: whether two models have the same tensors.

namespace {

int exit_code_of(const ComparedModels& models) {
  if (models.same()) return kDone;
  const inspect::Comparison& found = models.comparison;
  const std::uint64_t known =
      found.count(inspect::PairState::equal) + found.count(inspect::PairState::refused);
  const bool only_refused =
      known == found.results.size() && found.match.only_a.empty() && found.match.only_b.empty();
  return only_refused ? kFailed : kDifferent;
}

int verify(const Context& context, const ComparisonFlags& flags) {
  const inspect::CompareOptions options{true, parse_tolerance(flags.tolerance)};
  const graph::MetaGraphPtr a = open_weights_for(context, flags.a), b = open_weights_for(context, flags.b);
  graph::require_sound(*a, "verify");
  graph::require_sound(*b, "verify");
  const ComparedModels models = compare_for(context, a, b, options, "comparing");
  const inspect::Comparison& found = models.comparison;
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
