// The table of the comparison: figures with bars behind them, verdicts with what is first over.
#include "app/gui/panels/methods_parts.h"
#include "app/gui/panels/timeline_data.h"
#include "app/gui/widgets.h"
#include "app/report/verdict.h"
#include "core/base/text.h"

#include <algorithm>
#include <array>
#include <string_view>

#include <fmt/format.h>
#include <imgui_internal.h>

namespace loadline::gui {
namespace {

// As they stand side by side.
constexpr std::array<RowSort, 11> kColumns = {
    RowSort::method,  RowSort::order,   RowSort::held,  RowSort::device, RowSort::host,   RowSort::page_cache,
    RowSort::staging, RowSort::unified, RowSort::jumps, RowSort::time,   RowSort::verdict};

struct Figure {
  RowSort column = RowSort::device;
  const char* title = "";
  float least = 0;  // of the table's width, below which the column is left out unless it sorts
};
constexpr std::array<Figure, 6> kFigures = {{{RowSort::held, "Must hold", 0},
                                             {RowSort::device, "Device", 0},
                                             {RowSort::host, "Host", 0},
                                             {RowSort::page_cache, "Page cache", 0},
                                             {RowSort::staging, "Staging", 600},
                                             {RowSort::unified, "Unified", 800}}};

const RowPeak& peak_of(const LoadRow& row, RowSort column) {
  switch (column) {
    case RowSort::device:
      return row.peaks[index(Space::device)];
    case RowSort::host:
      return row.peaks[index(Space::host)];
    case RowSort::page_cache:
      return row.peaks[index(Space::page_cache)];
    case RowSort::staging:
      return row.peaks[index(Space::staging)];
    case RowSort::unified:
      return row.unified;
    default:
      return row.leading;
  }
}

ImU32 colour_of(const Ui& ui, RowSort column) {
  switch (column) {
    case RowSort::device:
      return ui.theme->spaces[index(Space::device)];
    case RowSort::host:
      return ui.theme->spaces[index(Space::host)];
    case RowSort::page_cache:
      return ui.theme->spaces[index(Space::page_cache)];
    case RowSort::staging:
      return ui.theme->spaces[index(Space::staging)];
    default:
      return ui.theme->neutral;
  }
}

// The bytes at the right, over a bar that ends where the greatest of the table would fill the cell.
void figure_cell(const Ui& ui, const LoadRow& row, RowSort column, double most) {
  if (!ImGui::TableNextColumn()) return;
  const RowPeak& peak = peak_of(row, column);
  if (row.refusal) return;
  if (peak.bytes == 0) return right_aligned("\xE2\x80\x93", ui.theme->muted);
  const ImVec2 at = ImGui::GetCursorScreenPos();
  const float width = ImGui::GetContentRegionAvail().x;
  const float line = ImGui::GetTextLineHeight();
  const auto share = static_cast<float>(std::min(static_cast<double>(peak.bytes) / most, 1.0));
  const float filled = std::max(ui.px(2), width * share);
  ImGui::GetWindowDrawList()->AddRectFilled({at.x, at.y + line}, {at.x + filled, at.y + line + ui.px(2.5f)},
                                            colour_of(ui, column), ui.px(1));
  right_aligned(format_bytes(peak.bytes), ui.theme->text);
}

// Titles of figures stand at the right, as the figures do: ImGui would keep room for an arrow behind each.
void draw_headers(const Ui& ui, const CompareSort& sort) {
  ImGui::TableNextRow(ImGuiTableRowFlags_Headers);
  for (int i = 0; i < ImGui::TableGetColumnCount(); ++i) {
    if (!ImGui::TableSetColumnIndex(i)) continue;
    const std::string_view name = ImGui::TableGetColumnName(i);
    const std::string_view title = name.substr(0, name.find("###"));
    const RowSort column = kColumns[static_cast<std::size_t>(i)];
    const bool words = column == RowSort::method || column == RowSort::order || column == RowSort::verdict;
    const float arrow = sort.by == column ? ui.px(14) : 0;
    const ImVec2 at = ImGui::GetCursorScreenPos();
    const float slack = ImGui::GetContentRegionAvail().x - text_width(title) - arrow;
    ImGui::PushID(i);
    ImGui::TableHeader("##title");
    ImGui::PopID();
    const ImVec2 pen = {words ? at.x : at.x + slack, at.y};
    ImGui::GetWindowDrawList()->AddText(pen, sort.by == column ? ui.theme->text : ui.theme->muted,
                                        title.data(), title.data() + title.size());
  }
}

bool has_refusal(const std::vector<LoadRow>& rows) {
  return std::any_of(rows.begin(), rows.end(), [](const LoadRow& row) { return row.refusal.has_value(); });
}

// "13.92 GiB over: ...down_proj.weight": in the room there is the end of a name says most. The rest is
// in the row's card.
std::string short_verdict(const Ui& ui, const LoadRow& row, const Budget& budget, float room) {
  const BudgetVerdict& verdict = row.verdict;
  const bool one = budget.device.has_value() != budget.host.has_value();  // else it must be said which
  std::string words;
  const auto add = [&](bool fits, std::string_view what, std::uint64_t over) {
    if (!fits) words += fmt::format("{}{} {} over", words.empty() ? "" : ", ", what, format_bytes(over));
  };
  add(verdict.device_fits, one ? "" : "device", verdict.device_over);
  add(verdict.host_fits, one ? "" : "host", verdict.host_over);
  add(verdict.unified_fits, "", verdict.unified_over);
  if (words.starts_with(' ')) words.erase(0, 1);
  constexpr std::string_view kFirst = ": ";
  const float left = room - text_width(words) - text_width(kFirst);
  // of less than a few letters nobody learns anything
  if (constexpr float kLeast = 60; left > ui.px(kLeast))
    words += std::string(kFirst) + elided_front(shown(row.first_over), left);
  return elided(words, room);
}

void verdict_cell(const Document& document, const Ui& ui, const LoadRow& row) {
  if (!ImGui::TableNextColumn()) return;
  const float room = ImGui::GetContentRegionAvail().x;
  if (row.refusal) return text_colored(ui.theme->muted, elided("cannot be done", room));
  if (!document.comparison.value()->answer.bound->judged())
    return has_refusal(document.comparison.value()->answer.rows)
               ? text_colored(ui.theme->muted, "possible")
               : name_text(ui, row.method->peak_law, 0, ui.theme->muted);
  if (row.fits()) return text_colored(ui.theme->good, "fits");
  text_colored(ui.theme->bad,
               short_verdict(ui, row, document.comparison.value()->answer.bound->budget, room));
}

void draw_row(Workspace& workspace, const Ui& ui, const LoadRow& row, std::size_t at, double most) {
  Document& document = workspace.document();
  ImGui::PushID(static_cast<int>(at));
  ImGui::TableNextRow();
  ImGui::TableNextColumn();
  const bool chosen =
      &shown_method(document.asked()) == row.method && shown_order(document.asked()) == row.order;
  const ImVec2 start = ImGui::GetCursorPos();
  const float height = ImGui::GetTextLineHeight() + ui.px(2.5f);
  if (ImGui::Selectable("##row", chosen, ImGuiSelectableFlags_SpanAllColumns, {0, height}))
    choose_row(workspace, row);
  if (ImGui::IsItemHovered() && ImGui::IsMouseDoubleClicked(ImGuiMouseButton_Left))
    workspace.settings.panel = "timeline";
  row_card(document, ui, row);
  ImGui::SetCursorPos(start);
  {
    text_colored(row.refusal && !chosen ? ui.theme->muted : ui.theme->text,
                 elided(row.method->id, ImGui::GetContentRegionAvail().x));
  }
  if (ImGui::TableNextColumn()) name_text(ui, row.order, 0, chosen ? ui.theme->text : ui.theme->muted);
  for (const Figure& figure : kFigures) figure_cell(ui, row, figure.column, most);
  if (ImGui::TableNextColumn() && !row.refusal)
    right_aligned(format_grouped(row.reads.jumps), chosen ? ui.theme->text : ui.theme->muted);
  if (ImGui::TableNextColumn() && !row.refusal)
    right_aligned(format_seconds(row.seconds), chosen ? ui.theme->text : ui.theme->muted);
  verdict_cell(document, ui, row);
  ImGui::PopID();
}

}  // namespace

void choose_row(Workspace& workspace, const LoadRow& row) {
  Document& document = workspace.document();
  Asked asked = document.asked();
  asked.request.methods = {std::string(row.method->id)};
  asked.request.orders = {row.order};
  workspace.attempt([&] { document.ask(asked); });
}

void row_card(const Document& document, const Ui& ui, const LoadRow& row) {
  hover_card(ui, [&] {
    heading(ui, row.method->id);
    text(row.method->summary);
    text_colored(ui.theme->accent, row.method->peak_law);
    if (row.refusal) {
      text_colored(ui.theme->bad, "Cannot be done: " + shown(row.refusal->what()));
      return;
    }
    const auto peak = [&](std::string_view what, const RowPeak& at) {
      if (at.bytes == 0) return;
      const std::string name = elided(shown(at.tensor), ui.px(300));
      text_colored(ui.theme->muted,
                   fmt::format("{}: {} bytes, first with {}", what, format_grouped(at.bytes), name));
    };
    for (const Space space : kStackOrder) peak(space_title(space), row.peaks[index(space)]);
    if (document.comparison.value()->answer.bound->memory == MemoryKind::unified)
      peak("One memory must hold", row.leading);
    if (row.reserved)
      text_colored(ui.theme->muted, fmt::format("The allocator takes {} on the device, {} on the host",
                                                format_bytes((*row.reserved)[index(Space::device)]),
                                                format_bytes((*row.reserved)[index(Space::host)])));
    const BoundRequest& bound = *document.comparison.value()->answer.bound;
    if (!bound.judged()) return;
    text_colored(row.fits() ? ui.theme->good : ui.theme->bad, report::verdict_text(row, bound));
    if (row.reserved) text_colored(ui.theme->muted, "Budgets are held against what the allocator takes.");
  });
}

void MethodsTable::refresh(const Workspace& workspace) {
  const Document& document = workspace.document();
  const auto& rows = document.comparison.value()->answer.rows;
  if (seen_ == document.comparison.value() && sorted_ == workspace.settings.compare_sort &&
      at_.size() == rows.size())
    return;
  seen_ = document.comparison.value();
  sorted_ = workspace.settings.compare_sort;
  at_ = sorted_rows(rows, *seen_->answer.bound, sorted_.by, sorted_.ascending);
  most_ = 1;
  for (const LoadRow& row : rows)
    for (const Figure& figure : kFigures)
      if (figure.column != RowSort::unified)
        most_ = std::max(most_, static_cast<double>(peak_of(row, figure.column).bytes));
}

// ImGui keeps the arrows of the header, the window's state the order of the rows; either may change it.
void MethodsTable::agree_on_sort(Workspace& workspace) {
  ImGuiTableSortSpecs* specs = ImGui::TableGetSortSpecs();
  if (specs == nullptr) return;
  CompareSort arrow;  // none: as the table is
  if (specs->SpecsCount == 1)
    arrow = {static_cast<RowSort>(specs->Specs[0].ColumnUserID),
             specs->Specs[0].SortDirection != ImGuiSortDirection_Descending};
  specs->SpecsDirty = false;
  if (arrow == workspace.settings.compare_sort) {
    agreed_ = arrow;
  } else if (workspace.settings.compare_sort != agreed_ &&
             workspace.settings.compare_sort.by != RowSort::table) {
    agreed_ = workspace.settings.compare_sort;
    const auto at = std::find(kColumns.begin(), kColumns.end(), agreed_.by);
    if (at == kColumns.end()) return;
    ImGui::TableSetColumnSortDirection(
        static_cast<int>(at - kColumns.begin()),
        agreed_.ascending ? ImGuiSortDirection_Ascending : ImGuiSortDirection_Descending, false);
  } else {
    agreed_ = arrow;
    workspace.settings.compare_sort = arrow;
  }
}

void MethodsTable::draw(Workspace& workspace, const Ui& ui, ImVec2 size) {
  Document& document = workspace.document();
  constexpr ImGuiTableFlags kFlags = ImGuiTableFlags_Sortable | ImGuiTableFlags_SortTristate |
                                     ImGuiTableFlags_RowBg | ImGuiTableFlags_ScrollY |
                                     ImGuiTableFlags_BordersInnerH | ImGuiTableFlags_PadOuterX |
                                     ImGuiTableFlags_NoBordersInBody;
  const FontScope font(ui.fonts.small);
  if (!ImGui::BeginTable("comparison", static_cast<int>(kColumns.size()), kFlags, size)) return;
  const BoundRequest& bound = *document.comparison.value()->answer.bound;
  const bool unified = bound.memory == MemoryKind::unified;
  const float width = size.x;
  // in the order of kColumns
  const auto column = [&](const char* title, float room, RowSort sort, bool there, bool stretch = false) {
    ImGuiTableColumnFlags flags =
        stretch ? ImGuiTableColumnFlags_WidthStretch : ImGuiTableColumnFlags_WidthFixed;
    if (!there && workspace.settings.compare_sort.by != sort) flags |= ImGuiTableColumnFlags_Disabled;
    ImGui::TableSetupColumn(title, flags, stretch ? room : ui.px(room), static_cast<ImGuiID>(sort));
  };
  column("Method", 150, RowSort::method, true);
  column("Order", 70, RowSort::order, document.asked().every_order);
  for (const Figure& figure : kFigures) {
    const bool meant =
        figure.column == RowSort::held ? unified : figure.column != RowSort::unified || !unified;
    column(figure.title, 74, figure.column, meant && width >= ui.px(figure.least));
  }
  column("Jumps", 48, RowSort::jumps, width >= ui.px(880));
  column("Time", 62, RowSort::time, width >= ui.px(560));
  const bool verdicts = bound.judged() || has_refusal(document.comparison.value()->answer.rows);
  column(verdicts ? "Verdict###verdict" : "Peak law###verdict", 1, RowSort::verdict, true, true);
  ImGui::TableSetupScrollFreeze(1, 1);
  draw_headers(ui, workspace.settings.compare_sort);
  agree_on_sort(workspace);
  refresh(workspace);
  ImGuiListClipper clipper;
  clipper.Begin(static_cast<int>(at_.size()));
  while (clipper.Step())
    for (int i = clipper.DisplayStart; i < clipper.DisplayEnd; ++i) {
      const std::size_t at = at_[static_cast<std::size_t>(i)];
      draw_row(workspace, ui, document.comparison.value()->answer.rows[at], at, most_);
    }
  ImGui::EndTable();
}

}  // namespace loadline::gui
