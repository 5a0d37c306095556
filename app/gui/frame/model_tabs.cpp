// One tab for each open model, as wide as its name while there is room for all.
#include "app/gui/frame/model_tabs.h"

#include "app/gui/frame/actions_2.h"
#include "app/gui/parts/widgets.h"

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include <fmt/format.h>

namespace loadline::gui {
namespace {

constexpr float kHeight = 30;
constexpr float kLeastTab = 72, kMostTab = 240;

struct TabAnswer {
  bool shown = false, closed = false;
};

TabAnswer draw_tab(const Ui& ui, const Document& document, std::string_view title, bool current,
                   float width) {
  const IdScope scope(static_cast<int>(document.id));
  const float height = ui.px(kHeight - 4), cross = ui.px(22), pad = ui.px(10);
  const ImVec2 at = ImGui::GetCursorScreenPos();
  TabAnswer answer;
  answer.shown = press_area(ui, "tab", {width, height});
  ImGui::SetItemAllowOverlap();
  const bool hot = ImGui::IsItemHovered(ImGuiHoveredFlags_AllowWhenOverlapped);
  answer.closed = hot && ImGui::IsMouseReleased(ImGuiMouseButton_Middle);
  tooltip(ui, document.model ? shown(document.model->path) : "Nothing is open here");
  ImDrawList* draw = ImGui::GetWindowDrawList();
  const ImVec2 end = {at.x + width, at.y + height};
  if (current || hot)
    draw->AddRectFilled(at, end, current ? ui.theme->panel : with_alpha(ui.theme->panel, 0.5f), ui.px(6));
  if (current) draw->AddRect(at, end, ui.theme->border, ui.px(6));
  const float room = width - 2 * pad - (current || hot ? cross - ui.px(4) : 0);
  put_text({at.x + pad, at.y + (height - ImGui::GetFontSize()) / 2},
           current || hot ? ui.theme->text : ui.theme->muted, elided(title, room));
  if (!current && !hot) return answer;
  ImGui::SameLine(0, 0);
  ImGui::SetCursorScreenPos({end.x - cross, at.y});
  if (press_area(ui, "close", {cross, height})) answer = {false, true};
  const bool hot_cross = ImGui::IsItemHovered();
  tooltip(ui, fmt::format("Close ({})", find_action("close")->shortcut));
  paint_cross(ui, {end.x - cross / 2 - ui.px(2), at.y + height / 2},
              hot_cross ? ui.theme->text : ui.theme->muted);
  return answer;
}

}  // namespace

float model_tabs_height(const Workspace& workspace, const Ui& ui) {
  return workspace.documents().size() > 1 ? ui.px(kHeight) : 0;
}

void draw_model_tabs(Workspace& workspace, const Ui& ui, float width) {
  const FontScope font(ui.fonts.small);
  const float gap = ui.px(4), plus = ui.px(28);
  const auto& documents = workspace.documents();
  std::vector<float> widths;
  std::vector<std::string> titles;
  float all = plus;
  for (const auto& document : documents) {
    titles.push_back(shown(tab_title(workspace, *document)));
    widths.push_back(std::clamp(text_width(titles.back()) + ui.px(46), ui.px(kLeastTab), ui.px(kMostTab)));
    all += widths.back() + gap;
  }
  const float each = std::max(ui.px(kLeastTab), (width - plus) / static_cast<float>(documents.size()) - gap);
  if (all > width)
    for (float& tab : widths) tab = std::min(tab, each);
  const ChildScope strip("models", {width, ui.px(kHeight)}, false,
                         all > width ? ImGuiWindowFlags_HorizontalScrollbar : ImGuiWindowFlags_NoScrollbar);
  std::optional<std::size_t> shown, closed;
  const StyleScope spacing(ImGuiStyleVar_ItemSpacing, {gap, 0});
  for (std::size_t i = 0; i < documents.size(); ++i) {
    ImGui::SetCursorPos({ImGui::GetCursorPosX(), 0});
    const float left = ImGui::GetCursorPosX();
    const TabAnswer answer =
        draw_tab(ui, *documents[i], titles[i], i == workspace.shown_document(), widths[i]);
    if (answer.shown) shown = i;
    if (answer.closed) closed = i;
    ImGui::SetCursorPos({left + widths[i] + gap, 0});
  }
  if (icon_button(ui, "open", fmt::format("Open another model ({})", find_action("browse")->shortcut),
                  [&](ImVec2 center, ImU32 color) {
                    const float r = ui.px(5);
                    ImDrawList* draw = ImGui::GetWindowDrawList();
                    draw->AddLine({center.x - r, center.y}, {center.x + r, center.y}, color, ui.px(1.5f));
                    draw->AddLine({center.x, center.y - r}, {center.x, center.y + r}, color, ui.px(1.5f));
                  }))
    run_action(workspace, "browse");
  const float room = width - text_width("Diff") - 2 * ImGui::GetStyle().FramePadding.x;
  if (ImGui::GetCursorPosX() < room && workspace.document().model) {
    ImGui::SameLine(room);
    ImGui::SetCursorPosY(0);
    if (button(ui, "Diff", ButtonKind::ghost)) workspace.settings.panel = "diff";
    tooltip(ui, fmt::format("What differs between two open models ({})", find_action("diff")->shortcut));
  }
  if (shown) workspace.show_document(*shown);
  if (!closed) return;
  workspace.show_document(*closed);
  workspace.close_model();
}

}  // namespace loadline::gui
