// Turns a projection into the figures of its row.
#include "core/load/answer/rows.h"
#include "core/plan/space_sum.h"

#include <algorithm>
#include <utility>

namespace loadline {
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

// What is read for each token that the page cache cannot keep from one to the next. The least recently used
// pages go first: of weights that do not all fit, none is still there when its turn comes.
std::uint64_t reread_by_pass(const Projection& projection, const BoundRequest& bound) {
  const PassReads& reads = projection.pass_reads;
  std::uint64_t room = bound.request().page_cache_budget.value_or(UINT64_MAX);
  const auto leave = [&](const std::optional<std::uint64_t>& budget, std::uint64_t held) {
    if (budget) room = std::min(room, *budget - std::min(*budget, held));
  };
  const Timeline& timeline = projection.timeline;
  const PerSpace<std::uint64_t>& final =
      timeline.reserved_final ? *timeline.reserved_final : timeline.final_bytes;
  const std::uint64_t host = final[index(Space::host)] + final[index(Space::staging)];
  leave(bound.budget.host, host);
  leave(bound.budget.unified, host + final[index(Space::device)]);
  return reads.all() > room ? reads.all() : 0;
}

AliveBlocks alive_blocks(const Projection& projection, Space space, const Labels& labels, std::size_t most) {
  const Peak& peak = projection.timeline.peaks[index(space)];
  if (peak.bytes == 0 || most == 0) return {};
  const std::vector<BlockId> alive =
      alive_at(projection.timeline, projection.plan, peak.step, space_bit(space));
  AliveBlocks blocks;
  blocks.count = alive.size();
  for (std::size_t i = 0; i < std::min(most, alive.size()); ++i)
    blocks.largest.push_back({labels.of(projection.plan, alive[i]), projection.plan.block(alive[i]).bytes});
  return blocks;
}

}  // namespace

LoadRow make_row(const Projection& projection, const BoundRequest& bound, const Labels& labels,
                 std::size_t alive) {
  const Timeline& timeline = projection.timeline;
  const Plan& plan = projection.plan;
  const LoadRequest& request = bound.request();
  LoadRow row;
  row.method = projection.method;
  row.order = projection.order;
  row.order_proven = projection.order_proven;
  row.reads = projection.reads;
  row.seconds = projection.seconds;
  for (std::size_t i = 0; i < kSpaceCount; ++i) {
    row.peaks[i] = row_peak(plan, timeline.peaks[i].bytes, timeline.peaks[i].step, labels);
    row.alive[i] = alive_blocks(projection, static_cast<Space>(i), labels, alive);
  }
  const std::vector<ViewPeak> views = view_peaks(timeline, bound.memory, request.page_cache_budget);
  for (const ViewPeak& view : views) row.views.push_back(view.bytes);
  // a page cache budget limits every figure that counts the page cache
  const auto view_peak = [&](std::string_view id) {
    const ViewPeak& view = views[view_position(id)];
    return row_peak(plan, view.bytes, view.step, labels);
  };
  row.unified = view_peak("unified");
  row.peaks[index(Space::page_cache)] = view_peak("file_backed");
  const ViewPeak& leading = views[leading_view(bound.memory)];
  row.leading = row_peak(plan, leading.bytes, leading.step, labels);
  row.held = held_peak(timeline);
  row.final_bytes = timeline.final_bytes;
  row.reserved = timeline.reserved_peak;
  row.reserved_final = timeline.reserved_final;
  row.reserved_high = projection.host_reserved_high;
  row.allocated = timeline.allocated_peak;
  if (request.page_cache_budget) {
    row.cache = limit_cache(projection.plan, timeline, *request.page_cache_budget);
    row.seconds += static_cast<double>(row.cache->reread_bytes) / bound.inputs.costs.disk_read;
  }
  row.verdict = check_budget(projection, bound.budget);
  row.pass_reads = projection.pass_reads;
  row.reread = reread_by_pass(projection, bound);
  row.seconds += static_cast<double>(row.reread) / bound.inputs.costs.disk_read;
  if (row.verdict.block) row.first_over = labels.of(plan, *row.verdict.block);
  row.judged = judged_peak(projection, bound.memory, labels);
  if (request.require_peak && row.judged.bytes > *request.require_peak)
    row.over_required_peak = row.judged.bytes - *request.require_peak;
  else if (request.require_peak && bound.budget.pages_may_stay &&
           row.verdict.unified_high > *request.require_peak)
    row.verdict.at_risk = std::max(row.verdict.at_risk, row.verdict.unified_high - *request.require_peak);
  return row;
}

LoadRow refused_row(const Method& method, std::string order, const Error& refusal) {
  LoadRow row;
  row.method = &method;
  row.order = std::move(order);
  row.refusal = refusal;
  return row;
}

}  // namespace loadline
