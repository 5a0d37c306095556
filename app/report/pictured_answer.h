// An answer together with the curves of its rows.
#pragma once

#include "app/report/chart.h"
#include "core/load/answer/answer.h"

#include <optional>
#include <vector>

namespace loadline::report {

struct PicturedAnswer {
  LoadAnswer answer;
  std::vector<std::optional<RowCurve>> curves;  // parallel to the rows; all empty if no curves were requested

  // Holds references to this object and `graph`.
  ChartSubject subject(const MetaGraph& graph) const { return {graph, *answer.bound, answer.rows, curves}; }
};

// answer() with curves drawn as `curve` says; without curves if it is absent. Throws as answer() does.
PicturedAnswer picture_answer(const MetaGraph& graph, const LoadRequest& request,
                              const LoadEnvironment& environment, AnswerOptions options,
                              const std::optional<CurveOptions>& curve,
                              std::shared_ptr<const RequestPass> forward, Progress& progress);

// Keeps only the rows at these positions, in that order, and their curves.
void arrange(PicturedAnswer& pictured, const std::vector<std::size_t>& positions);

}  // namespace loadline::report
