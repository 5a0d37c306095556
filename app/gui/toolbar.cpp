// The request as controls, the verdict as a chip that opens the advice, and what can be done with the model.
#include "app/gui/toolbar.h"

#include "app/gui/actions.h"
#include "app/gui/panels/advice.h"
#include "app/gui/panels/plan_controls.h"
#include "app/gui/session/verdict.h"
#include "app/gui/widgets.h"
#include "app/gui/window/keyboard.h"
#include "core/base/text.h"

#include <algorithm>
#include <numbers>

#include <fmt/format.h>

namespace loadline::gui {
namespace {

constexpr float kHalfTurn = std::numbers::pi_v<float>;

bool draw_theme_button(const Workspace& workspace, const Ui& ui) {
  return icon_button(ui, "theme",
                     fmt::format("{} theme ({})", workspace.settings.dark ? "Light" : "Dark",
                                 find_action("theme")->shortcut),
                     [&](ImVec2 center, ImU32 color) {
                       ImDrawList* draw = ImGui::GetWindowDrawList();
                       const float r = ui.px(6);
                       // a disc, half of it in the shade
                       draw->AddCircle(center, r, color, 32, ui.px(1.5f));
                       draw->PathArcTo(center, r, -kHalfTurn / 2, kHalfTurn / 2, 24);
                       draw->PathFillConvex(color);
                     });
}

}  // namespace

void Toolbar::draw_model(const Workspace& workspace, const Ui& ui, float room) {
  const Model& model = *workspace.document().model;
  const std::string facts = fmt::format(
      "{}   {}   {}   {}", format_bytes(model.weight_bytes), format_count(workspace.document().parameters()),
      model.dtypes.empty() ? "" : dtype_info(model.dtypes.front().dtype).name,
      counted(model.graph->files.size(), "file"));
  const float y = ImGui::GetCursorPosY();
  const FontScope strong(ui.fonts.strong);
  const float name = std::min(text_width(shown(model.name)), std::max(ui.px(80), room));
  ImGui::AlignTextToFramePadding();
  name_text(ui, model.name, name, ui.theme->text);
  const FontScope small(ui.fonts.small);
  tooltip(ui, fmt::format("{}\n{}", shown(model.path), facts));
  if (name + ui.px(16) + text_width(facts) > room) return;
  ImGui::SameLine(0, ui.px(16));
  ImGui::SetCursorPosY(y + ui.px(1));
  ImGui::AlignTextToFramePadding();
  muted(ui, facts);
}

// The chip says whether the load fits; behind it is what would make it fit.
void Toolbar::draw_chip(Workspace& workspace, const Ui& ui, float room) {
  const Verdict verdict = verdict_of(workspace.document());
  const bool over = verdict.state == Verdict::State::over;
  const ImU32 color = over                                    ? ui.theme->bad
                      : verdict.state == Verdict::State::fits ? ui.theme->good
                                                              : ui.theme->muted;
  std::string words = verdict.state == Verdict::State::unknown ? "projecting" : verdict.words;
  const std::string longer = words + ": what fits?";
  const float pad = ui.px(12);
  if (over && text_width(longer) + 2 * pad <= room) words = longer;
  words = elided(words, std::max(ui.px(40), room - 2 * pad));
  const ImVec2 at = ImGui::GetCursorScreenPos();
  const ImVec2 size = {text_width(words) + 2 * pad, ImGui::GetFrameHeight()};
  if (press_area(ui, "chip", size)) ImGui::OpenPopup("advice");
  const bool hot = ImGui::IsItemHovered();
  ImDrawList* draw = ImGui::GetWindowDrawList();
  draw->AddRectFilled(at, at + size, mix(ui.theme->panel, color, hot ? 0.34f : 0.20f), size.y / 2);
  draw->AddRect(at, at + size, with_alpha(color, 0.8f), size.y / 2, 0, std::max(1.0f, ui.px(1)));
  put_text({at.x + pad, at.y + (size.y - ImGui::GetFontSize()) / 2}, ui.theme->text, words);
  tooltip(ui, verdict.first.empty() ? "Whether this load fits, and what would make it fit (F2)"
                                    : "First over: " + verdict.first);
  if (workspace.wants_advice) {
    workspace.wants_advice = false;
    ImGui::OpenPopup("advice");
  }
  ImGui::SetNextWindowPos({at.x, at.y + size.y + ui.px(6)});
  ImGui::SetNextWindowSize({ui.px(440), 0});
  const StyleScope style(ImGuiStyleVar_WindowPadding, {ui.px(16), ui.px(12)});
  const bool open = ImGui::BeginPopup("advice");
  if (open) {
    draw_advice(workspace, ui);
    if (list_key_pressed(ListKey::escape)) ImGui::CloseCurrentPopup();
    ImGui::EndPopup();
  }
  if (advice_open_ && !open) workspace.document().preview(nullptr);
  advice_open_ = open;
}

void Toolbar::draw_options(Workspace& workspace, const Ui& ui) {
  Document& document = workspace.document();
  if (button(ui, "Options")) ImGui::OpenPopup("options");
  tooltip(ui, "Everything else that can be asked of the load");
  ImGui::SetNextWindowSize({ui.px(460), std::min(ui.px(560), ImGui::GetIO().DisplaySize.y - ui.px(80))});
  const StyleScope style(ImGuiStyleVar_WindowPadding, {ui.px(16), ui.px(12)});
  if (!ImGui::BeginPopup("options")) return;
  if (list_key_pressed(ListKey::escape)) ImGui::CloseCurrentPopup();
  std::string_view group;
  for (const LoadOption& option : load_options()) {
    if (option.group == load_groups::kWhich) continue;
    const auto look = look_of(document, option);
    if (!look) continue;
    if (group != option.group) {
      if (!group.empty()) ImGui::Dummy({0, ui.px(4)});
      group = option.group;
      heading(ui, group);
    }
    sheet_controls_.draw_line(ui, *look,
                              [&](std::string_view word) { document.set_option(option.id, word); });
  }
  ImGui::EndPopup();
}

void Toolbar::draw_request(Workspace& workspace, const Ui& ui, float right) {
  Document& document = workspace.document();
  const float room = right - ImGui::GetCursorPosX();
  const bool roomy = room > ui.px(780);
  if (roomy) {
    controls_.draw_bare(document, ui, *find_load_option("target"), "no target");
    ImGui::SameLine(0, ui.px(6));
  }
  controls_.draw_bare(document, ui, *find_load_option("device_budget"), "no budget");
  ImGui::SameLine(0, ui.px(10));
  method_and_order(workspace, ui, ui.px(roomy ? 168 : 140), ui.px(84));
  ImGui::SameLine(0, ui.px(6));
  draw_options(workspace, ui);
  ImGui::SameLine(0, ui.px(10));
  draw_chip(workspace, ui, right - ImGui::GetCursorPosX());
}

void Toolbar::draw_buttons(Workspace& workspace, const Ui& ui) {
  if (button(ui, "Open")) run_action(workspace, "browse");
  tooltip(ui, fmt::format("Open a model ({})", find_action("browse")->shortcut));
  if (workspace.document().model) {
    ImGui::SameLine(0, ui.px(6));
    if (button(ui, "Convert")) workspace.settings.panel = "convert";
    ImGui::SameLine(0, ui.px(6));
    if (button(ui, "Upload")) workspace.settings.panel = "upload";
  }
  ImGui::SameLine(0, ui.px(6));
  if (draw_theme_button(workspace, ui)) run_action(workspace, "theme");
}

void Toolbar::draw(Workspace& workspace, const Ui& ui, float height) {
  const float width = ImGui::GetContentRegionAvail().x;
  const float middle = height / 2;
  const float frame = ImGui::GetFrameHeight();
  const bool model = workspace.document().model != nullptr;
  load_line_mark(ui, {ui.px(28), middle}, ui.px(11));
  const auto button_width = [&](std::string_view words) {
    return text_width(words) + 2 * ImGui::GetStyle().FramePadding.x;
  };
  const float buttons = button_width("Open") + ui.px(6) + frame + ui.px(14) +
                        (model ? button_width("Convert") + button_width("Upload") + ui.px(12) : 0);
  ImGui::SetCursorPos({ui.px(50), middle - frame / 2});
  if (model) {
    // the request needs some room; the name takes what is left of it
    const float request = ui.px(width > ui.px(1240) ? 800 : 560);
    draw_model(workspace, ui, width - buttons - request - ui.px(70));
    ImGui::SameLine(0, ui.px(18));
    ImGui::SetCursorPosY(middle - frame / 2);
    draw_request(workspace, ui, width - buttons - ui.px(14));
  } else {
    const FontScope title(ui.fonts.title);
    ImGui::SetCursorPosY(middle - ImGui::GetFontSize() / 2);
    text("Loadline");
  }
  ImGui::SetCursorPos({width - buttons, middle - frame / 2});
  draw_buttons(workspace, ui);
}

}  // namespace loadline::gui
