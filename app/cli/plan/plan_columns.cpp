// The table of plan's rows: its columns, their cells, and which are dropped first.
#include "app/cli/base/terminal.h"
#include "app/cli/plan/plan_display.h"
#include "app/report/row_text.h"
#include "core/base/text.h"

#include <algorithm>
#include <functional>
#include <iterator>
#include <vector>

#include <fmt/core.h>

namespace loadline::cli {
namespace {

// If there is too little room, the column with the highest number is dropped first; among equals the
// rightmost.
enum Importance : int { kNeeded, kFigure, kTransient, kBeside, kSum };

struct Column {
  std::string title;
  Align align = kRight;
  Importance importance = kNeeded;
  std::function<std::string(const load::LoadRow&)> cell;
};

std::uint64_t reserved_in(const load::LoadRow& row, plan::Space space) {
  return row.reserved ? (*row.reserved)[plan::index(space)] : 0;
}

class Columns {
 public:
  Columns(const PlanDisplay& view, bool full_verdicts) : view_(view) {
    add_names();
    add_peaks();
    add_orders();
    add_verdicts(full_verdicts);
    add_contexts();
    make_cells();
  }

  std::size_t width() const {
    std::size_t sum = 0;
    for (std::size_t i = 0; i < columns_.size(); ++i) sum += width_of(i) + (i == 0 ? 0 : 2);
    return sum;
  }

  // Drops columns until the table fits or no dispensable column is left.
  void drop_to(std::size_t most) {
    while (width() > most) {
      const auto worst = std::prev(
          std::max_element(columns_.rbegin(), columns_.rend(), [](const Column& a, const Column& b) {
            return a.importance < b.importance;
          }).base());
      if (worst->importance == kNeeded) return;
      cells_.erase(cells_.begin() + (worst - columns_.begin()));
      columns_.erase(worst);
    }
  }

  std::string text(bool color) const {
    std::vector<std::string> header;
    std::vector<Align> alignment;
    for (const Column& column : columns_) {
      header.push_back(column.title);
      alignment.push_back(column.align);
    }
    Table table(header, alignment);
    for (std::size_t i = 0; i < view_.answer().rows.size(); ++i) {
      std::vector<std::string> line;
      for (const auto& column : cells_) line.push_back(column[i]);
      table.row(std::move(line));
    }
    return table.text(color);
  }

 private:
  using Bytes = std::function<std::uint64_t(const load::LoadRow&)>;

  void add(std::string title, Align align, Importance importance,
           std::function<std::string(const load::LoadRow&)> cell) {
    columns_.push_back({std::move(title), align, importance, std::move(cell)});
  }
  void add_bytes(std::string title, Importance importance, Bytes bytes) {
    add(std::move(title), kRight, importance, [bytes = std::move(bytes)](const load::LoadRow& row) {
      return row.refusal ? "-" : bytes_cell(bytes(row));
    });
  }
  void add_peak(std::string title, Importance importance, plan::Space space) {
    add_bytes(std::move(title), importance,
              [space](const load::LoadRow& row) { return row.peaks[plan::index(space)].bytes; });
  }
  void add_reserved(std::string title, plan::Space space) {
    add_bytes(std::move(title), kNeeded,
              [space](const load::LoadRow& row) { return reserved_in(row, space); });
  }

  void add_names() {
    add("method", kLeft, kNeeded, [](const load::LoadRow& row) { return std::string(row.method->id); });
    if (view_.answer().several_orders())
      add("order", kLeft, kNeeded, [](const load::LoadRow& row) { return safe_display(row.order, 40); });
  }

