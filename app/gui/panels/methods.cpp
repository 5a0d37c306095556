// Tab Methods: the panel, and the order of a load as a list to rearrange.
#include "app/gui/panels/methods.h"

#include "app/gui/panels/panels.h"
#include "app/gui/parts/option_controls.h"
#include "app/gui/parts/widgets.h"
#include "app/report/manual.h"
#include "app/report/row_text.h"
#include "core/base/text.h"
#include "core/load/measure/evidence.h"

#include <algorithm>
#include <array>
#include <utility>

#include <fmt/format.h>
#include <imgui_stdlib.h>

namespace loadline::gui {

// --- All load methods side by side, as a table or as curves, and what the chosen one is.

namespace {

class MethodsPanel final : public Panel {
 public:
  MethodsPanel() : Panel("Compares every load method.") {}

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
  document.load.want_comparison();
  const bool presented = workspace.lesson.presents;  // then nobody sits before the controls
  if (!presented) draw_toolbar(workspace, ui);
  if (document.load.comparison.value()->answer.rows.empty())
    return empty_state(ui, document.load.comparison.busy() ? "Projecting every method" : "Nothing to compare",
                       "Each method is planned and run on the modeled machine.");
  if (!presented) draw_notes(workspace, ui);
  const ImVec2 room = ImGui::GetContentRegionAvail();
  // where there is little room the rows go first; the paragraph is in the tooltip of the law then
  const bool roomy = room.y > ui.px(340);
  // beside a lesson there is room for the comparison alone; the lesson explains it
  if (presented || (room.y < ui.px(460) && workspace.lesson.plays())) return draw_view(workspace, ui, room);
  const float below = below_ > 0 ? below_ : ui.px(100);
  draw_view(workspace, ui, {room.x, std::max(ui.px(90), room.y - below - ui.px(8))});
  const float top = ImGui::GetCursorPosY();
  const load::Method& method = shown_method(document.load.asked());
  ImGui::AlignTextToFramePadding();
  heading(ui, method.id);
  ImGui::SameLine(0, ui.px(12));
  const std::string law = load::law_text(method);
  control_text(elided("peak law: " + law, ImGui::GetContentRegionAvail().x), ui.theme->accent);
  tooltip(ui, fmt::format("{}\n{}\n\n{}", law, report::law_legend({&method}),
                          report::method_explanation(method.id)));
  const std::string evidence = load::evidence_brief(method.id);
  continue_line(ui, 14, text_width(evidence));
  control_text(evidence, ui.theme->muted);
  tooltip(ui, load::evidence_text(method.id));
  const std::string rates = load::rates_line(workspace.services.rates);
  const float left =
      ImGui::GetWindowPos().x + ImGui::GetWindowContentRegionMax().x - ImGui::GetItemRectMax().x - ui.px(14);
  const std::string brief = workspace.services.rates ? "Times by measured rates" : "Times by assumed rates";
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
  Asked asked = document.load.asked();
  constexpr std::array<std::string_view, 2> orders = {"This order", "Every order"};
  const bool every = segmented(ui, "orders", orders, asked.every_order ? 1 : 0) == 1;
  tooltip(ui, "Show each method in the chosen order, or in every order");
  if (std::exchange(asked.every_order, every) != every) workspace.attempt([&] { document.load.ask(asked); });
  constexpr std::array<std::string_view, kCompareViewNames.size()> kViews = {"Table", "Curves", "Overlay",
                                                                             "Order"};
  continue_line(ui, 10, segmented_width(ui, kViews));
  workspace.settings.compare_view = static_cast<CompareView>(
      segmented(ui, "view", kViews, static_cast<std::size_t>(workspace.settings.compare_view)));
  const auto& answer = document.load.comparison.value()->answer;
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
  const report::ChartSubject subject = document.load.comparison.value()->subject(*document.model->graph);
  const std::vector<report::DrawnRow> rows = compared_rows(document, subject);
  std::vector<std::string> notes;
  if (workspace.settings.compare_view == CompareView::table) {  // it has every row, and no curves
    notes.push_back(report::difference_text(report::rows_of(rows), subject.bound.memory.kind));
    notes.push_back(load::unopened_text(*document.model->graph));
    std::erase(notes, "");
  } else if (workspace.settings.compare_view != CompareView::order) {
    notes = report::chart_notes(subject, rows);
  }
  if (notes.empty()) return;
  const FontScope font(ui.fonts.small);
  const std::string line = fmt::format("{}", fmt::join(notes, " "));
  const float room = ImGui::GetContentRegionAvail().x;
  constexpr float kRoomy = 300;  // a second line is no loss there
  const bool roomy = ImGui::GetContentRegionAvail().y > ui.px(kRoomy);
  if (text_width(line) <= room || roomy)
    paragraph(ui, text_width(line) <= room ? line : notes.front(), ui.theme->muted);
  else
    muted(ui, elided(notes.front(), room));
  tooltip(ui, fmt::format("{}", fmt::join(notes, "\n")));
}

void MethodsPanel::draw_export(Workspace& workspace, const Ui& ui) {
  Document& document = workspace.document();
  if (button(ui, "Save", ButtonKind::normal, !document.load.comparison.value()->answer.rows.empty()))
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
      workspace.attempt([&] { request ? workspace.save_request(chart_) : document.load.save_chart(chart_); });
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

// --- The order of a load as a list: rows to drag, modules to unfold, a file to keep it in.

namespace {

constexpr const char* kPayload = "order item";

std::string item_name(const Model& model, const OrderItem& item) {
  if (!item.tensor) return item.module;
  const auto& owner = model.owners[graph::index(item.storages.front())];
  return owner ? std::string(std::string_view(model.tensor(*owner).name)) : item.module;
}

std::string peak_text(const Document& document) {
  const auto& projection = document.load.projection.value();
  if (!projection || document.load.projection.busy()) return "";
  const plan::MemoryKind memory = document.load.memory().kind;
  const bool unified = memory == plan::MemoryKind::unified;
  const std::uint64_t bytes =
      plan::view_peaks(projection->timeline, memory)[plan::deciding_view(memory)].bytes;
  return fmt::format("{} in this order: {} {}", projection->method->id, format_bytes(bytes),
                     unified ? "unified peak" : "on the device");
}

}  // namespace

void OrderEditor::draw_file(Workspace& workspace, const Ui& ui) {
  Document& document = workspace.document();
  ImGui::SetNextItemWidth(std::min(ui.px(260), ImGui::GetContentRegionAvail().x * 0.4f));
  ImGui::InputTextWithHint("##order file", "order.txt", &path_);
  if (!ImGui::IsItemActive())
    tooltip(ui, "One name of a tensor per line; what is not named follows in the order of the file");
  ImGui::SameLine(0, ui.px(6));
  if (button(ui, "Load", ButtonKind::normal, !path_.empty()))
    workspace.attempt([&] { document.order.read(path_); });
  ImGui::SameLine(0, ui.px(6));
  if (button(ui, "Save", ButtonKind::normal, !path_.empty()))
    workspace.attempt([&] { document.order.save(path_); });
  const std::string peak = peak_text(document);
  if (peak.empty()) return;
  continue_line(ui, 14, text_width(peak));
  control_text(elided(peak, ImGui::GetContentRegionAvail().x), ui.theme->accent);
}

void OrderEditor::draw_item(Document& document, const Ui& ui, std::size_t at) {
  const Model& model = *document.model;
  const OrderItem& item = document.order.list.value()->items()[at];
  const FontScope font(ui.fonts.small);
  const float height = ImGui::GetFontSize() + ui.px(8);
  const ImVec2 pen = ImGui::GetCursorScreenPos();
  const float width = ImGui::GetContentRegionAvail().x;
  const float arrow = ui.px(46);  // the number and the arrow
  const std::string name = item_name(model, item);
  const IdScope scope(at);
  if (press_area(ui, "fold", {arrow, height})) wish_ = Wish::fold, from_ = at;
  tooltip(ui, item.tensor ? "Folds the tensors of this module into one row"
                          : "Unfolds the module to its tensors");
  ImGui::SameLine(0, 0);
  const auto owner = model.owners[graph::index(item.storages.front())];
  const bool selected = item.tensor && document.selected_tensor() == owner;
  if (ImGui::Selectable("##item", selected, 0, {width - arrow, height}) && item.tensor)
    document.select(*owner);
  if (ImGui::BeginDragDropSource(ImGuiDragDropFlags_SourceNoHoldToOpenOthers)) {
    ImGui::SetDragDropPayload(kPayload, &at, sizeof at);
    text(elided_name(shown(name), ui.px(360)));
    ImGui::EndDragDropSource();
  }
  if (ImGui::BeginDragDropTarget()) {
    if (const ImGuiPayload* dropped = ImGui::AcceptDragDropPayload(kPayload)) {
      wish_ = Wish::move;
      from_ = *static_cast<const std::size_t*>(dropped->Data);
      to_ = at;
    }
    ImGui::EndDragDropTarget();
  }
  const float y = pen.y + ui.px(4);
  put_text_before(pen.x + ui.px(30), y, ui.theme->muted, format_grouped(at + 1));
  fold_arrow(ui, {pen.x + ui.px(38), pen.y + height / 2}, item.tensor);
  const std::string figure =
      item.tensor ? format_bytes(item.bytes)
                  : fmt::format("{}, {}", counted(item.storages.size(), "tensor"), format_bytes(item.bytes));
  const float indent = item.tensor ? ui.px(14) : 0;
  put_text({pen.x + arrow + indent + ui.px(4), y}, ui.theme->text,
           elided_name(shown(name), width - arrow - indent - text_width(figure) - ui.px(22)));
  put_text_before(pen.x + width - ui.px(6), y, ui.theme->muted, figure);
}

// A row that is held near the first or the last row in sight brings on those beyond it.
static void scroll_while_dragging(const Ui& ui) {
  const ImGuiPayload* const dragged = ImGui::GetDragDropPayload();
  if (dragged == nullptr || !dragged->IsDataType(kPayload)) return;
  const float edge = ui.px(24), mouse = ImGui::GetIO().MousePos.y;
  const float top = ImGui::GetWindowPos().y, bottom = top + ImGui::GetWindowHeight();
  const float past = mouse < top + edge ? mouse - top - edge : std::max(0.0f, mouse - bottom + edge);
  constexpr float kRowsEachSecond = 12;  // for each `edge` of the way
  if (past != 0)
    ImGui::SetScrollY(ImGui::GetScrollY() + std::clamp(past / edge, -2.0f, 2.0f) * kRowsEachSecond *
                                                ui.px(22) * ImGui::GetIO().DeltaTime);
}

void OrderEditor::draw(Workspace& workspace, const Ui& ui, ImVec2 size) {
  Document& document = workspace.document();
  const ChildScope child("order", size);
  document.order.list_chosen();
  draw_file(workspace, ui);
  const OrderList& list = *document.order.list.value();
  if (list.items().empty())
    return empty_state(ui, document.order.list.busy() ? "Listing the order" : "Nothing to arrange",
                       "Modules in the order in which they are loaded.");
  small_text(ui,
             fmt::format("{}, first to last. Drag a row to where it should be loaded; the arrow unfolds it.",
                         counted(list.items().size(), "row")),
             ui.theme->muted);
  const ChildScope items("items");
  const StyleScope style(ImGuiStyleVar_ItemSpacing, {0, ui.px(1)});
  wish_ = Wish::none;
  scroll_while_dragging(ui);
  for_rows_in_sight(list.items().size(), [&](std::size_t i) { draw_item(document, ui, i); });
  if (wish_ == Wish::none) return;
  OrderList changed = list;
  if (wish_ == Wish::move)
    changed.move(from_, to_);
  else if (changed.items()[from_].tensor)
    changed.fold(from_);
  else
    changed.unfold(*document.model->graph, from_);
  document.order.arrange(std::move(changed));
}

}  // namespace loadline::gui
