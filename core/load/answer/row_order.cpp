// Sorts rows for display.
#include "core/base/lookup.h"
#include "core/load/answer/rows.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <tuple>

namespace loadline {
namespace {

template <Space space>
std::uint64_t peak_in(const LoadRow& row) {
  return row.peaks[index(space)].bytes;
}

constexpr std::array<RowSortName, 14> kSorts = {
    {{"fit", RowSort::fit},
     {"table", RowSort::table},
     {"method", RowSort::method},
     {"order", RowSort::order},
     {"device", RowSort::device, peak_in<Space::device>},
     {"host", RowSort::host, peak_in<Space::host>},
     {"page_cache", RowSort::page_cache, peak_in<Space::page_cache>},
     {"staging", RowSort::staging, peak_in<Space::staging>},
     {"held", RowSort::held, [](const LoadRow& row) { return row.held; }},
     {"unified", RowSort::unified, [](const LoadRow& row) { return row.unified.bytes; }},
     {"jumps", RowSort::jumps, [](const LoadRow& row) -> std::uint64_t { return row.reads.jumps; }},
     {"time", RowSort::time},
     {"context", RowSort::context,
      [](const LoadRow& row) { return UINT64_MAX - row.context_max.value_or(0); }},
     {"verdict", RowSort::verdict, [](const LoadRow& row) { return row.most_over(); }}}};

// The largest share of any budget that is used: that of the space with the least room.
double share_of_budget(const LoadRow& row, const BoundRequest& bound) {
  double most = 0;
  const auto take = [&](std::uint64_t peak, const std::optional<std::uint64_t>& budget) {
    if (budget)
      most = std::max(most, static_cast<double>(peak) / std::max(static_cast<double>(*budget), 1.0));
  };
  take(row.verdict.device_peak, bound.budget.device);
  take(row.verdict.host_peak, bound.budget.host);
  take(row.verdict.unified_peak, bound.budget.unified);
  take(row.judged.bytes, bound.request().require_peak);
  return most;
}

auto fit_key(const LoadRow& row, const BoundRequest& bound) {
  const bool unified = bound.memory == MemoryKind::unified;
  return std::tuple(!row.fits(), bound.judged() ? share_of_budget(row, bound) : 0.0,
                    unified ? row.held : row.peaks[index(Space::device)].bytes,
                    row.peaks[index(Space::host)].bytes + row.peaks[index(Space::staging)].bytes);
}

bool comes_before(const LoadRow& a, const LoadRow& b, const BoundRequest& bound, RowSort sort) {
  if (sort == RowSort::fit) return fit_key(a, bound) < fit_key(b, bound);
  if (sort == RowSort::table) return false;
  if (sort == RowSort::method) return a.method->id < b.method->id;
  if (sort == RowSort::order) return a.order < b.order;
  if (sort == RowSort::time) return a.seconds < b.seconds;
  const auto figure = std::ranges::find(kSorts, sort, &RowSortName::sort)->figure;
  return figure(a) < figure(b);
}

}  // namespace

std::span<const RowSortName> row_sorts() { return kSorts; }

RowSort find_row_sort(std::string_view id) { return find_row(row_sorts(), id, "order of rows").sort; }

std::vector<std::size_t> sorted_rows(std::span<const LoadRow> rows, const BoundRequest& bound, RowSort sort,
                                     bool ascending) {
  std::vector<std::size_t> at(rows.size());
  std::iota(at.begin(), at.end(), std::size_t{0});
  const bool words = sort == RowSort::method || sort == RowSort::order;
  std::ranges::stable_sort(at, [&](std::size_t a, std::size_t b) {
    if (!words && rows[a].refusal.has_value() != rows[b].refusal.has_value())
      return rows[b].refusal.has_value();
    return ascending ? comes_before(rows[a], rows[b], bound, sort)
                     : comes_before(rows[b], rows[a], bound, sort);
  });
  return at;
}

}  // namespace loadline
