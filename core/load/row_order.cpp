// In which order a person wants to read rows.
#include "core/base/lookup.h"
#include "core/load/rows.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <tuple>

namespace loadline {
namespace {

constexpr std::array<RowSortName, 13> kSorts = {{{"fit", RowSort::fit},
                                                 {"table", RowSort::table},
                                                 {"method", RowSort::method},
                                                 {"order", RowSort::order},
                                                 {"device", RowSort::device},
                                                 {"host", RowSort::host},
                                                 {"page_cache", RowSort::page_cache},
                                                 {"staging", RowSort::staging},
                                                 {"held", RowSort::held},
                                                 {"unified", RowSort::unified},
                                                 {"jumps", RowSort::jumps},
                                                 {"time", RowSort::time},
                                                 {"verdict", RowSort::verdict}}};

std::uint64_t bytes_of(const LoadRow& row, RowSort sort) {
  switch (sort) {
    case RowSort::device:
      return row.peaks[index(Space::device)].bytes;
    case RowSort::host:
      return row.peaks[index(Space::host)].bytes;
    case RowSort::page_cache:
      return row.peaks[index(Space::page_cache)].bytes;
    case RowSort::staging:
      return row.peaks[index(Space::staging)].bytes;
    case RowSort::held:
      return row.held;
    case RowSort::unified:
      return row.unified.bytes;
    case RowSort::jumps:
      return row.reads.jumps;
    case RowSort::verdict:
      return row.fits() ? 0
                        : std::max({row.verdict.device_over, row.verdict.host_over, row.verdict.unified_over,
                                    row.over_required_peak});
    default:
      return 0;
  }
}

// Of the budgets that there are the largest share that is taken: the space with least room.
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
  switch (sort) {
    case RowSort::fit:
      return fit_key(a, bound) < fit_key(b, bound);
    case RowSort::table:
      return false;
    case RowSort::method:
      return a.method->id < b.method->id;
    case RowSort::order:
      return a.order < b.order;
    case RowSort::time:
      return a.seconds < b.seconds;
    default:
      return bytes_of(a, sort) < bytes_of(b, sort);
  }
}

}  // namespace

std::span<const RowSortName> row_sorts() { return kSorts; }

RowSort find_row_sort(std::string_view id) { return find_row(row_sorts(), id, "order of rows").sort; }

std::string_view row_sort_id(RowSort sort) {
  return std::find_if(kSorts.begin(), kSorts.end(), [&](const RowSortName& row) { return row.sort == sort; })
      ->id;
}

std::vector<std::size_t> sorted_rows(std::span<const LoadRow> rows, const BoundRequest& bound, RowSort sort,
                                     bool ascending) {
  std::vector<std::size_t> at(rows.size());
  std::iota(at.begin(), at.end(), std::size_t{0});
  const bool words = sort == RowSort::method || sort == RowSort::order;
  std::stable_sort(at.begin(), at.end(), [&](std::size_t a, std::size_t b) {
    if (!words && rows[a].refusal.has_value() != rows[b].refusal.has_value())
      return rows[b].refusal.has_value();
    return ascending ? comes_before(rows[a], rows[b], bound, sort)
                     : comes_before(rows[b], rows[a], bound, sort);
  });
  return at;
}

}  // namespace loadline
