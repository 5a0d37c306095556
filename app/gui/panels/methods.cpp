// All load methods side by side, as a table or as curves, and what the chosen one is.
#include "app/gui/panels/methods.h"

#include "app/gui/panels/panels.h"
#include "app/gui/parts/plan_controls.h"
#include "app/gui/parts/widgets.h"
#include "app/report/manual.h"
#include "app/report/row_text.h"
#include "core/load/measure/evidence.h"

#include <algorithm>
#include <array>
#include <utility>

#include <fmt/format.h>
#include <imgui_stdlib.h>

namespace loadline::gui {
namespace {

class MethodsPanel final : public Panel {
 public:
  MethodsPanel() : Panel("Every way of loading it will be compared here.") {}

 private:
  void draw_content(Workspace& workspace, const Ui& ui) override;
  void draw_toolbar(Workspace& workspace, const Ui& ui);
  void draw_notes(Workspace& workspace, const Ui& ui);
  void draw_export(Workspace& workspace, const Ui& ui);
  void draw_view(Workspace& workspace, const Ui& ui, ImVec2 size);

  MethodsTable table_;
  OrderEditor editor_;
  OptionControls controls_;
  PlacementControls placement_;
  std::string chart_ = "methods.svg";
  float below_ = 0;  // what the explanation took in the last frame
};

void MethodsPanel::draw_content(Workspace& workspace, const Ui& ui) {
  Document& document = workspace.document();
  document.want_comparison();
  const bool presented = workspace.lesson.presents;  // then nobody sits before the controls
  if (!presented) draw_toolbar(workspace, ui);
  if (document.comparison.value()->answer.rows.empty())
    return empty_state(ui, document.comparison.busy() ? "Projecting every method" : "Nothing to compare",
                       "Each one is planned and run on the modelled machine.");
  if (!presented) draw_notes(workspace, ui);
  const ImVec2 room = ImGui::GetContentRegionAvail();
  // where there is little room the rows go first; the paragraph is in the tooltip of the law then
  const bool roomy = room.y > ui.px(340);
  // beside a lesson there is room for the comparison alone; the lesson explains it
  if (presented || (room.y < ui.px(460) && workspace.lesson.plays())) return draw_view(workspace, ui, room);
  const float below = below_ > 0 ? below_ : ui.px(100);
  draw_view(workspace, ui, {room.x, std::max(ui.px(90), room.y - below - ui.px(8))});
  const float top = ImGui::GetCursorPosY();
  const Method& method = shown_method(document.asked());
  ImGui::AlignTextToFramePadding();
  heading(ui, method.id);
  ImGui::SameLine(0, ui.px(12));
  control_text(elided(fmt::format("peak: {}", method.peak_law), ImGui::GetContentRegionAvail().x),
               ui.theme->accent);
  tooltip(ui, fmt::format("{}\n{}\n\n{}", method.peak_law, report::law_symbols(method.peak_law),
                          report::method_explanation(method.id)));
  const std::string evidence = evidence_brief(method.id);
  continue_line(ui, 14, text_width(evidence));
  control_text(evidence, ui.theme->muted);
  tooltip(ui, evidence_text(method.id));
  const std::string rates = rates_line(workspace.shared.rates);
  const float left =
      ImGui::GetWindowPos().x + ImGui::GetWindowContentRegionMax().x - ImGui::GetItemRectMax().x - ui.px(14);
  const std::string brief = workspace.shared.rates ? "Times by measured rates" : "Times by assumed rates";
  const std::string& words = text_width(rates) <= left ? rates : brief;
  continue_line(ui, 14, text_width(words));
  control_text(words, ui.theme->muted);
  tooltip(ui, rates);
  method_options(document, ui, controls_);
  placement_.draw(document, ui, controls_);
  if (roomy) {
    const FontScope font(ui.fonts.small);
    paragraph(ui, report::method_explanation(method.id), ui.theme->text);
  }
  below_ = ImGui::GetCursorPosY() - top;
}

void MethodsPanel::draw_toolbar(Workspace& workspace, const Ui& ui) {
  Document& document = workspace.document();
  Asked asked = document.asked();
  constexpr std::array<std::string_view, 2> orders = {"This order", "Every order"};
  const bool every = segmented(ui, "orders", orders, asked.every_order ? 1 : 0) == 1;
  tooltip(ui, "Whether the rows are of the chosen order alone, or of each method in each order");
  if (std::exchange(asked.every_order, every) != every) workspace.attempt([&] { document.ask(asked); });
  constexpr std::array<std::string_view, kCompareViewNames.size()> kViews = {"Table", "Curves", "Overlay",
                                                                             "Order"};
  continue_line(ui, 10, segmented_width(ui, kViews));
  workspace.settings.compare_view = static_cast<CompareView>(
      segmented(ui, "view", kViews, static_cast<std::size_t>(workspace.settings.compare_view)));
  const auto& answer = document.comparison.value()->answer;
  if (workspace.settings.compare_view == CompareView::table && answer.bound && answer.bound->judged()) {
    continue_line(ui, 10, text_width("Fits only") + ui.px(30));
    checkbox(ui, "Fits only", &workspace.settings.fits_only);
  }
  if (!document.compared.empty()) {
    continue_line(ui, 10, text_width("Show all") + ui.px(24));
    if (button(ui, "Show all")) document.compared.clear();
    tooltip(ui, "Shows every method beside those of the lesson");
  }
  continue_line(ui, 10, text_width("Save") + ui.px(24));
  draw_export(workspace, ui);
}

// What the comparison shows, in one line; the whole text under the pointer.
void MethodsPanel::draw_notes(Workspace& workspace, const Ui& ui) {
  const Document& document = workspace.document();
  const report::ChartSubject subject = document.comparison.value()->subject(*document.model->graph);
  const std::vector<report::PicturedRow> rows = compared_rows(document, subject);
  std::vector<std::string> notes;
  if (workspace.settings.compare_view == CompareView::table) {  // it has every row, and no curves
    notes.push_back(report::difference_text(report::rows_of(rows), subject.bound.memory));
    std::erase(notes, "");
  } else if (workspace.settings.compare_view != CompareView::order) {
    notes = report::chart_notes(subject, rows);
  }
  if (notes.empty()) return;
  const FontScope font(ui.fonts.small);
  const std::string line = fmt::format("{}", fmt::join(notes, " "));
  const float room = ImGui::GetContentRegionAvail().x;
  muted(ui, text_width(line) <= room ? line : elided(notes.front(), room));
  tooltip(ui, fmt::format("{}", fmt::join(notes, "\n")));
}

void MethodsPanel::draw_export(Workspace& workspace, const Ui& ui) {
  Document& document = workspace.document();
  if (button(ui, "Save", ButtonKind::normal, !document.comparison.value()->answer.rows.empty()))
    ImGui::OpenPopup("save chart");
  tooltip(ui, "As a picture (.svg), as a page with table and explanations (.html), or as a request (.json)");
  const StyleScope style(ImGuiStyleVar_WindowPadding, {ui.px(12), ui.px(10)});
  if (ImGui::BeginPopup("save chart")) {
    muted(ui, "A picture (.svg), a page with all of it (.html), or a request to open again (.json):");
    ImGui::SetNextItemWidth(ui.px(320));
    const bool entered = ImGui::InputText("##chart", &chart_, ImGuiInputTextFlags_EnterReturnsTrue);
    ImGui::SameLine(0, ui.px(6));
    if (button(ui, "Write", ButtonKind::primary, !chart_.empty()) || entered) {
      const bool request = chart_.ends_with(".json");
      workspace.attempt([&] { request ? workspace.save_request(chart_) : document.save_chart(chart_); });
      ImGui::CloseCurrentPopup();
    }
    ImGui::EndPopup();
  }
}

void MethodsPanel::draw_view(Workspace& workspace, const Ui& ui, ImVec2 size) {
  Document& document = workspace.document();
  switch (workspace.settings.compare_view) {
    case CompareView::table:
      return table_.draw(workspace, ui, size);
    case CompareView::curves:
      return draw_methods_curves(workspace, ui, size);
    case CompareView::overlay:
      return draw_methods_overlay(document, ui, size);
    case CompareView::order:
      return editor_.draw(workspace, ui, size);
  }
}

}  // namespace

std::unique_ptr<Panel> make_methods_panel() { return std::make_unique<MethodsPanel>(); }

}  // namespace loadline::gui
