// From a projection that is alive to the figures of its row.
#include "app/report/plan_rows.h"

#include "core/base/text.h"
#include "core/plan/space_sum.h"

#include <utility>

#include <fmt/format.h>

namespace loadline::report {
namespace {

RowPeak row_peak(const Plan& plan, std::uint64_t bytes, std::size_t step, const Labels& labels) {
  return {bytes, step, bytes == 0 ? "" : labels.at_step(plan, step)};
}

RowPeak judged_peak(const Projection& projection, MemoryKind memory, const Labels& labels) {
  const Timeline& timeline = projection.timeline;
  const unsigned spaces = deciding_spaces(memory);
  std::uint64_t most = 0;
  std::size_t step = 0;
  for (std::size_t i = 0; i < timeline.usage.size(); ++i) {
    const std::uint64_t bytes = sum_over(judged_bytes(timeline, i), spaces);
    if (bytes <= most) continue;
    most = bytes;
    step = timeline.usage[i].step;
  }
  return row_peak(projection.plan, most, step, labels);
}

}  // namespace

PlanRow make_row(const Projection& projection, const RowFrame& frame, const Labels& labels) {
  const Timeline& timeline = projection.timeline;
  const Plan& plan = projection.plan;
  PlanRow row;
  row.method = projection.method;
  row.order = projection.order;
  row.order_proven = projection.order_proven;
  row.reads = projection.reads;
  row.seconds = projection.seconds;
  for (std::size_t i = 0; i < kSpaceCount; ++i)
    row.peaks[i] = row_peak(plan, timeline.peaks[i].bytes, timeline.peaks[i].step, labels);
  const std::vector<ViewPeak> views = view_peaks(timeline, frame.memory, frame.cache_limit);
  for (const ViewPeak& view : views) row.views.push_back(view.bytes);
  // a limit of the page cache holds for every figure that counts it
  const auto view_peak = [&](std::string_view id) {
    const ViewPeak& view = views[view_position(id)];
    return row_peak(plan, view.bytes, view.step, labels);
  };
  row.unified = view_peak("unified");
  row.peaks[index(Space::page_cache)] = view_peak("file_backed");
  const ViewPeak& leading = views[leading_view(frame.memory)];
  row.leading = row_peak(plan, leading.bytes, leading.step, labels);
  row.held = held_peak(timeline);
  row.final_bytes = timeline.final_bytes;
  row.reserved = timeline.reserved_peak;
  row.reserved_final = timeline.reserved_final;
  row.allocated = timeline.allocated_peak;
  if (frame.cache_limit) {
    row.cache = limit_cache(projection.plan, timeline, *frame.cache_limit);
    row.seconds += static_cast<double>(row.cache->reread_bytes) / frame.disk_read;
  }
  row.verdict = check_budget(projection, frame.budget);
  if (row.verdict.block) row.first_over = labels.of(plan, *row.verdict.block);
  row.judged = judged_peak(projection, frame.memory, labels);
  if (frame.max_peak && row.judged.bytes > *frame.max_peak)
    row.over_max_peak = row.judged.bytes - *frame.max_peak;
  if (frame.curve)
    row.curve = row_curve(projection, frame.memory, *frame.curve, row.leading.step,
                          [&](BlockId id) { return labels.of(plan, id); });
  return row;
}

PlanRow refused_row(const Method& method, std::string order, const Error& refusal) {
  PlanRow row;
  row.method = &method;
  row.order = std::move(order);
  row.refusal = refusal;
  return row;
}

std::vector<PlanRow> compare_rows(const MetaGraph& graph, std::span<const Method* const> methods,
                                  std::span<const OrderChoice> orders, const MethodOptions& options,
                                  const ForwardPass* pass, const RowFrame& frame, Progress& progress) {
  const Labels labels(graph);
  const std::string unmapped = mapping_refusal(graph);
  RowFrame rated = frame;
  rated.disk_read = options.costs.disk_read;
  std::vector<PlanRow> rows(methods.size() * orders.size());
  const auto refuse = [&](std::size_t at, const Error& error) {
    rows[at] = refused_row(*methods[at / orders.size()], orders[at % orders.size()].name, error);
  };
  const auto take = [&](std::size_t at, const Projection& projection) {
    if (!unmapped.empty() && maps_files(projection))
      return refuse(at, Error(ErrorCode::unsupported, unmapped));
    rows[at] = make_row(projection, rated, labels);
  };
  compare(graph, methods, orders, options, pass, {take, refuse}, progress);
  return rows;
}

std::string verdict_text(const PlanRow& row, const RowFrame& frame) {
  if (row.refusal) return "cannot be done";
  if (!frame.judged()) return "possible";
  if (row.fits()) return "fits";
  const BudgetVerdict& verdict = row.verdict;
  std::vector<std::string> parts;
  const auto add = [&](bool fits, std::string_view what, std::uint64_t over) {
    if (!fits) parts.push_back(fmt::format("{} {} over", what, format_bytes(over)));
  };
  add(verdict.device_fits, "device", verdict.device_over);
  add(verdict.host_fits, "host", verdict.host_over);
  add(verdict.unified_fits, "memory", verdict.unified_over);
  std::string text = fmt::format("{}", fmt::join(parts, ", "));
  if (verdict.block) text += fmt::format(", first at {}", safe_display(row.first_over, 48));
  if (row.over_max_peak == 0) return text;
  const std::string over = fmt::format("{} over --max-peak", format_bytes(row.over_max_peak));
  return text.empty() ? fmt::format("{} at {}", over, safe_display(row.judged.tensor, 48))
                      : fmt::format("{}; {}", text, over);
}

}  // namespace loadline::report
