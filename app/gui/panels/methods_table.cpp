// The table of the comparison: figures with bars behind them, verdicts with what is first over.
#include "app/gui/panels/methods.h"
#include "app/gui/parts/timeline_plot.h"
#include "app/gui/parts/widgets.h"
#include "app/report/manual.h"
#include "app/report/row_text.h"
#include "core/base/text.h"
#include "core/load/measure/evidence.h"

#include <algorithm>
#include <array>
#include <string_view>

#include <fmt/core.h>

namespace loadline::gui {
namespace {

// As they stand side by side.
constexpr std::array<load::RowSort, 12> kColumns = {
    load::RowSort::method, load::RowSort::order,   load::RowSort::held,       load::RowSort::device,
    load::RowSort::host,   load::RowSort::staging, load::RowSort::page_cache, load::RowSort::unified,
    load::RowSort::jumps,  load::RowSort::time,    load::RowSort::context,    load::RowSort::verdict};

constexpr std::string_view kPeakLaw = "Peak law";

struct Figure {
  load::RowSort column = load::RowSort::device;
  const char* title = "";
  float least = 0;  // of the table's width, below which the column is left out unless it sorts
  std::optional<plan::Space> space = std::nullopt;
};
constexpr std::array<Figure, 6> kFigures = {
    {{load::RowSort::held, "Unified peak", 0},
     {load::RowSort::device, "Device", 0, plan::Space::device},
     {load::RowSort::host, "Host", 430, plan::Space::host},
     {load::RowSort::staging, "Staging", 760, plan::Space::staging},
     {load::RowSort::page_cache, "Page cache", 620, plan::Space::page_cache},
     {load::RowSort::unified, "Unified with page cache", 900}}};

const load::RowPeak& peak_of(const load::LoadRow& row, const Figure& figure) {
  if (figure.space) return row.peaks[plan::index(*figure.space)];
  return figure.column == load::RowSort::unified ? row.unified_peak : row.deciding_peak;
}

// The bytes at the right, over a bar that ends where the greatest of the table would fill the cell.
void figure_cell(const Ui& ui, const load::LoadRow& row, const Figure& figure, double most) {
  if (!ImGui::TableNextColumn()) return;
  const load::RowPeak& peak = peak_of(row, figure);
  if (row.refusal) return;
  if (peak.bytes == 0) return right_aligned("\xE2\x80\x93", ui.theme->muted);
  const ImVec2 at = ImGui::GetCursorScreenPos();
  const float width = ImGui::GetContentRegionAvail().x;
  const float line = ImGui::GetTextLineHeight();
  const auto share = static_cast<float>(std::min(static_cast<double>(peak.bytes) / most, 1.0));
  const float filled = std::max(ui.px(2), width * share);
  ImGui::GetWindowDrawList()->AddRectFilled(
      {at.x, at.y + line}, {at.x + filled, at.y + line + ui.px(2.5f)},
      figure.space ? ui.theme->spaces[plan::index(*figure.space)] : ui.theme->neutral, ui.px(1));
  right_aligned(format_bytes(peak.bytes), ui.theme->text);
}

void draw_headers(const Ui& ui) {
  ImGui::TableNextRow(ImGuiTableRowFlags_Headers);
  for (int i = 0; i < ImGui::TableGetColumnCount(); ++i) {
    if (!ImGui::TableSetColumnIndex(i)) continue;
    const std::string_view name = ImGui::TableGetColumnName(i);
    const std::string_view title = name.substr(0, name.find("###"));
    const load::RowSort column = kColumns[static_cast<std::size_t>(i)];
    const bool words =
        column == load::RowSort::method || column == load::RowSort::order || column == load::RowSort::verdict;
    const IdScope scope(i);
    column_title(ui, title, !words);
    if (title == kPeakLaw) tooltip(ui, "The peak as a formula: point at a row to see what its words mean");
  }
}

bool has_refusal(const std::vector<load::LoadRow>& rows) {
  return std::ranges::any_of(rows, [](const load::LoadRow& row) { return row.refusal.has_value(); });
}

// "13.92 GiB over: ...down_proj.weight": in the room there is the end of a name says most. The rest is
// in the row's card.
std::string short_verdict(const Ui& ui, const load::LoadRow& row, const load::Budget& budget, float room) {
  const load::BudgetVerdict& verdict = row.verdict;
  const bool one = budget.device.has_value() != budget.host.has_value();  // else it must be said which
  std::string words;
  const auto add = [&](bool fits, std::string_view what, std::uint64_t over) {
    if (!fits) words += fmt::format("{}{} {} over", words.empty() ? "" : ", ", what, format_bytes(over));
  };
  add(verdict.device_fits, one ? "" : "device", verdict.device_over);
  add(verdict.host_fits, one ? "" : "host", verdict.host_over);
  add(verdict.unified_fits, "", verdict.unified_over);
  add(verdict.committed_over == 0, "commit charge", verdict.committed_over);
  if (!verdict.committed_known) words += fmt::format("{}charge not known", words.empty() ? "" : ", ");
  if (words.starts_with(' ')) words.erase(0, 1);
  constexpr std::string_view kFirst = ": ";
  const float left = room - text_width(words) - text_width(kFirst);
  // of less than a few letters nobody learns anything
  if (constexpr float kLeast = 60; left > ui.px(kLeast))
    words += std::string(kFirst) + elided_front(shown(row.first_over), left);
  return elided(words, room);
}

void verdict_cell(const Document& document, const Ui& ui, const load::LoadRow& row) {
  if (!ImGui::TableNextColumn()) return;
  const float room = ImGui::GetContentRegionAvail().x;
  if (row.refusal) return muted(ui, elided("not possible", room));
  if (!document.load.comparison.value()->answer.bound->judged())
    return has_refusal(document.load.comparison.value()->answer.rows)
               ? muted(ui, "possible")
               : name_text(ui, load::law_text(*row.method), 0, ui.theme->muted);
  if (row.is_within())
    return row.incomplete  ? text_colored(ui.theme->warning, "incomplete")
           : row.estimated ? text_colored(ui.theme->warning, "estimated")
                           : text_colored(ui.theme->good, "fits");
  if (row.verdict.at_risk > 0 && row.verdict.at_risk == row.most_over())
    return text_colored(ui.theme->bad, "at risk");
  text_colored(ui.theme->bad,
               short_verdict(ui, row, document.load.comparison.value()->answer.bound->memory.budget, room));
}

bool is_asked(const load::LoadRow& row, const Asked& asked) {
  return row.method == &shown_method(asked) && row.order == shown_order(asked);
}

// Of the method in use a bar and words stand at its name.
void draw_name(const Ui& ui, const load::LoadRow& row, bool chosen) {
  const float room = ImGui::GetContentRegionAvail().x;
  const ImVec2 at = ImGui::GetCursorScreenPos();
  constexpr std::string_view kInUse = "in use";
  const ImU32 color = row.refusal && !chosen ? ui.theme->muted : ui.theme->text;
  if (chosen) {
    const float pad = ImGui::GetStyle().CellPadding.y, left = at.x - ui.px(7);
    ImGui::GetWindowDrawList()->AddRectFilled(
        {left, at.y - pad}, {left + ui.px(3), at.y + ImGui::GetTextLineHeight() + pad + ui.px(2.5f)},
        ui.theme->accent);
  }
  const std::string name = elided(row.method->id, room);
  if (chosen && text_width(name) + text_width(kInUse) + ui.px(10) <= room)
    put_text_before(at.x + room, at.y, ui.theme->accent, kInUse);
  text_colored(color, name);
}

float row_height(const Ui& ui) { return ImGui::GetTextLineHeight() + ui.px(2.5f); }

void draw_row(Workspace& workspace, const Ui& ui, const load::LoadRow& row, std::size_t at, double most) {
  Document& document = workspace.document();
  const IdScope scope(at);
  const bool chosen = is_asked(row, document.load.asked());
  if (table_row(chosen, row_height(ui))) choose_row(workspace, row);
  if (is_right_clicked()) document.select_for_menu(LoadOf{std::string(row.method->id), row.order});
  if (ImGui::IsItemHovered() && ImGui::IsMouseDoubleClicked(ImGuiMouseButton_Left))
    workspace.settings.panel = "load";
  row_card(document, ui, row);
  draw_name(ui, row, chosen);
  if (ImGui::TableNextColumn()) name_text(ui, row.order, 0, chosen ? ui.theme->text : ui.theme->muted);
  for (const Figure& figure : kFigures) figure_cell(ui, row, figure, most);
  if (ImGui::TableNextColumn() && !row.refusal)
    right_aligned(format_grouped(row.reads.jumps), chosen ? ui.theme->text : ui.theme->muted);
  if (ImGui::TableNextColumn() && !row.refusal)
    right_aligned(format_seconds(row.seconds), chosen ? ui.theme->text : ui.theme->muted);
  if (ImGui::TableNextColumn() && row.context_max)
    right_aligned(format_grouped(*row.context_max), chosen ? ui.theme->text : ui.theme->muted);
  verdict_cell(document, ui, row);
}

}  // namespace

std::string leading_figure(const load::LoadRow& row) {
  const bool at_risk = row.verdict.at_risk > 0 && row.verdict.at_risk == row.most_over();
  return format_bytes(row.deciding_peak.bytes) + (row.is_within() ? "" : at_risk ? ", at risk" : ", no fit");
}

void choose_row(Workspace& workspace, const load::LoadRow& row) {
  Document& document = workspace.document();
  Asked asked = document.load.asked();
  asked.request.methods = {std::string(row.method->id)};
  asked.request.orders = {row.order};
  workspace.attempt([&] { document.load.ask(asked); });
  document.select(LoadOf{std::string(row.method->id), row.order});
}

void row_card(const Document& document, const Ui& ui, const load::LoadRow& row) {
  hover_card(ui, [&] {
    heading(ui, row.method->id);
    text(row.method->summary);
    text_colored(ui.theme->accent, "peak law: " + load::law_text(*row.method));
    paragraph(ui, report::law_legend({row.method}), ui.theme->muted);
    paragraph(ui, load::evidence_text(row.method->id), ui.theme->muted);
    if (row.refusal) return text_colored(ui.theme->bad, "Not possible: " + shown(row.refusal->what()));
    const auto peak = [&](std::string_view what, const load::RowPeak& at) {
      if (at.bytes == 0) return;
      const std::string name = elided_name(shown(at.tensor), ui.px(300));
      muted(ui, fmt::format("{}: {} bytes, reached at {}", what, format_grouped(at.bytes), name));
    };
    for (const plan::Space space : plan::kSpaceOrder)
      peak(capitalized(plan::space_title(space)), row.peaks[plan::index(space)]);
    if (document.load.comparison.value()->answer.bound->memory.kind == plan::MemoryKind::unified)
      peak("Unified peak", row.deciding_peak);
    if (row.host_range && row.host_range->fixed > 0) paragraph(ui, report::heap_text(row), ui.theme->muted);
    if (row.reserved)
      muted(ui, fmt::format("The allocator reserves {} on the device, {} on the host",
                            format_bytes((*row.reserved)[plan::index(plan::Space::device)]),
                            format_bytes((*row.reserved)[plan::index(plan::Space::host)])));
    const load::BoundRequest& bound = *document.load.comparison.value()->answer.bound;
    if (!bound.judged()) return;
    text_colored(row.fits() ? ui.theme->good : ui.theme->bad, report::verdict_text(row, bound));
    if (row.context_max)
      muted(ui, fmt::format("Largest context: {}{}", counted(*row.context_max, "token"),
                            document.load.comparison.value()->answer.context->cache_only
                                ? ", an upper bound from an estimate of the cache"
                                : ""));
    if (row.reserved) muted(ui, "Budgets are checked against the memory that the allocator reserves.");
  });
}

void MethodsTable::refresh(const Workspace& workspace) {
  const Document& document = workspace.document();
  const auto& rows = document.load.comparison.value()->answer.rows;
  const bool fits_only =
      workspace.settings.fits_only && document.load.comparison.value()->answer.bound->judged();
  if (seen_ == document.load.comparison.value() && sorted_ == workspace.settings.compare_sort &&
      fits_only_ == fits_only && compared_ == document.compared)
    return;
  compared_ = document.compared;
  fits_only_ = fits_only;
  seen_ = document.load.comparison.value();
  sorted_ = workspace.settings.compare_sort;
  at_ = load::sorted_rows(rows, *seen_->answer.bound, sorted_.by, sorted_.ascending);
  std::erase_if(at_, [&](std::size_t i) { return !document.compares(rows[i].method->id); });
  if (fits_only) std::erase_if(at_, [&](std::size_t i) { return !rows[i].fits(); });
  most_ = 1;
  for (const load::LoadRow& row : rows)
    for (const Figure& figure : kFigures)
      if (figure.column != load::RowSort::unified)
        most_ = std::max(most_, static_cast<double>(peak_of(row, figure).bytes));
}

// 0 is an order that no arrow stands for: what fits first, or the order of the table itself.
ImGuiID sort_id(load::RowSort sort) {
  return sort == load::RowSort::table || sort == load::RowSort::fit ? 0 : static_cast<ImGuiID>(sort) + 1;
}

void MethodsTable::agree_on_sort(CompareSort& sort) {
  std::optional<std::size_t> at;
  if (const auto found = std::ranges::find(kColumns, sort.by); found != kColumns.end())
    at = static_cast<std::size_t>(found - kColumns.begin());
  if (const auto arrow = arrows_.agree({sort_id(sort.by), sort.ascending}, at))
    sort = {arrow->column == 0 ? load::RowSort::fit : static_cast<load::RowSort>(arrow->column - 1),
            arrow->ascending};
}

void MethodsTable::move_choice(Workspace& workspace, const Ui& ui) {
  const auto& rows = workspace.document().load.comparison.value()->answer.rows;
  const Asked& asked = workspace.document().load.asked();
  const auto chosen = std::ranges::find_if(at_, [&](std::size_t i) { return is_asked(rows[i], asked); });
  std::optional<std::size_t> at;
  if (chosen != at_.end()) at = static_cast<std::size_t>(chosen - at_.begin());
  if (const auto now = row_by_keys(ui, at, at_.size())) {
    choose_row(workspace, rows[at_[*now]]);
    scroll_ = 3;  // frames: the lines above follow the choice, and move the table
  }
  if (scroll_ > 0 && at) {
    --scroll_;
    scroll_to_row(*at, row_height(ui));
  }
  if (at && row_is_entered()) workspace.settings.panel = "load";
}

void MethodsTable::draw(Workspace& workspace, const Ui& ui, ImVec2 size) {
  Document& document = workspace.document();
  constexpr ImGuiTableFlags kFlags = kListTable | ImGuiTableFlags_Sortable | ImGuiTableFlags_SortTristate;
  const FontScope font(ui.fonts.small);
  if (!ImGui::BeginTable("comparison", static_cast<int>(kColumns.size()), kFlags, size)) return;
  const load::BoundRequest& bound = *document.load.comparison.value()->answer.bound;
  const bool unified = bound.memory.kind == plan::MemoryKind::unified;
  const auto& context = document.load.comparison.value()->answer.context;
  const bool contexts = context && context->missing.empty();
  const float width = size.x - (contexts ? ui.px(80) : 0);  // for the columns that there is room for
  float fixed = 0;                                          // the width of the columns that do not stretch
  // in the order of kColumns
  const auto column = [&](const char* title, float room, load::RowSort sort, bool there,
                          bool stretch = false) {
    ImGuiTableColumnFlags flags =
        stretch ? ImGuiTableColumnFlags_WidthStretch : ImGuiTableColumnFlags_WidthFixed;
    if (!there && workspace.settings.compare_sort.by != sort) flags |= ImGuiTableColumnFlags_Disabled;
    ImGui::TableSetupColumn(title, flags, stretch ? room : ui.px(room), sort_id(sort));
    if (!stretch && (flags & ImGuiTableColumnFlags_Disabled) == 0)
      fixed += ui.px(room) + 2 * ImGui::GetStyle().CellPadding.x;
  };
  column("Method", 150, load::RowSort::method, true);
  column("Order", 70, load::RowSort::order, document.load.asked().every_order);
  for (const Figure& figure : kFigures) {
    const bool meant =
        figure.column == load::RowSort::held ? unified : figure.column != load::RowSort::unified || !unified;
    column(figure.title, figure.column == load::RowSort::unified ? 150 : 74, figure.column,
           meant && width >= ui.px(figure.least));
  }
  column("Jumps", 48, load::RowSort::jumps, width >= ui.px(880));
  column("Time", 62, load::RowSort::time, width >= ui.px(560));
  column("Context", 64, load::RowSort::context, contexts);
  const bool verdicts = bound.judged() || has_refusal(document.load.comparison.value()->answer.rows);
  constexpr float kLawRoom = 260;  // the law of the chosen method also stands below the table
  column(verdicts ? "Verdict###verdict" : fmt::format("{}###verdict", kPeakLaw).c_str(), 1,
         load::RowSort::verdict, verdicts || width - fixed >= ui.px(kLawRoom), true);
  // the chosen row stands above the others, which scroll
  const auto& rows = document.load.comparison.value()->answer.rows;
  const auto used = std::ranges::find_if(
      rows, [&](const load::LoadRow& row) { return is_asked(row, document.load.asked()); });
  ImGui::TableSetupScrollFreeze(1, used == rows.end() ? 1 : 2);
  draw_headers(ui);
  agree_on_sort(workspace.settings.compare_sort);
  refresh(workspace);
  if (used != rows.end()) draw_row(workspace, ui, *used, rows.size(), most_);
  move_choice(workspace, ui);
  if (at_.empty()) {
    ImGui::TableNextRow();
    ImGui::TableNextColumn();
    muted(ui, "Nothing fits");
  }
  for_rows_in_sight(at_.size(), [&](std::size_t i) {
    draw_row(workspace, ui, document.load.comparison.value()->answer.rows[at_[i]], at_[i], most_);
  });
  ImGui::EndTable();
}

}  // namespace loadline::gui
