// The verdict in a few words.
#include "app/gui/state/summary.h"

#include "app/gui/state/document.h"
#include "app/report/row_text.h"
#include "core/base/text.h"

#include <algorithm>

#include <fmt/core.h>

namespace loadline::gui {

// --- The row of the comparison against its budgets.

namespace {

// The least room that is left below any budget.
std::uint64_t slack(const load::LoadRow& row, const load::Budget& budget) {
  std::uint64_t least = UINT64_MAX;
  const auto hold = [&](std::optional<std::uint64_t> most, std::uint64_t peak) {
    if (most && peak <= *most) least = std::min(least, *most - peak);
  };
  hold(budget.device, row.verdict.device_peak);
  hold(budget.host, row.verdict.host_peak);
  hold(budget.unified, row.verdict.unified_peak);
  return least;
}

}  // namespace

Verdict verdict_of(const Document& document) {
  const load::LoadAnswer* const judged = document.load.judged_load();
  if (judged == nullptr || document.load.judged.busy()) return {};
  const load::LoadRow* const row = &judged->rows.front();
  const load::BoundRequest& bound = *judged->bound;
  if (row->refusal) return {Verdict::State::over, "not possible", safe_display(row->refusal->what(), 200)};
  if (!bound.judged()) return {Verdict::State::unjudged, "no budget", {}};
  if (row->is_within() && row->incomplete)
    return {Verdict::State::incomplete, "incomplete", safe_display(bound.incomplete, 200)};
  if (!row->fits()) {
    const std::uint64_t over = row->most_over();
    return {Verdict::State::over, over > 0 ? format_bytes(over) + " over" : report::over_text(row->verdict),
            safe_display(row->first_over, 200)};
  }
  const std::uint64_t left = slack(*row, bound.memory.budget);
  return {Verdict::State::fits,
          left == UINT64_MAX ? "fits" : fmt::format("fits, {} left", format_bytes(left)),
          {}};
}

}  // namespace loadline::gui
