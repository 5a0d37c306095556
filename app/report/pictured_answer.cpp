// Reduces each projection to a curve while it is alive.
#include "app/report/pictured_answer.h"

#include <map>
#include <mutex>
#include <utility>

namespace loadline::report {

PicturedAnswer picture_answer(const MetaGraph& graph, const LoadRequest& request,
                              const LoadEnvironment& environment, AnswerOptions options,
                              const std::optional<CurveOptions>& curve,
                              std::shared_ptr<const RequestPass> forward, Progress& progress) {
  std::mutex mutex;
  std::map<std::size_t, RowCurve> curves;
  if (curve) {
    const Labels labels(graph);
    const MemoryKind memory = bind_memory(request, environment.targets).kind;
    options.projected = [&, labels, memory, other = std::move(options.projected)](
                            std::size_t at, const LoadRow& row, const Projection& projection) {
      if (other) other(at, row, projection);
      RowCurve drawn = row_curve(projection, memory, *curve, row.leading.step,
                                 [&](BlockId id) { return labels.of(projection.plan, id); });
      const std::lock_guard lock(mutex);
      curves.emplace(at, std::move(drawn));
    };
  }
  PicturedAnswer result;
  result.answer = answer(graph, request, environment, options, std::move(forward), progress);
  result.curves.resize(result.answer.rows.size());
  for (auto& [at, drawn] : curves) result.curves[at] = std::move(drawn);
  return result;
}

void arrange(PicturedAnswer& pictured, const std::vector<std::size_t>& positions) {
  std::vector<LoadRow> rows;
  std::vector<std::optional<RowCurve>> curves;
  for (const std::size_t at : positions) {
    rows.push_back(std::move(pictured.answer.rows[at]));
    curves.push_back(std::move(pictured.curves[at]));
  }
  pictured.answer.rows = std::move(rows);
  pictured.curves = std::move(curves);
}

}  // namespace loadline::report
