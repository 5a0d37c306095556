// All load methods side by side: a bar per space, the law of the peak, and why.
#include "app/gui/panels/panels.h"
#include "app/gui/panels/plan_controls.h"
#include "app/gui/panels/timeline_data.h"
#include "app/gui/widgets.h"
#include "core/base/text.h"

#include <algorithm>

#include <fmt/format.h>

namespace loadline::gui {
namespace {

class ComparePanel final : public Panel {
 public:
  void draw(Session& session, const Ui& ui) override;

 private:
  void draw_row(Session& session, const Ui& ui, const MethodRow& row, double most);
  void draw_bars(const Session& session, const Ui& ui, const MethodRow& row, ImVec2 at, float width,
                 double most);
  float explanation_height(const Session& session, const Ui& ui);
  void draw_explanation(const Session& session, const Ui& ui);
};

void ComparePanel::draw(Session& session, const Ui& ui) {
  if (!session.model()) {
    empty_state(ui, "No model is open", "Every way of loading it will be compared here.");
    return;
  }
  method_and_order(session, ui, ui.px(190), ui.px(120));
  for (const std::string_view hint :
       {"Peak of each memory space while the model loads. Click a method to choose it.",
        "Peaks while the model loads. Click a method to choose it.", "Click a method to choose it."}) {
    if (!continue_line(ui, 14, text_width(hint))) continue;
    ImGui::AlignTextToFramePadding();
    muted(ui, hint);
    break;
  }
  if (session.comparison().empty()) {
    empty_state(ui, session.comparing() ? "Projecting every method" : "Nothing to compare",
                "Each one is planned and run on the modelled machine.");
    return;
  }
  double most = std::max(static_cast<double>(session.model()->weight_bytes), 1.0);
  for (const MethodRow& row : session.comparison()) most = std::max(most, static_cast<double>(row.unified));
  const float explanation = explanation_height(session, ui);
  const ImVec2 room = ImGui::GetContentRegionAvail();
  ImGui::PushStyleVar(ImGuiStyleVar_ItemSpacing, {0, ui.px(6)});
  ImGui::BeginChild("methods", {0, std::max(ui.px(90), room.y - explanation)});
  for (const MethodRow& row : session.comparison()) draw_row(session, ui, row, most);
  ImGui::EndChild();
  ImGui::PopStyleVar();
  draw_explanation(session, ui);
}

void ComparePanel::draw_row(Session& session, const Ui& ui, const MethodRow& row, double most) {
  const Method& method = *row.method;
  const bool chosen = session.choice().method == method.id;
  const ImVec2 at = ImGui::GetCursorScreenPos();
  const float width = ImGui::GetContentRegionAvail().x;
  const float names = std::clamp(width * 0.33f, ui.px(236), ui.px(360));
  const float room = names - ui.px(30);
  float law_height = 0;
  float summary_height = 0;
  {
    const FontScope scope(ui.fonts.small);
    law_height = wrapped_height(method.peak_law, room);
    summary_height = wrapped_height(method.summary, room);
  }
  const float height = std::max(ui.px(92), ui.px(29 + 3 + 8) + law_height + summary_height);
  ImGui::PushID(method.id.data());
  if (ImGui::InvisibleButton("row", {width, height})) {
    PlanChoice choice = session.choice();
    choice.method = method.id;
    session.attempt([&] { session.set_plan(choice); });
  }
  const bool hot = ImGui::IsItemHovered();
  ImDrawList* draw = ImGui::GetWindowDrawList();
  const ImVec2 high = {at.x + width, at.y + height};
  draw->AddRectFilled(at, high,
                      chosen ? ui.theme->selected
                      : hot  ? ui.theme->hovered
                             : mix(ui.theme->panel, ui.theme->raised, 0.6f),
                      ui.px(6));
  if (chosen) draw->AddRectFilled(at, {at.x + ui.px(4), high.y}, ui.theme->accent, ui.px(2));

  const float left = at.x + ui.px(16);
  // on the chosen row's ground the muted colour would be too faint
  const ImU32 second = chosen || hot ? ui.theme->text : ui.theme->muted;
  {
    const FontScope scope(ui.fonts.strong);
    draw->AddText({left, at.y + ui.px(8)}, ui.theme->text, method.id.data(),
                  method.id.data() + method.id.size());
  }
  {
    const FontScope scope(ui.fonts.small);
    const auto wrapped = [&](std::string_view words, float y, ImU32 color) {
      draw->AddText(ImGui::GetFont(), ImGui::GetFontSize(), {left, y}, color, words.data(),
                    words.data() + words.size(), room);
    };
    const float y = at.y + ui.px(29);
    wrapped(method.peak_law, y, chosen || hot ? ui.theme->text : ui.theme->accent);
    wrapped(method.summary, y + law_height + ui.px(3), second);
  }
  // what can be projected may yet be impossible with these files
  const std::string misfit = mapping_misfit(*session.model(), row.peaks[index(Space::page_cache)]);
  if (row.error.empty() && !misfit.empty()) {
    const FontScope scope(ui.fonts.small);
    const float room_right = width - names - ui.px(24);
    const std::string words = "Cannot be done: " + misfit;
    draw->AddText(ImGui::GetFont(), ImGui::GetFontSize(),
                  {at.x + names, at.y + (height - wrapped_height(words, room_right)) / 2}, ui.theme->bad,
                  words.data(), words.data() + words.size(), room_right);
  } else if (!row.error.empty()) {
    const FontScope scope(ui.fonts.small);
    const std::string cut = elided(shown(row.error), width - names - ui.px(24));
    draw->AddText({at.x + names, at.y + height / 2 - ImGui::GetFontSize() / 2}, ui.theme->bad, cut.c_str());
  } else {
    draw_bars(session, ui, row, {at.x + names, at.y + (height - ui.px(80)) / 2}, width - names - ui.px(12),
              most);
  }
  ImGui::PopID();
}

void ComparePanel::draw_bars(const Session& session, const Ui& ui, const MethodRow& row, ImVec2 at,
                             float width, double most) {
  const FontScope font(ui.fonts.small);
  ImDrawList* draw = ImGui::GetWindowDrawList();
  const float step = ui.px(16);
  const float name = ui.px(84);
  const float figure = ui.px(84);
  const float bars = width - name - figure;
  if (bars < ui.px(30)) return;
  float y = at.y;
  const auto draw_bar = [&](std::string_view title, std::uint64_t bytes, ImU32 color) {
    const auto share = static_cast<float>(static_cast<double>(bytes) / most);
    draw->AddText({at.x, y}, ui.theme->text, title.data(), title.data() + title.size());
    const ImVec2 low = {at.x + name, y + ui.px(2)};
    draw->AddRectFilled(low, {low.x + bars, low.y + ui.px(11)}, with_alpha(ui.theme->grid, 0.9f), ui.px(3));
    if (bytes > 0)
      draw->AddRectFilled(low, {low.x + std::max(ui.px(2), bars * share), low.y + ui.px(11)}, color,
                          ui.px(3));
    const std::string words = bytes == 0 ? "\xE2\x80\x93" : format_bytes(bytes);
    const float words_width = ImGui::CalcTextSize(words.c_str()).x;
    draw->AddText({at.x + width - words_width, y}, ui.theme->text, words.c_str());
    y += step;
  };
  for (const Space space : kStackOrder)
    draw_bar(space_title(space), row.peaks[index(space)], ui.theme->spaces[index(space)]);
  draw_bar("All, at once", row.unified, ui.theme->neutral);
  // what the weights alone take: the line that no device peak can go below
  const float w =
      at.x + name + bars * static_cast<float>(static_cast<double>(session.model()->weight_bytes) / most);
  draw->AddLine({w, at.y}, {w, at.y + 5 * step - ui.px(2)}, with_alpha(ui.theme->highlight, 0.75f),
                ui.px(1.25f));
}

float ComparePanel::explanation_height(const Session& session, const Ui& ui) {
  const FontScope font(ui.fonts.small);
  return ui.px(48) +
         wrapped_height(find_method(session.choice().method).explanation, ImGui::GetContentRegionAvail().x);
}

void ComparePanel::draw_explanation(const Session& session, const Ui& ui) {
  const Method& method = find_method(session.choice().method);
  const ImVec2 at = ImGui::GetCursorScreenPos();
  ImGui::GetWindowDrawList()->AddLine(at, {at.x + ImGui::GetContentRegionAvail().x, at.y}, ui.theme->border);
  ImGui::Dummy({0, ui.px(2)});
  heading(ui, method.id);
  ImGui::SameLine(0, ui.px(12));
  text_colored(ui.theme->accent, fmt::format("peak {}", method.peak_law));
  const std::string weights =
      fmt::format("line: the weights, W = {}", format_bytes(session.model()->weight_bytes));
  if (continue_line(ui, 16, text_width(weights))) muted(ui, weights);
  const FontScope font(ui.fonts.small);
  paragraph(ui, method.explanation, ui.theme->text);
}

}  // namespace

std::unique_ptr<Panel> make_compare_panel() { return std::make_unique<ComparePanel>(); }

}  // namespace loadline::gui
