// The table of spaces, and the comparison of rows in each.
#include "app/report/row_text.h"

#include "core/base/lookup.h"
#include "core/base/text.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>

namespace loadline::report {
namespace {

constexpr std::array kSpaces = {
    RowSpace{"device", "on the device", [](const LoadRow& row) { return row.peaks[index(Space::device)]; }},
    RowSpace{"host", "on the host", [](const LoadRow& row) { return row.peaks[index(Space::host)]; }},
    RowSpace{"held", "in device, host and staging together",
             [](const LoadRow& row) {
               return RowPeak{row.held, row.unified.step, row.unified.tensor};
             }},
    RowSpace{"page_cache", "in the page cache",
             [](const LoadRow& row) { return row.peaks[index(Space::page_cache)]; }},
    RowSpace{"staging", "in staging memory",
             [](const LoadRow& row) { return row.peaks[index(Space::staging)]; }},
    RowSpace{"resident", "in the process: its own memory and file pages",
             [](const LoadRow& row) {
               return RowPeak{row.views.at(view_position("resident_set")), 0, {}};
             }},
    RowSpace{"unified", "in all memory together", [](const LoadRow& row) { return row.unified; }},
};
constexpr std::size_t kCompared = 3;  // the first ones

}  // namespace

std::span<const RowSpace> row_spaces() { return kSpaces; }
const RowSpace& find_row_space(std::string_view id) { return find_row(row_spaces(), id, "space"); }

const RowSpace& widest_space(std::span<const LoadRow* const> rows) {
  const RowSpace* widest = &kSpaces.front();
  std::uint64_t most = 0;
  for (const RowSpace& space : row_spaces().first(kCompared)) {
    std::uint64_t low = UINT64_MAX, high = 0;
    for (const LoadRow* const row : rows) {
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

std::string difference_text(std::span<const LoadRow* const> rows, MemoryKind memory) {
  const RowSpace& space = widest_space(rows);
  if (space.id == (memory == MemoryKind::unified ? "held" : "device")) return "";
  const LoadRow *least = nullptr, *most = nullptr;
  for (const LoadRow* const row : rows) {
    if (row->refusal) continue;
    const std::uint64_t bytes = space.peak(*row).bytes;
    if (least == nullptr || bytes < space.peak(*least).bytes) least = row;
    if (most == nullptr || bytes > space.peak(*most).bytes) most = row;
  }
  if (least == nullptr || least == most) return "";
  const auto figure = [&](const LoadRow& row) {
    return fmt::format("{} ({})", format_bytes(space.peak(row).bytes), row.method->id);
  };
  return fmt::format("They differ most {}: {} to {}.", space.words, figure(*least), figure(*most));
}

std::string_view law_part(std::string_view law, std::string_view space) {
  std::size_t at = 0, depth = 0;
  for (std::size_t i = 0; i <= law.size(); ++i) {
    if (i < law.size() && law[i] == '(') ++depth;
    if (i < law.size() && law[i] == ')' && depth > 0) --depth;
    if (i < law.size() && (law[i] != ',' || depth > 0)) continue;
    std::string_view part = law.substr(at, i - at);
    while (part.starts_with(' ')) part.remove_prefix(1);
    at = i + 1;
    if (!part.starts_with(space) || part.size() <= space.size() || part[space.size()] != ' ') continue;
    part.remove_prefix(space.size() + 1);
    const std::size_t cases = part.rfind(" (");  // "(cast: c*)", but not "max(W, h)"
    if (cases != std::string_view::npos && part.substr(cases).find(':') != std::string_view::npos)
      part = part.substr(0, cases);
    return part;
  }
  return {};
}

}  // namespace loadline::report
