// Words verdicts and the limits behind them.
#include "app/report/verdict.h"

#include "core/base/text.h"

#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace loadline::report {

std::string over_text(const BudgetVerdict& verdict) {
  std::vector<std::string> parts;
  const auto add = [&](std::string_view what, std::uint64_t over) {
    if (over > 0) parts.push_back(fmt::format("{} {} over", what, format_bytes(over)));
  };
  add("device", verdict.device_over);
  add("host", verdict.host_over);
  add("memory", verdict.unified_over);
  if (verdict.at_risk > 0) {
    const bool unified = verdict.unified_high > verdict.unified_peak;
    parts.push_back(fmt::format("at risk: {} to {}",
                                format_bytes(unified ? verdict.unified_peak : verdict.host_peak),
                                format_bytes(unified ? verdict.unified_high : verdict.host_high)));
  }
  return fmt::format("{}", fmt::join(parts, ", "));
}

std::string verdict_text(const LoadRow& row, const BoundRequest& bound) {
  if (row.refusal) return "cannot be done";
  if (!bound.judged()) return "possible";
  if (row.fits()) return "fits";
  std::string text = over_text(row.verdict);
  if (row.verdict.block) text += fmt::format(", first at {}", safe_display(row.first_over, 48));
  if (row.over_required_peak == 0) return text;
  const std::string over = fmt::format("{} over the required peak", format_bytes(row.over_required_peak));
  return text.empty() ? fmt::format("{} at {}", over, safe_display(row.judged.tensor, 48))
                      : fmt::format("{}; {}", text, over);
}

std::string budget_text(const BoundRequest& bound) {
  std::string text;
  if (bound.target) {
    const Budget own = target_budget(*bound.target, bound.memory);
    text = fmt::format("On {}:", safe_display(bound.target->name, 80));
    if (own.unified) text += fmt::format(" {} for everything", format_bytes(*own.unified));
    if (own.unified && own.device) text += ", of which";
    if (own.device)
      text += fmt::format(" {} {}", format_bytes(*own.device),
                          own.unified ? "may be the device's" : "of the device's own");
    if (own.host) text += fmt::format(", {} for the host", format_bytes(*own.host));
  }
  for (const std::string& note : bound.notes) text += (text.empty() ? "" : "; ") + note;
  return text;
}

}  // namespace loadline::report
