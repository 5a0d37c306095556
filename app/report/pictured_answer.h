// An answer with the curves of its rows.
#pragma once

#include "app/report/chart.h"
#include "core/load/answer.h"

#include <optional>
#include <vector>

namespace loadline::report {

struct PicturedAnswer {
  LoadAnswer answer;
  std::vector<std::optional<RowCurve>> curves;  // parallel to the rows; all empty if nobody asked for curves

  // Refers to both.
  ChartSubject subject(const MetaGraph& graph) const { return {graph, *answer.bound, answer.rows, curves}; }
};

// answer(), with curves if `curve` says how they are drawn. Throws as answer() does.
PicturedAnswer picture_answer(const MetaGraph& graph, const LoadRequest& request,
                              const LoadEnvironment& environment, AnswerOptions options,
                              const std::optional<CurveOptions>& curve,
                              std::shared_ptr<const RequestPass> forward, Progress& progress);

// The rows at these positions, in that order, and their curves.
void arrange(PicturedAnswer& pictured, const std::vector<std::size_t>& positions);

}  // namespace loadline::report
