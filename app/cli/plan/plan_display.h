// The answer of `plan` and its forms: table, sentences, JSON, plots; the parts that other commands show too:
// forward pass, evidence, advice.
#pragma once

#include "app/cli/base/command.h"
#include "app/report/chart.h"
#include "core/load/answer/answer.h"
#include "core/load/request/pass.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace loadline::cli {

// --- The answer of `plan`, how to show it, and its forms: table, sentences and JSON.

// Holds references to the objects it was made from.
struct PlanDisplay {
  const graph::MetaGraph& graph;
  const std::string& path;  // as the command line named the model
  const report::AnswerWithCurves& answered;
  bool show_times = false;      // the request sets rates, or rows are sorted by them
  std::size_t alive = 0;        // blocks listed for each row; 0: some, for the first row only
  std::size_t hidden_rows = 0;  // number left out because they do not fit
  std::size_t prose_columns = 100;

  const load::LoadAnswer& answer() const { return answered.answer; }
  const load::BoundRequest& bound() const { return *answered.answer.bound; }
  const load::LoadRequest& request() const { return bound().request; }
  bool unified() const { return bound().memory.kind == plan::MemoryKind::unified; }
  // The weights and activations that stay on the device: "the weights", "the weights and the forward pass".
  std::string held_name(const load::Method& method) const;
  // device_lower_bound() of the method's load.
  std::uint64_t lower_bound(const load::Method& method) const;
  // What a verdict counts: "the weights alone: no prompt (--seq), no cache".
  std::string covered() const;
};

// The table fits into `columns` if possible: the least important columns are dropped first.
std::string plan_text(const PlanDisplay& view, bool color, std::size_t columns);
// The rows alone, with lines of at most `columns` characters, if possible. Columns without a figure in any
// row are left out.
std::string rows_table(const PlanDisplay& view, bool color, std::size_t columns);
// Explains each method, and shows its peak as every memory counter would.
std::string plan_explanation(const PlanDisplay& view, bool color);
// One sentence: "Least on the device: 5.80 GiB, as much as the weights, by ...".
std::string least_text(const PlanDisplay& view);
Json plan_json(const PlanDisplay& view);

// --- Curves of memory over a load, drawn with text characters.

// The drawing abilities of a terminal.
struct PlotStyle {
  std::size_t columns = 80;
  bool color = false;
  bool unicode = true;  // if false, ASCII only
};

// One plot for each row that has a curve, all with the same scale of bytes, and a legend.
std::string plan_plots(const PlanDisplay& view, const PlotStyle& style);

// --- Describes a forward pass in text and in JSON.

// Remarks on named sizes of a file that were guessed and may be wrong.
std::vector<std::string> size_notes(const load::RequestPass& pass);

// The key "forward" of the JSON output; null if nothing is known.
Json forward_json(const load::RequestPass& pass);
// Lines of text; empty if nothing is known and no pass was requested.
std::string forward_text(const load::RequestPass& pass);

// --- The JSON form of what frameworks measured of a method.

// {"kind": "measured", "framework", "version", "frameworks", "loads", "in_range", "beyond", "error_percent"},
// or
// {"kind": "construction"}.
Json evidence_json(std::string_view method);

// --- The advice of `plan` after a table in which not everything fits: the smallest changes that make a load
// fit.

// `path` is the model as given on the command line: each change comes with a `plan` command that projects it.
std::string advice_text(const load::LoadAdvice& advice, const std::string& path);
Json advice_json(const load::LoadAdvice& advice, const std::string& path);

}  // namespace loadline::cli