  // The bytes that an allocator reserves are shown beside the requested bytes.
  void add_peaks() {
    const allocators::AllocatorModel allocator = view_.request().allocator;
    const bool arena = allocator == allocators::AllocatorModel::arena,
               torch = allocator == allocators::AllocatorModel::torch;
    const bool malloc = allocator == allocators::AllocatorModel::malloc;
    const bool blocks = allocator == allocators::AllocatorModel::vulkan || arena;
    if (view_.unified())
      add_bytes("unified peak", kNeeded, [](const load::LoadRow& row) { return row.deciding_peak.bytes; });
    add_peak("device", kFigure, plan::Space::device);
    if (torch)
      add_bytes("allocated", kBeside, [](const load::LoadRow& row) { return row.allocated.value_or(0); });
    if (blocks || torch) add_reserved("device reserved", plan::Space::device);
    if (malloc)
      add_peak("host", kFigure, plan::Space::host);
    else
      add("host", kRight, kFigure, [](const load::LoadRow& row) {
        const bool none =
            row.refusal || (row.peaks[plan::index(plan::Space::host)].bytes == 0 && !row.host_range);
        return none ? std::string("-") : report::host_text(row);
      });
    if (arena || malloc) add_reserved("host reserved", plan::Space::host);
    if (malloc)
      add_bytes("at most", kFigure,
                [](const load::LoadRow& row) { return row.host_range ? row.host_range->high : 0; });
    if (malloc)
      add_bytes("reserved at end", kBeside, [](const load::LoadRow& row) {
        return row.reserved_final ? (*row.reserved_final)[plan::index(plan::Space::host)] : 0;
      });
    if (view_.request().commit_limit)
      add_bytes("committed", kFigure, [](const load::LoadRow& row) { return row.committed.value_or(0); });
    add_peak("staging", kTransient, plan::Space::staging);
    if (blocks) add_reserved("staging reserved", plan::Space::staging);
    if (view_.request().page_cache_budget) {
      add_bytes("page cache", kFigure,
                [](const load::LoadRow& row) { return row.cache ? row.cache->peak : 0; });
      add_bytes("reread", kFigure,
                [](const load::LoadRow& row) { return row.cache ? row.cache->reread_bytes : 0; });
    } else {
      add_bytes("page cache", kFigure, [](const load::LoadRow& row) {
        return std::max(row.peaks[plan::index(plan::Space::page_cache)].bytes,
                        row.pages_of_views.value_or(0));
      });
    }
    add_bytes("unified", kSum, [](const load::LoadRow& row) { return row.unified_peak.bytes; });
    add_bytes("read per token", kFigure, [](const load::LoadRow& row) { return row.pass_reads.all(); });
  }

  void add_orders() {
    const bool several = view_.answer().several_orders();
    if (several)
      add("jumps", kRight, kBeside,
          [](const load::LoadRow& row) { return row.refusal ? "-" : format_grouped(row.reads.jumps); });
    if (several || view_.show_times)
      add("time", kRight, view_.show_times ? kNeeded : kBeside,
          [](const load::LoadRow& row) { return row.refusal ? "-" : format_seconds(row.seconds); });
  }

  void add_verdicts(bool full) {
    const std::vector<load::LoadRow>& rows = view_.answer().rows;
    const bool refusals =
        std::ranges::any_of(rows, [](const load::LoadRow& r) { return r.refusal.has_value(); });
    if (!view_.bound().judged() && !refusals) return;
    add("verdict", kLeft, kNeeded, [this, full](const load::LoadRow& row) {
      return full ? report::verdict_text(row, view_.bound()) : short_verdict(row);
    });
  }

  void add_contexts() {
    if (!view_.answer().context) return;
    add("largest context", kRight, kNeeded, [](const load::LoadRow& row) {
      if (!row.context_max) return std::string("-");
      return format_grouped(*row.context_max) + (*row.context_max == load::kMostTokens ? " or more" : "");
    });
  }

  std::string short_verdict(const load::LoadRow& row) const {
    if (row.refusal || row.is_within()) return report::verdict_text(row, view_.bound());
    if (row.verdict.at_risk == row.most_over()) return "at risk";
    return fmt::format("{} over", format_bytes(row.most_over()));
  }

  // A column with dashes only is left out.
  void make_cells() {
    for (std::size_t i = 0; i < columns_.size();) {
      std::vector<std::string> cells;
      for (const load::LoadRow& row : view_.answer().rows) cells.push_back(columns_[i].cell(row));
      const bool dashes = std::ranges::all_of(cells, [](const std::string& c) { return c == "-"; });
      if (dashes) {
        columns_.erase(columns_.begin() + static_cast<std::ptrdiff_t>(i));
        continue;
      }
      cells_.push_back(std::move(cells));
      ++i;
    }
  }

  std::size_t width_of(std::size_t column) const {
    std::size_t width = display_width(columns_[column].title);
    for (const std::string& cell : cells_[column]) width = std::max(width, display_width(cell));
    return width;
  }

  const PlanDisplay& view_;
  std::vector<Column> columns_;
  std::vector<std::vector<std::string>> cells_;  // by column, then by row
};

}  // namespace

std::string rows_table(const PlanDisplay& view, bool color, std::size_t columns) {
  const Columns full(view, true);
  if (full.width() <= columns) return full.text(color);
  Columns brief(view, false);
  brief.drop_to(columns);
  return brief.text(color);
}

}  // namespace loadline::cli
