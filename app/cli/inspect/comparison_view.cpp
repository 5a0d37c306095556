// Writes what `verify` and `diff` say about tensors.
#include "app/cli/inspect/comparison_view.h"

#include "app/cli/base/option_flags.h"
#include "app/report/markdown.h"
#include "app/report/match_models.h"
#include "core/base/error.h"
#include "core/base/text.h"

#include <charconv>
#include <chrono>
#include <cmath>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

namespace loadline::cli {
namespace {

constexpr std::size_t kNameColumns = 76;

double parse_number(std::string_view text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || !std::isfinite(value) || value < 0)
    throw Error(ErrorCode::usage, "--tolerance: '{}' is not a number of at least 0", safe_display(text, 40));
  return value;
}

std::string name_words(const graph::Name& name) {
  return name.empty() ? "(no name)" : safe_display(name, kNameColumns);
}

std::string number_words(const convert::Number& number, bool exact) {
  if (const double* const value = std::get_if<double>(&number))
    return exact ? fmt::format("{}", *value) : fmt::format("{:.7g}", *value);
  return std::visit([](auto value) { return fmt::format("{}", value); }, number);
}

// Where element `position` lies: "[3, 17]"; "0" for a single number.
std::vector<std::uint64_t> coordinates(const graph::Shape& shape, std::uint64_t position) {
  std::vector<std::uint64_t> at(shape.size(), 0);
  for (std::size_t i = shape.size(); i-- > 0;) {
    at[i] = position % std::max<std::uint64_t>(shape[i], 1);
    position /= std::max<std::uint64_t>(shape[i], 1);
  }
  return at;
}

bool has_coordinates(const inspect::Weight& weight) {
  return graph::dtype_info(weight.dtype).block_elements != 0;
}

// What differs in the values of one pair, in lines.
std::string values_words(const inspect::Weight& weight, const inspect::ValueDifference& found) {
  if (found.differing == 0) return "other bytes, but equal numbers";
  const bool blocks = found.unit_elements > 1;
  const std::string_view unit = blocks ? "block" : has_coordinates(weight) ? "element" : "byte";
  std::string text = fmt::format("{} of {} {}", format_grouped(found.differing),
                                 counted(found.total / found.unit_elements, unit),
                                 found.differing == 1 ? "differs" : "differ");
  text += has_coordinates(weight)
              ? fmt::format("\nthe first at [{}]", fmt::join(coordinates(weight.shape, found.first), ", "))
              : fmt::format("\nthe first at byte {}", found.first);
  if (!found.a || !found.b) return text;
  std::string a = number_words(*found.a, false), b = number_words(*found.b, false);
  if (a == b) a = number_words(*found.a, true), b = number_words(*found.b, true);
  text += fmt::format(": A {}, B {}", a, b);
  if (found.not_finite < found.differing)
    text += fmt::format("\nlargest difference {:.4g}, or {:.4g} of the larger number", found.max_absolute,
                        found.max_relative);
  if (found.not_finite > 0)
    text += fmt::format("\nNaN or infinite in one or both: {}", format_grouped(found.not_finite));
  return text;
}

Json number_json(const convert::Number& number) {
  const double* const value = std::get_if<double>(&number);
  if (value != nullptr && !std::isfinite(*value)) return fmt::format("{}", *value);
  return std::visit([](auto held) { return Json(held); }, number);
}

Json weight_json(const graph::MetaGraph& graph, const inspect::Weight& weight) {
  return {{"name", json_text(weight.name)},
          {"type", inspect::weight_type(graph, weight)},
          {"shape", weight.shape},
          {"bytes", inspect::weight_bytes(graph, weight)}};
}

Json values_json(const inspect::Weight& weight, const inspect::ValueDifference& found) {
  Json json = {
      {"differing", found.differing}, {"total", found.total}, {"unit_elements", found.unit_elements}};
  if (found.differing == 0) return json;
  json["first"] = found.first;
  if (has_coordinates(weight)) json["at"] = coordinates(weight.shape, found.first);
  if (!found.a || !found.b) return json;
  json["a"] = number_json(*found.a);
  json["b"] = number_json(*found.b);
  json["max_absolute"] = found.max_absolute;
  json["max_relative"] = found.max_relative;
  json["not_finite"] = found.not_finite;
  return json;
}

// A heading with a count, then at most `limit` paragraphs.
class Section {
 public:
  Section(std::string_view title, std::uint64_t count, std::size_t limit) : left_(limit), count_(count) {
    if (count > 0) fmt::print("\n{}, {}:\n", title, counted(count, "tensor"));
  }
  ~Section() {
    if (shown_ < count_)
      fmt::print("  ... and {} more; --limit shows more of them\n", format_grouped(count_ - shown_));
  }
  Section(const Section&) = delete;
  Section& operator=(const Section&) = delete;

