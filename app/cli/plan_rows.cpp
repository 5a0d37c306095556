// From a projection that is alive to the figures of its row.
#include "app/cli/plan_rows.h"

#include <utility>

namespace loadline::cli {
namespace {

RowPeak row_peak(const Plan& plan, std::uint64_t bytes, std::size_t step, const Labels& labels) {
  return {bytes, step, bytes == 0 ? "" : labels.at_step(plan, step)};
}

}  // namespace

Row make_row(const Projection& projection, const RowFrame& frame, const Labels& labels) {
  const Timeline& timeline = projection.timeline;
  const Plan& plan = projection.plan;
  Row row;
  row.method = projection.method;
  row.order = projection.order;
  row.reads = projection.reads;
  row.seconds = projection.seconds;
  for (std::size_t i = 0; i < kSpaceCount; ++i)
    row.peaks[i] = row_peak(plan, timeline.peaks[i].bytes, timeline.peaks[i].step, labels);
  row.unified = row_peak(plan, timeline.unified.bytes, timeline.unified.step, labels);
  const std::vector<ViewPeak> views = view_peaks(timeline, frame.memory, frame.cache_limit);
  for (const ViewPeak& view : views) row.views.push_back(view.bytes);
  const ViewPeak& leading = views[leading_view(frame.memory)];
  row.leading = row_peak(plan, leading.bytes, leading.step, labels);
  row.held = held_peak(timeline);
  row.final_bytes = timeline.final_bytes;
  row.reserved = timeline.reserved_peak;
  row.reserved_final = timeline.reserved_final;
  row.allocated = timeline.allocated_peak;
  if (frame.cache_limit) row.cache = limit_cache(projection.plan, timeline, *frame.cache_limit);
  row.verdict = check_budget(projection, frame.budget);
  if (row.verdict.block) row.first_over = labels.of(plan, *row.verdict.block);
  if (frame.max_peak && row.leading.bytes > *frame.max_peak)
    row.over_max_peak = row.leading.bytes - *frame.max_peak;
  if (frame.curve)
    row.curve = row_curve(projection, frame.memory, *frame.curve, row.leading.step,
                          [&](BlockId id) { return labels.of(plan, id); });
  return row;
}

Row refused_row(const Method& method, std::string order, const Error& refusal) {
  Row row;
  row.method = &method;
  row.order = std::move(order);
  row.refusal = refusal;
  return row;
}

}  // namespace loadline::cli
