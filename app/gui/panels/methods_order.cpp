// The order of a load as a list: rows to drag, modules to unfold, a file to keep it in.
#include "app/gui/panels/methods.h"
#include "app/gui/parts/widgets.h"
#include "core/base/text.h"

#include <algorithm>

#include <fmt/format.h>
#include <imgui_stdlib.h>

namespace loadline::gui {
namespace {

constexpr const char* kPayload = "order item";

std::string item_name(const Model& model, const OrderItem& item) {
  if (!item.tensor) return item.module;
  const auto& owner = model.owners[index(item.storages.front())];
  return owner ? std::string(std::string_view(model.tensor(*owner).name)) : item.module;
}

std::string peak_text(const Document& document) {
  const auto& projection = document.projection.value();
  if (!projection || document.projection.busy()) return "";
  const MemoryKind memory = document.memory().kind;
  const bool unified = memory == MemoryKind::unified;
  const std::uint64_t bytes = view_peaks(projection->timeline, memory)[leading_view(memory)].bytes;
  return fmt::format("{} in this order: {} {}", projection->method->id, format_bytes(bytes),
                     unified ? "must be held" : "on the device");
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
    workspace.attempt([&] { document.load_order(path_); });
  ImGui::SameLine(0, ui.px(6));
  if (button(ui, "Save", ButtonKind::normal, !path_.empty()))
    workspace.attempt([&] { document.save_order(path_); });
  const std::string peak = peak_text(document);
  if (peak.empty()) return;
  continue_line(ui, 14, text_width(peak));
  control_text(elided(peak, ImGui::GetContentRegionAvail().x), ui.theme->accent);
}

void OrderEditor::draw_item(Document& document, const Ui& ui, std::size_t at) {
  const Model& model = *document.model;
  const OrderItem& item = document.order.value()->items()[at];
  const FontScope font(ui.fonts.small);
  const float height = ImGui::GetFontSize() + ui.px(8);
  const ImVec2 pen = ImGui::GetCursorScreenPos();
  const float width = ImGui::GetContentRegionAvail().x;
  const float arrow = ui.px(46);  // the number and the arrow
  const std::string name = item_name(model, item);
  const IdScope scope(at);
  if (press_area(ui, "fold", {arrow, height})) wish_ = Wish::fold, from_ = at;
  tooltip(ui, item.tensor ? "Folds the neighbours of this module into one row"
                          : "Unfolds the module to its tensors");
  ImGui::SameLine(0, 0);
  const auto owner = model.owners[index(item.storages.front())];
  const bool selected = item.tensor && document.selected_tensor() == owner;
  if (ImGui::Selectable("##item", selected, 0, {width - arrow, height}) && item.tensor)
    document.select(*owner);
  if (ImGui::BeginDragDropSource(ImGuiDragDropFlags_SourceNoHoldToOpenOthers)) {
    ImGui::SetDragDropPayload(kPayload, &at, sizeof at);
    text(elided(shown(name), ui.px(360)));
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
           elided(shown(name), width - arrow - indent - text_width(figure) - ui.px(22)));
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
  document.list_order();
  draw_file(workspace, ui);
  const OrderList& list = *document.order.value();
  if (list.items().empty())
    return empty_state(ui, document.order.busy() ? "Listing the order" : "Nothing to arrange",
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
  document.arrange_order(std::move(changed));
}

}  // namespace loadline::gui