  void add(const graph::Name& name, const std::string& words) {
    if (left_ == 0) return;
    --left_;
    ++shown_;
    fmt::print("  {}\n", name_words(name));
    for (const std::string_view line : lines_of(words)) fmt::print("{}", report::wrapped(line, "    ", 80));
  }

 private:
  std::size_t left_;
  std::uint64_t count_, shown_ = 0;
};

void print_alone(std::string_view title, const graph::MetaGraph& graph,
                 const std::vector<inspect::Weight>& weights, const std::vector<std::uint32_t>& positions,
                 std::size_t limit) {
  Section section(title, positions.size(), limit);
  for (const std::uint32_t position : positions) {
    const inspect::Weight& weight = weights[position];
    section.add(weight.name, fmt::format("{} {}, {}", inspect::weight_type(graph, weight),
                                         graph::shape_words(weight.shape),
                                         format_bytes(inspect::weight_bytes(graph, weight))));
  }
}

std::string_view state_name(inspect::PairState state) {
  switch (state) {
    case inspect::PairState::other_shape:
      return "shape";
    case inspect::PairState::other_type:
      return "type";
    case inspect::PairState::other_values:
      return "values";
    case inspect::PairState::refused:
      return "refused";
    default:
      return "equal";
  }
}

// No tensor of one model has the name of a tensor of the other.
bool share_nothing(const inspect::Matching& match) {
  return match.pairs.empty() && !match.a.empty() && !match.b.empty();
}

bool differs(inspect::PairState state) {
  return state != inspect::PairState::equal && state != inspect::PairState::not_looked;
}

}  // namespace

void add_comparison_options(CLI::App& app, ComparisonFlags& flags) {
  add_text(app, "A", flags.a, "a model: file, folder, org/name, shard", {.required = true});
  add_text(app, "B", flags.b, "the model to compare it with", {.required = true});
  add_text(
      app, "--tolerance", flags.tolerance,
      "compare floats, blocks and packed weights as numbers: equal within ABS, or within REL of the larger",
      {.value_name = "ABS[,REL]"});
  add_number(app, "--limit", flags.limit, "show at most N tensors of each kind",
             {.value_name = "N", .show_default = true, .check = whole_range(1, kMostNumber)});
}

std::optional<inspect::Tolerance> parse_tolerance(const std::string& text) {
  if (text.empty()) return std::nullopt;
  const auto parts = split(text, ',');
  if (parts.size() > 2)
    throw Error(ErrorCode::usage, "--tolerance: '{}' is not ABS or ABS,REL", safe_display(text, 40));
  return inspect::Tolerance{parse_number(parts[0]), parts.size() == 2 ? parse_number(parts[1]) : 0};
}

std::string tolerance_text(const inspect::Tolerance& tolerance) {
  if (tolerance.absolute == 0 && tolerance.relative == 0) return "as numbers";
  std::string text = fmt::format("within {}", tolerance.absolute);
  if (tolerance.relative > 0) text += fmt::format(", or within {} of the larger number", tolerance.relative);
  return text;
}

bool ComparedModels::same() const {
  const inspect::Matching& match = comparison.match;
  return match.only_a.empty() && match.only_b.empty() &&
         std::ranges::none_of(comparison.results,
                              [](const inspect::PairResult& result) { return differs(result.state); });
}

ComparedModels compare_for(const Context& context, const graph::MetaGraphPtr& a, const graph::MetaGraphPtr& b,
                           const inspect::CompareOptions& options, std::string label) {
  ComparedModels models{a, b, {}, 0, false};
  Progress progress(context.stop);
  const ProgressLine line(context, std::move(label), progress);
  const auto start = std::chrono::steady_clock::now();
  report::MatchedModels matched = report::match_models(*a, *b);
  models.mapped = matched.mapped;
  if (!matched.problem.empty())
    complain("note: names are compared as stored, llama.cpp's cannot be derived: " + matched.problem);
  models.comparison = inspect::compare_models(a, b, std::move(matched.match), options, progress);
  models.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return models;
}

