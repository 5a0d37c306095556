// The parts of inspect's output, as text and as JSON: summary, tree, tensors, statistics and findings.
#pragma once

#include "app/cli/base/command.h"
#include "core/forward/model/expected_tensors.h"
#include "core/inspect/doctor.h"
#include "core/inspect/tensor_values.h"
#include "exporters/merge/merge_lora.h"

#include <optional>
#include <span>
#include <string>
#include <vector>

namespace loadline::cli {

// A model, with the time and reads that opening took.
struct OpenedModel {
  graph::MetaGraphPtr graph;
  double open_ms = 0;
  std::uint64_t bytes_read = 0;
  forward::ModelClaims claims = {};
  std::optional<exporters::LoraConfig> adapter = {};  // the settings, if the tensors are those of an adapter
};

// The tensors that a filter selects.
struct Selection {
  std::string filter;  // as typed; empty: everything
  std::vector<graph::TensorId> tensors;
  std::uint64_t bytes = 0;  // bytes shared by several of them count once
};

void print_summary(const OpenedModel& opened);
Json summary_json(const OpenedModel& opened);

// Each print function below first prints an empty line.

// The tree of the selected tensors. Repeated siblings ("layers.0" ... "layers.79") are shown once if their
// subtrees have the same size.
void print_tree(const graph::MetaGraph& graph, const Selection& selection);

// The selected tensors in the given order; `limit` 0 shows all.
void print_tensors(const Context& context, const graph::MetaGraph& graph, const Selection& selection,
                   std::size_t limit);
JsonRows tensors_json(const Context& context, const graph::MetaGraph& graph, const Selection& selection,
                      std::size_t limit);

// Every metadata key with its type and value; for arrays the first elements, read from the file.
void print_metadata(const Context& context, const graph::MetaGraph& graph);
Json metadata_json(const graph::MetaGraph& graph);

void print_findings(const graph::MetaGraph& graph, const std::vector<inspect::Finding>& findings);
Json findings_json(const graph::MetaGraph& graph, const std::vector<inspect::Finding>& findings);

// The first `limit` selected tensors; all if `limit` is 0.
std::span<const graph::TensorId> shown(const Selection& selection, std::size_t limit);

// A row of statistics, made right after its tensor is measured: full statistics are too large to keep for
// all.
struct StatsRow {
  std::vector<std::string> cells;
  std::string refusal;  // reason if there are no cells
};
StatsRow stats_row(const graph::Tensor& tensor, const inspect::MeasuredTensor& measured);
void print_stats(const Context& context, const graph::MetaGraph& graph, const Selection& selection,
                 const std::vector<StatsRow>& rows);
// As stats_row, in JSON. `histogram` has [octave, negatives, positives] for each octave that is not empty.
Json stats_json(const graph::Tensor& tensor, const inspect::MeasuredTensor& measured);

// "[4096, 11008]"
std::string shape_text(const graph::Tensor& tensor);

}  // namespace loadline::cli
