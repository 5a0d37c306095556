// Turns the comparison of weights into rows, and marks this model's tensors and modules.
#include "app/gui/state/model/model_diff.h"

#include "app/gui/state/model/model.h"
#include "app/report/match_models.h"
#include "core/base/error.h"
#include "core/base/text.h"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace loadline::gui {
namespace {

DiffSide side_of(const graph::MetaGraph& graph, const inspect::Weight& weight) {
  return {.type = inspect::weight_type(graph, weight),
          .shape = weight.shape.empty() ? "one number" : fmt::format("{}", fmt::join(weight.shape, " x ")),
          .bytes = inspect::weight_bytes(graph, weight)};
}

std::string values_text(const inspect::ValueDifference& found) {
  if (found.differing == 0) return "equal numbers, different bytes";
  std::string text;
  if (found.a && found.b && found.not_finite < found.differing)
    text = fmt::format("by {:.3g} at most, ", found.max_absolute);
  text += fmt::format("{} of {}", format_grouped(found.differing), format_grouped(found.total));
  if (found.not_finite > 0) text += fmt::format(", {} not finite", format_grouped(found.not_finite));
  return text;
}

DiffKind kind_of_pair(const inspect::PairResult& result, bool same_type) {
  switch (result.state) {
    case inspect::PairState::other_shape:
      return DiffKind::shape;
    case inspect::PairState::other_type:
      return DiffKind::type;
    case inspect::PairState::other_values:
      return DiffKind::values;
    case inspect::PairState::refused:
      return DiffKind::refused;
    case inspect::PairState::equal:
    case inspect::PairState::not_looked:
      break;
  }
  return same_type ? DiffKind::equal : DiffKind::type;
}

class Differ {
 public:
  Differ(const Model& here, const Model& there, const inspect::Comparison& compared)
      : here_(*here.graph), there_(*there.graph), match_(compared.match) {
    for (std::size_t i = 0; i < match_.pairs.size(); ++i) add_pair(match_.pairs[i], compared.results[i]);
    for (const std::uint32_t at : match_.only_a) {
      const inspect::Weight& weight = match_.a[at];
      add({.kind = DiffKind::only_here,
           .name = weight.name.str(),
           .here = weight.tensor,
           .a = side_of(here_, weight),
           .b = {}});
    }
    const auto before = [](const DiffRow& a, const DiffRow& b) { return *a.here < *b.here; };
    std::ranges::stable_sort(diff_.rows, before);
    for (const std::uint32_t at : match_.only_b) {
      const inspect::Weight& weight = match_.b[at];
      add({.kind = DiffKind::only_there,
           .name = weight.name.str(),
           .here = {},
           .a = {},
           .b = side_of(there_, weight)});
    }
    mark(here);
  }
  ModelDiff take() { return std::move(diff_); }

 private:
  void add(DiffRow row) {
    ++diff_.counts[static_cast<std::size_t>(row.kind)];
    diff_.rows.push_back(std::move(row));
  }

  void add_pair(const inspect::WeightPair& pair, const inspect::PairResult& result) {
    const inspect::Weight &a = match_.a[pair.a], &b = match_.b[pair.b];
    DiffRow row = {
        .kind = kind_of_pair(result, inspect::weight_type(here_, a) == inspect::weight_type(there_, b)),
        .name = a.name.str(),
        .here = a.tensor,
        .a = side_of(here_, a),
        .b = side_of(there_, b)};
    row.detail = result.difference ? values_text(*result.difference) : result.refusal;
    add(std::move(row));
  }

  void mark(const Model& here) {
    diff_.of_tensor.assign(here_.tensors.size(), DiffKind::equal);
    diff_.touched.assign(here.tree.nodes.size(), false);
    std::vector<graph::TensorId> differing;
    for (const DiffRow& row : diff_.rows) {
      if (!row.here || row.kind == DiffKind::equal) continue;
      diff_.of_tensor[graph::index(*row.here)] = row.kind;
      differing.push_back(*row.here);
    }
    diff_.touched = nodes_with(here, differing);
  }

  const graph::MetaGraph& here_;
  const graph::MetaGraph& there_;
  const inspect::Matching& match_;
  ModelDiff diff_;
};

// Adds by how much the numbers of pairs differ whose types do.
void compare_other_types(const Model& here, const Model& there, inspect::Comparison& compared,
                         Progress& progress) {
  inspect::Matching other;
  other.a = compared.match.a;
  other.b = compared.match.b;
  std::vector<std::size_t> at;
  for (std::size_t i = 0; i < compared.results.size(); ++i) {
    if (compared.results[i].state != inspect::PairState::other_type) continue;
    other.pairs.push_back(compared.match.pairs[i]);
    at.push_back(i);
  }
  if (at.empty()) return;
  const inspect::CompareOptions as_numbers = {.values = true, .tolerance = inspect::Tolerance{0, 0}};
  const inspect::Comparison numbers =
      inspect::compare_models(here.graph, there.graph, std::move(other), as_numbers, progress);
  for (std::size_t i = 0; i < at.size(); ++i) {
    inspect::PairResult& result = compared.results[at[i]];
    result.difference = numbers.results[i].difference;
    result.refusal = numbers.results[i].state == inspect::PairState::equal ? "the numbers are equal"
                                                                           : numbers.results[i].refusal;
  }
}

}  // namespace

std::string_view diff_kind_name(DiffKind kind) {
  constexpr std::array<std::string_view, kDiffKinds> kNames = {"only here", "only there",     "shape", "type",
                                                               "values",    "not comparable", "equal"};
  return kNames[static_cast<std::size_t>(kind)];
}

char diff_kind_letter(DiffKind kind) { return "+-stv? "[static_cast<std::size_t>(kind)]; }

std::string diff_kind_words(DiffKind kind) {
  std::string words(diff_kind_name(kind));
  return kind == DiffKind::equal ? words : std::string(1, diff_kind_letter(kind)) + " " + words;
}

ModelDiff diff_models(const Model& here, const Model& there, bool values, Progress& progress) {
  report::MatchedModels matched = report::match_models(*here.graph, *there.graph);
  inspect::Comparison compared = inspect::compare_models(here.graph, there.graph, std::move(matched.match),
                                                         {.values = values}, progress);
  if (values) compare_other_types(here, there, compared, progress);
  ModelDiff diff = Differ(here, there, compared).take();
  diff.values = values;
  diff.mapped = matched.mapped;
  diff.metadata_problem = matched.problem;
  try {
    diff.metadata = report::diff_model_metadata(*here.graph, *there.graph, matched.mapped, progress,
                                                diff.metadata_problem);
  } catch (const Error& error) {
    if (error.code() == ErrorCode::canceled) throw;
    diff.metadata_problem = error.what();  // the weights were compared all the same
  }
  return diff;
}

void DiffView::begin(ModelPtr there, bool values) {
  if (!here_ || !there) throw Error(ErrorCode::usage, "two models are compared: open another one");
  if (values)
    for (const ModelPtr& model : {here_, there}) {
      graph::require_sound(*model->graph, "compare the values of");
      if (const std::string misfit = use_misfit(*model); !misfit.empty())
        throw Error(ErrorCode::unsupported, "the values cannot be compared: " + misfit);
    }
  if (there_ != there) result.reset();
  there_ = std::move(there);
  result.ask(jobs_, values ? "Comparing values" : "Comparing models",
             [here = here_, other = there_, values](Progress& progress) {
               return diff_models(*here, *other, values, progress);
             });
}

void DiffView::end() {
  result.reset();
  there_.reset();
}

}  // namespace loadline::gui
