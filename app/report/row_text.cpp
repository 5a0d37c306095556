// The table of spaces, and sentences on rows.
#include "app/report/row_text.h"

#include "core/base/option.h"
#include "core/base/text.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace loadline::report {

// --- Words verdicts and the limits behind them.

std::string time_text(const load::AdvisedLoad& load) {
  constexpr double kSame = 1.02;
  std::string text = fmt::format("about {}", format_seconds(load.seconds));
  if (load.seconds_of_all > kSame * load.seconds)
    text += fmt::format("; {} with the {} that are read when they are first used",
                        format_seconds(load.seconds_of_all), format_bytes(load.unread));
  return text;
}

std::string host_text(const load::LoadRow& row) {
  const std::uint64_t requested = row.peaks[plan::index(plan::Space::host)].bytes;
  if (!row.host_range) return format_bytes(requested);
  if (row.host_range->low == row.host_range->high) return format_bytes(row.host_range->high);
  // both in one unit
  constexpr std::array<std::string_view, 6> kUnits = {"B", "KiB", "MiB", "GiB", "TiB", "PiB"};
  auto low = static_cast<double>(row.host_range->low), most = static_cast<double>(row.host_range->high);
  std::size_t unit = 0;
  for (; most >= 1024 && unit + 1 < kUnits.size(); ++unit) low /= 1024, most /= 1024;
  return fmt::format("{:.3g}-{:.3g} {}", low, most, kUnits[unit]);
}

std::string heap_text(const load::LoadRow& row) {
  const plan::HeapRange& range = *row.host_range;
  if (range.fixed == range.high)
    return fmt::format("{} takes {} on the host, most of it for the objects of its tensors.", row.method->id,
                       format_bytes(range.high));
  return fmt::format(
      "{} takes {} on the host: glibc keeps much of what the load frees. With MALLOC_MMAP_THRESHOLD_=131072 "
      "in its environment it takes {}.",
      row.method->id, host_text(row), format_bytes(range.fixed));
}

std::string over_text(const load::BudgetVerdict& verdict) {
  std::vector<std::string> parts;
  const auto add = [&](std::string_view what, std::uint64_t over) {
    if (over > 0) parts.push_back(fmt::format("{} {} over", what, format_bytes(over)));
  };
  add("device", verdict.device_over);
  add("host", verdict.host_over);
  add("memory", verdict.unified_over);
  add("commit charge", verdict.committed_over);
  if (!verdict.committed_known) parts.push_back("its commit charge is not known");
  if (verdict.at_risk > 0)
    parts.push_back(
        fmt::format("at risk: {} to {}", format_bytes(verdict.risk_low), format_bytes(verdict.risk_high)));
  return fmt::format("{}", fmt::join(parts, ", "));
}

std::string verdict_text(const load::LoadRow& row, const load::BoundRequest& bound) {
  if (row.refusal) return "not possible";
  if (!bound.judged()) return "possible";
  if (row.is_within()) return row.incomplete ? "incomplete" : row.estimated ? "fits by estimate" : "fits";
  std::string text = over_text(row.verdict);
  if (row.over_required_peak > 0)
    text += fmt::format("{}{} over the required peak", text.empty() ? "" : ", ",
                        format_bytes(row.over_required_peak));
  if (row.verdict.block) text += fmt::format(", first at {}", safe_display(row.first_over, 48));
  return text;
}

std::string budget_text(const load::BoundRequest& bound) {
  std::string text;
  if (bound.memory.target) {
    const load::Budget own = load::target_budget(*bound.memory.target, bound.memory.kind);
    text = fmt::format("On {}:", safe_display(bound.memory.target->name, 80));
    if (own.unified) text += fmt::format(" {} for everything", format_bytes(*own.unified));
    if (own.unified && own.device) text += ", of which";
    if (own.device)
      text += fmt::format(" {} {}", format_bytes(*own.device),
                          own.unified ? "may be used by the device" : "of device memory");
    if (own.host) text += fmt::format(", {} for the host", format_bytes(*own.host));
  }
  for (const std::string& note : bound.memory.notes) text += (text.empty() ? "" : "; ") + note;
  return text;
}

// --- The table of spaces, and the comparison of rows in each.

namespace {

constexpr std::array kSpaces = {
    RowSpace{"device", "on the device",
             [](const load::LoadRow& row) { return row.peaks[plan::index(plan::Space::device)]; }},
    RowSpace{"host", "on the host",
             [](const load::LoadRow& row) { return row.peaks[plan::index(plan::Space::host)]; }},
    RowSpace{"held", "in device, host and staging together",
             [](const load::LoadRow& row) {
               return load::RowPeak{row.held_peak, row.unified_peak.step, row.unified_peak.tensor};
             }},
    RowSpace{"staging", "in staging memory",
             [](const load::LoadRow& row) { return row.peaks[plan::index(plan::Space::staging)]; }},
    RowSpace{"page_cache", "in the page cache",
             [](const load::LoadRow& row) { return row.peaks[plan::index(plan::Space::page_cache)]; }},
    RowSpace{"resident", "in the process: private memory and file pages",
             [](const load::LoadRow& row) {
               return load::RowPeak{row.views.at(plan::view_position("resident_set")), 0, {}};
             }},
    RowSpace{"unified", "in all memory together", [](const load::LoadRow& row) { return row.unified_peak; }},
};
constexpr std::size_t kCompared = 3;  // the first ones

}  // namespace

