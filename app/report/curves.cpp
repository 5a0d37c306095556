// Reduces each projection to a curve while it is alive.

#include "app/report/chart.h"
#include "core/base/text.h"
#include "core/plan/plan.h"

#include <algorithm>
#include <map>
#include <mutex>
#include <utility>

#include <fmt/core.h>

namespace loadline::report {

// --- Reduces a run to columns, and to lines that list blocks.

namespace {

// The spaces of each band of a curve, as a mask.
std::vector<unsigned> band_masks(plan::MemoryKind memory) {
  if (memory == plan::MemoryKind::unified) return {plan::kAllSpaces};
  return {plan::space_bit(plan::Space::device), plan::kAllSpaces & ~plan::space_bit(plan::Space::device)};
}

std::string slice_text(const load::Projection& projection, const CurveBand& band,
                       const view::UsageColumn& moment, const view::AliveAt& alive, const BlockName& name) {
  if (alive.count == 0) return "";
  std::string text = fmt::format("step {}", format_grouped(moment.step));
  for (const plan::Space space : plan::spaces_in(band.mask))
    if (const std::uint64_t bytes = moment.bytes[plan::index(space)]; bytes > 0)
      text += fmt::format(", {} {}", plan::space_title(space), format_bytes(bytes));
  for (const plan::BlockId id : alive.largest)
    text +=
        fmt::format("\n{}  {}", format_bytes(projection.plan.block(id).bytes), safe_display(name(id), 60));
  if (alive.count > alive.largest.size())
    text += fmt::format("\nand {} more", format_grouped(alive.count - alive.largest.size()));
  return text;
}

void add_slices(const load::Projection& projection, CurveBand& band, std::size_t slices,
                const BlockName& name) {
  constexpr std::size_t kMostNamed = 4;
  const std::vector<view::UsageColumn> moments = view::fewer_columns(band.columns, band.mask, slices);
  std::vector<std::size_t> steps;
  for (const view::UsageColumn& moment : moments) steps.push_back(moment.step);
  // an empty column has step 0, but steps must not decrease
  for (std::size_t i = 1; i < steps.size(); ++i) steps[i] = std::max(steps[i], steps[i - 1]);
  const auto alive = view::alive_at_steps(projection.timeline, projection.plan, steps, band.mask, kMostNamed);
  for (std::size_t i = 0; i < moments.size(); ++i)
    band.slices.push_back(slice_text(projection, band, moments[i], alive[i], name));
}

}  // namespace

std::string_view space_class(plan::Space space) {
  return space == plan::Space::page_cache ? "cache" : plan::space_name(space);
}

RowCurve row_curve(const load::Projection& projection, plan::MemoryKind memory, const CurveOptions& options,
                   std::size_t peak_step, const BlockName& name) {
  const plan::Timeline& timeline = projection.timeline;
  const std::size_t steps = projection.plan.steps.size();
  RowCurve curve;
  curve.axis = options.axis;
  curve.end = view::length_of(timeline, steps, options.axis);
  const auto place_of = [&](std::size_t step) {
    const double x = view::x_of_step(timeline, steps, options.axis, step);
    return curve.end > 0 ? std::clamp(x / curve.end, 0.0, 1.0) : 0;
  };
  curve.peak_place = place_of(peak_step);
  for (const plan::Mark& mark : projection.plan.marks) {
    if (mark.label == "loaded") curve.loaded_place = place_of(mark.step);
    curve.has_pass = curve.has_pass || mark.label == "first token";
  }
  for (const unsigned mask : band_masks(memory)) {
    CurveBand band;
    band.mask = mask;
    band.columns = view::usage_columns(timeline, steps, options.axis, mask, options.columns);
    for (const view::UsageColumn& column : band.columns)
      band.most = std::max(band.most, plan::sum_over(column.bytes, mask));
    if (options.slices > 0) add_slices(projection, band, options.slices, name);
    curve.bands.push_back(std::move(band));
  }
  return curve;
}

// --- Reduces each projection to a curve while it is alive.

AnswerWithCurves answer_with_curves(const graph::MetaGraph& graph,
                                    std::shared_ptr<const load::BoundRequest> bound,
                                    load::AnswerOptions options, const std::optional<CurveOptions>& curve,
                                    std::shared_ptr<const load::RequestPass> forward, Progress& progress) {
  std::mutex mutex;
  std::map<std::size_t, RowCurve> curves;
  if (curve) {
    const load::Labels labels(graph);
    const plan::MemoryKind memory = bound->memory.kind;
    options.projected = [&, labels, memory, other = std::move(options.projected)](
                            std::size_t at, const load::LoadRow& row, const load::Projection& projection) {
      if (other) other(at, row, projection);
      RowCurve drawn = row_curve(projection, memory, *curve, row.deciding_peak.step,
                                 [&](plan::BlockId id) { return labels.of(projection.plan, id); });
      const std::lock_guard lock(mutex);
      curves.emplace(at, std::move(drawn));
    };
  }
  AnswerWithCurves result;
  result.answer = load::answer(graph, std::move(bound), options, std::move(forward), progress);
  result.curves.resize(result.answer.rows.size());
  for (auto& [at, drawn] : curves) result.curves[at] = std::move(drawn);
  return result;
}

void arrange(AnswerWithCurves& answered, const std::vector<std::size_t>& positions) {
  std::vector<load::LoadRow> rows;
  std::vector<std::optional<RowCurve>> curves;
  for (const std::size_t at : positions) {
    rows.push_back(std::move(answered.answer.rows[at]));
    curves.push_back(std::move(answered.curves[at]));
  }
  answered.answer.rows = std::move(rows);
  answered.curves = std::move(curves);
}

}  // namespace loadline::report
