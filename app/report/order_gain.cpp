// Finds the best order among the rows.
#include "app/report/order_gain.h"

#include "core/base/text.h"

#include <algorithm>
#include <cmath>
#include <unordered_map>

#include <fmt/format.h>

namespace loadline::report {
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
        "No order gains anything {} over file order{}.", where,
        most_jumps == 0 ? "" : fmt::format("; reads jump up to {} in them", counted(most_jumps, "time")));
  return fmt::format(
      "The order that gains most {}: {} for {}, {} instead of {} in file order ({} less), with {} "
      "between reads instead of {} and an estimated {}.",
      where, safe_display(best->order, 40), best->method, format_bytes(best->peak),
      format_bytes(before->peak), format_bytes(gain), counted(best->jumps, "jump"),
      format_grouped(before->jumps), seconds_text(best->seconds - before->seconds));
}

}  // namespace loadline::report