std::span<const RowSpace> row_spaces() { return kSpaces; }
const RowSpace& find_row_space(std::string_view id) { return find_row(row_spaces(), id, "space"); }

const RowSpace& widest_space(std::span<const load::LoadRow* const> rows) {
  const RowSpace* widest = &kSpaces.front();
  std::uint64_t most = 0;
  for (const RowSpace& space : row_spaces().first(kCompared)) {
    std::uint64_t low = UINT64_MAX, high = 0;
    for (const load::LoadRow* const row : rows) {
      if (row->refusal) continue;
      low = std::min(low, space.peak(*row).bytes);
      high = std::max(high, space.peak(*row).bytes);
    }
    if (high < low || high - low <= most) continue;
    most = high - low;
    widest = &space;
  }
  return *widest;
}

std::string difference_text(std::span<const load::LoadRow* const> rows, plan::MemoryKind memory) {
  const RowSpace& space = widest_space(rows);
  if (space.id == (memory == plan::MemoryKind::unified ? "held" : "device")) return "";
  const load::LoadRow *least = nullptr, *most = nullptr;
  for (const load::LoadRow* const row : rows) {
    if (row->refusal) continue;
    const std::uint64_t bytes = space.peak(*row).bytes;
    if (least == nullptr || bytes < space.peak(*least).bytes) least = row;
    if (most == nullptr || bytes > space.peak(*most).bytes) most = row;
  }
  if (least == nullptr || least == most) return "";
  const auto figure = [&](const load::LoadRow& row) {
    return fmt::format("{} ({})", format_bytes(space.peak(row).bytes), row.method->id);
  };
  return fmt::format("They differ most {}: {} to {}.", space.words, figure(*least), figure(*most));
}

// --- Groups reasons in the order of their first occurrence.

std::string refusals_text(const std::vector<Refusal>& refusals, std::string_view cannot) {
  std::vector<std::pair<std::string_view, std::vector<std::string_view>>> reasons;
  for (const Refusal& refusal : refusals) {
    auto same =
        std::ranges::find_if(reasons, [&](const auto& reason) { return reason.first == refusal.why; });
    if (same == reasons.end()) same = reasons.insert(same, {refusal.why, {}});
    std::vector<std::string_view>& ids = same->second;
    if (std::ranges::find(ids, refusal.method) == ids.end()) ids.push_back(refusal.method);
  }
  std::string text;
  for (const auto& [why, ids] : reasons)
    text += fmt::format("{} {}: {}.\n", fmt::join(ids, ", "), cannot, why);
  return text;
}

// --- Finds the best order among the rows.

namespace {

std::string seconds_text(double more) {
  return fmt::format("{} {}", format_seconds(std::abs(more)), more < 0 ? "less" : "more");
}

}  // namespace

std::string order_gain_text(std::span<const OrderFigures> rows, std::string_view where) {
  std::unordered_map<std::string_view, const OrderFigures*> file;  // by method
  for (const OrderFigures& row : rows)
    if (row.is_file) file.try_emplace(row.method, &row);
  const OrderFigures *best = nullptr, *before = nullptr;
  std::uint64_t gain = 0;
  std::uint64_t most_jumps = 0;
  bool compared = false;
  for (const OrderFigures& row : rows) {
    const auto found = file.find(row.method);
    if (row.is_file || found == file.end()) continue;
    compared = true;
    most_jumps = std::max(most_jumps, row.jumps);
    const OrderFigures& base = *found->second;
    const std::uint64_t less = base.peak > row.peak ? base.peak - row.peak : 0;
    if (less == 0 || less < gain || (less == gain && row.jumps >= best->jumps)) continue;
    gain = less;
    best = &row;
    before = &base;
  }
  if (!compared) return "";
  if (best == nullptr)
    return fmt::format(
        "No order lowers the peak {} below that of file order{}.", where,
        most_jumps == 0 ? ""
                        : fmt::format("; reads jump up to {} in other orders", counted(most_jumps, "time")));
  return fmt::format(
      "The order with the lowest peak {}: {} for {}, {} instead of {} in file order ({} less), with {} "
      "between reads instead of {} and an estimated {}.",
      where, safe_display(best->order, 40), best->method, format_bytes(best->peak),
      format_bytes(before->peak), format_bytes(gain), counted(best->jumps, "jump"),
      format_grouped(before->jumps), seconds_text(best->seconds - before->seconds));
}

}  // namespace loadline::report
