// The table of spaces, and the comparison of rows in each.
#include "app/report/row_space.h"

#include "core/base/lookup.h"

#include <algorithm>
#include <array>

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

}  // namespace loadline::report