void print_differences(const ComparedModels& models, std::size_t limit, DifferenceKinds kinds) {
  const inspect::Comparison& found = models.comparison;
  const graph::MetaGraph &a = *models.a, &b = *models.b;
  print_alone("Only in A", a, found.match.a, found.match.only_a, limit);
  print_alone("Only in B", b, found.match.b, found.match.only_b, limit);
  const auto section = [&](std::string_view title, inspect::PairState state, auto words) {
    Section rows(title, found.count(state), limit);
    for (std::size_t i = 0; i < found.results.size(); ++i)
      if (found.results[i].state == state) {
        const inspect::WeightPair& pair = found.match.pairs[i];
        const inspect::Weight &of_a = found.match.a[pair.a], &of_b = found.match.b[pair.b];
        rows.add(of_a.name, words(of_a, of_b, found.results[i]));
      }
  };
  section("Other shape", inspect::PairState::other_shape,
          [](const inspect::Weight& of_a, const inspect::Weight& of_b, const inspect::PairResult&) {
            return fmt::format("A {}, B {}", graph::shape_words(of_a.shape), graph::shape_words(of_b.shape));
          });
  if (kinds == DifferenceKinds::all)
    section("Other type", inspect::PairState::other_type,
            [&](const inspect::Weight& of_a, const inspect::Weight& of_b, const inspect::PairResult&) {
              return fmt::format("A {}, B {}, {}", inspect::weight_type(a, of_a),
                                 inspect::weight_type(b, of_b), graph::shape_words(of_a.shape));
            });
  section("Other values", inspect::PairState::other_values,
          [&](const inspect::Weight& of_a, const inspect::Weight& of_b, const inspect::PairResult& result) {
            const std::string type = inspect::weight_type(a, of_a), other = inspect::weight_type(b, of_b);
            return fmt::format("{} {}, {}", type == other ? type : fmt::format("A {}, B {},", type, other),
                               graph::shape_words(of_a.shape), values_words(of_a, *result.difference));
          });
  section("Not compared", inspect::PairState::refused,
          [](const inspect::Weight&, const inspect::Weight&, const inspect::PairResult& result) {
            return result.refusal;
          });
}

std::string counts_text(const ComparedModels& models) {
  const inspect::Comparison& found = models.comparison;
  std::vector<std::string> parts;
  const auto add = [&](std::uint64_t count, std::string_view what) {
    if (count > 0) parts.push_back(fmt::format("{} {}", format_grouped(count), what));
  };
  add(found.count(inspect::PairState::equal), "equal");
  add(found.count(inspect::PairState::not_looked), "of equal shape and type");
  add(found.count(inspect::PairState::other_shape), "of other shape");
  add(found.count(inspect::PairState::other_type), "of other type");
  add(found.count(inspect::PairState::other_values), "with other values");
  add(found.count(inspect::PairState::refused), "not compared");
  add(found.match.only_a.size(), "only in A");
  add(found.match.only_b.size(), "only in B");
  if (parts.empty()) parts.emplace_back("nothing to compare");
  return fmt::format("{} in A, {} in B: {}.", counted(found.match.a.size(), "tensor"),
                     format_grouped(found.match.b.size()), fmt::join(parts, ", "));
}

std::string advice_text(const ComparedModels& models, bool has_tolerance) {
  if (share_nothing(models.comparison.match))
    return "No tensor of A has the name of a tensor of B. Names are compared as stored, except for a Hugging "
           "Face model beside a GGUF file of a family that Loadline can convert.";
  if (!has_tolerance && models.comparison.count(inspect::PairState::other_type) > 0)
    return "Tensors of other types are not compared value by value; --tolerance 0 does that.";
  return "";
}

Json counts_json(const ComparedModels& models) {
  const inspect::Comparison& found = models.comparison;
  return {{"mapped", models.mapped},
          {"tensors_a", found.match.a.size()},
          {"tensors_b", found.match.b.size()},
          {"equal", found.count(inspect::PairState::equal)},
          {"other_shape", found.count(inspect::PairState::other_shape)},
          {"other_type", found.count(inspect::PairState::other_type)},
          {"other_values", found.count(inspect::PairState::other_values)},
          {"refused", found.count(inspect::PairState::refused)},
          {"only_a", found.match.only_a.size()},
          {"only_b", found.match.only_b.size()},
          {"tied", found.match.tied}};
}

JsonRows differences_json(const ComparedModels& models) {
  const inspect::Comparison& found = models.comparison;
  JsonRows rows("differences");
  for (const std::uint32_t position : found.match.only_a)
    rows.add({{"kind", "only_a"}, {"a", weight_json(*models.a, found.match.a[position])}});
  for (const std::uint32_t position : found.match.only_b)
    rows.add({{"kind", "only_b"}, {"b", weight_json(*models.b, found.match.b[position])}});
  for (std::size_t i = 0; i < found.results.size(); ++i) {
    const inspect::PairResult& result = found.results[i];
    if (!differs(result.state)) continue;
    const inspect::Weight& of_a = found.match.a[found.match.pairs[i].a];
    const inspect::Weight& of_b = found.match.b[found.match.pairs[i].b];
    Json row = {{"kind", state_name(result.state)},
                {"a", weight_json(*models.a, of_a)},
                {"b", weight_json(*models.b, of_b)}};
    if (result.difference) row["values"] = values_json(of_a, *result.difference);
    if (!result.refusal.empty()) row["refusal"] = json_text(result.refusal);
    rows.add(row);
  }
  return rows;
}

}  // namespace loadline::cli
