// The answer of `plan`, how to show it, and its forms: table, sentences and JSON.
#pragma once

#include "app/cli/base/command.h"
#include "app/report/pictured_answer.h"

#include <cstddef>
#include <cstdint>
#include <string>

namespace loadline::cli {

// Holds references to the objects it was made from.
struct PlanView {
  const MetaGraph& graph;
  const std::string& path;  // as the command line named the model
  const report::PicturedAnswer& pictured;
  bool show_times = false;  // the request sets rates, or rows are sorted by them
  bool show_laws = false;
  std::size_t alive = 0;             // blocks listed for each row; 0: some, for the first row only
  std::size_t hidden_rows = 0;       // number left out because they do not fit
  std::uint64_t hidden_methods = 0;  // number outside the default set
  std::size_t prose_columns = 100;

  const LoadAnswer& answer() const { return pictured.answer; }
  const BoundRequest& bound() const { return *pictured.answer.bound; }
  const LoadRequest& request() const { return bound().request(); }
  bool unified() const { return bound().memory == MemoryKind::unified; }
  // The weights and activations that stay on the device: "W", "W + Q", "W and the forward pass".
  std::string held_name() const;
};

// The table fits into `columns` if possible: the least important columns are dropped first.
std::string plan_table(const PlanView& view, bool colour, std::size_t columns);
// The rows alone, with lines of at most `columns` characters, if possible. Columns without a figure in any
// row are left out.
std::string rows_table(const PlanView& view, bool colour, std::size_t columns);
// Explains each method, and shows its peak as every memory counter would.
std::string plan_explanation(const PlanView& view, bool colour);
// One sentence: "Least on the device: 5.80 GiB, which is W, by ...".
std::string least_text(const PlanView& view);
Json plan_json(const PlanView& view);

}  // namespace loadline::cli
