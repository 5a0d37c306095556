// The parts of inspect's answer: summary, tree, tensors, statistics and findings, for people and as JSON.
#pragma once

#include "app/cli/command.h"
#include "core/forward/claims.h"
#include "core/inspect/doctor.h"
#include "core/inspect/tensor_stats.h"

#include <optional>
#include <span>
#include <string>
#include <vector>

namespace loadline::cli {

// A model and what opening it took.
struct OpenedModel {
  MetaGraphPtr graph;
  double open_ms = 0;
  std::uint64_t bytes_read = 0;
  ModelClaims claims = {};
};

// What a filter left of the tensors.
struct Selection {
  std::string filter;  // as typed; empty: everything
  std::vector<TensorId> tensors;
  std::uint64_t bytes = 0;  // what several of these tensors view counts once
};

void print_summary(const OpenedModel& opened);
Json summary_json(const OpenedModel& opened);

// Of the selection alone. Siblings that repeat ("layers.0" ... "layers.79") are shown once when their
// subtrees weigh the same.
void print_tree(const MetaGraph& graph, const Selection& selection);

// In the order given. `limit` 0 shows all.
void print_tensors(const Context& context, const MetaGraph& graph, const Selection& selection,
                   std::size_t limit);
JsonRows tensors_json(const Context& context, const MetaGraph& graph, const Selection& selection,
                      std::size_t limit);

// Every key-value with its type; of an array the first elements, read from the file.
void print_metadata(const Context& context, const MetaGraph& graph);
Json metadata_json(const MetaGraph& graph);

void print_findings(const MetaGraph& graph, const std::vector<Finding>& findings);
Json findings_json(const MetaGraph& graph, const std::vector<Finding>& findings);

// The tensors that a limit leaves, 0 being none.
std::span<const TensorId> shown(const Selection& selection, std::size_t limit);

// A row of statistics, made where they were measured: they are too large to keep for every tensor.
struct StatsRow {
  std::vector<std::string> cells;
  std::string refusal;  // why there are no cells
};
StatsRow stats_row(const Tensor& tensor, const MeasuredTensor& measured);
void print_stats(const Context& context, const MetaGraph& graph, const Selection& selection,
                 const std::vector<StatsRow>& rows);
// As stats_row; `histogram` has [octave, negatives, positives] for the octaves that are not empty.
Json stats_json(const Tensor& tensor, const MeasuredTensor& measured);

// "[4096, 11008]"
std::string shape_text(const Tensor& tensor);

}  // namespace loadline::cli
