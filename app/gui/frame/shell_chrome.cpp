// Notices and the jobs line.
#include "app/gui/frame/actions_2.h"
#include "app/gui/frame/shell.h"
#include "app/gui/parts/sheet.h"
#include "app/gui/parts/widgets.h"
#include "app/gui/state/base/remedies.h"
#include "app/gui/window/keyboard.h"
#include "core/base/text.h"

#include <algorithm>
#include <array>
#include <optional>
#include <span>
#include <utility>

#include <fmt/format.h>

namespace loadline::gui {
namespace {

enum class Answer { none, dismiss, mend };

// Words over the whole width; `notice` is what they are, if it can be answered.
Answer notice_strip(const Ui& ui, Severity severity, std::string_view words, int id, const Notice* notice) {
  const ImU32 color = severity_color(*ui.theme, severity);
  const IdScope scope(id);
  ImGui::PushStyleColor(ImGuiCol_ChildBg, mix(ui.theme->panel, color, 0.14f));
  ImGui::PushStyleVar(ImGuiStyleVar_WindowPadding, {ui.px(14), ui.px(7)});
  const std::string safe = shown(words);
  const std::string remedy =
      notice != nullptr && notice->remedy ? remedy_title(std::span(&*notice->remedy, 1)) : "";
  const float remedy_room = remedy.empty() ? 0 : text_width(remedy) + ui.px(40);
  const float room = ImGui::GetContentRegionAvail().x - ui.px(64) - remedy_room;
  const float lines = ImGui::CalcTextSize(safe.c_str(), nullptr, false, room).y;
  const float height = std::min(lines, 4 * ImGui::GetFontSize()) + ui.px(18);
  const ChildScope child("notice", {0, height}, true, ImGuiWindowFlags_NoScrollbar);
  ImGui::PopStyleVar();
  ImGui::PopStyleColor();
  const ImVec2 at = ImGui::GetWindowPos();
  ImGui::PushClipRect(at, {at.x + ImGui::GetWindowWidth(), at.y + height}, false);
  ImGui::GetWindowDrawList()->AddRectFilled(at, {at.x + ui.px(5), at.y + height}, color, ui.px(8),
                                            ImDrawFlags_RoundCornersLeft);
  ImGui::PopClipRect();
  ImGui::SetCursorPos({ui.px(16), ui.px(9)});
  ImGui::PushTextWrapPos(ImGui::GetCursorPosX() + room);
  text_colored(ui.theme->text, safe);
  ImGui::PopTextWrapPos();
  if (lines > height) tooltip(ui, safe);
  const float middle = std::min(ui.px(3), (height - ImGui::GetFrameHeight()) / 2);
  ImGui::SetCursorPos({ImGui::GetWindowWidth() - ImGui::GetFrameHeight() - ui.px(6), middle});
  Answer answer = Answer::none;
  if (id >= 0 &&
      icon_button(ui, "dismiss", "Dismiss", [&](ImVec2 center, ImU32 ink) { paint_cross(ui, center, ink); }))
    answer = Answer::dismiss;
  if (!remedy.empty()) {
    ImGui::SetCursorPos({ImGui::GetWindowWidth() - ImGui::GetFrameHeight() - remedy_room, middle});
    if (button(ui, remedy, ButtonKind::primary)) answer = Answer::mend;
  }
  return answer;
}

}  // namespace

void Shell::draw_quit(const Ui& ui) {
  if (!workspace_.asks_quit) return;
  const bool converts = workspace_.conversion.busy();
  if (!converts && !workspace_.uploading.busy()) {  // it came to its end meanwhile
    workspace_.asks_quit = false;
    return;
  }
  const SheetScope sheet(ui, "quit", {ui.px(460), ui.px(150)});
  heading(ui, converts ? "A conversion is running" : "An upload is running");
  paragraph(ui,
            converts
                ? "Quitting stops it. The file that it writes will not be there; its source stays as it is."
                : "Quitting stops it and frees the memory of the device.",
            ui.theme->text);
  ImGui::Dummy({0, ui.px(8)});
  if (button(ui, "Stop it and quit (Enter)", ButtonKind::primary) || list_key_pressed(ListKey::enter))
    workspace_.wants_quit = true;
  ImGui::SameLine(0, ui.px(8));
  if (button(ui, "Go on (Esc)") || list_key_pressed(ListKey::escape)) workspace_.asks_quit = false;
}

void Shell::draw_notices(const Ui& ui) {
  const Model* model = workspace_.document().model.get();
  if (model != nullptr && model->errors > 0 && workspace_.settings.panel != "model" &&
      workspace_.settings.panel != "findings") {
    const auto& notes = model->graph->notes;
    const auto first = std::ranges::find(notes, Severity::error, &Note::severity);
    notice_strip(ui, Severity::error,
                 fmt::format("{}{}  (see Findings)", first->text,
                             model->errors > 1 ? fmt::format("  and {} more", model->errors - 1) : ""),
                 -1, nullptr);
  }
  // the newest stands for all: others come to sight as it is dismissed
  Notices& notices = workspace_.shared.notices;
  const auto front = notices.front(workspace_.document().id);
  if (!front) return;
  const Notice notice = notices.all()[front->at];
  const std::string words = front->older == 0 ? notice.text
                                              : fmt::format("{}  ({} behind it)", notice.text,
                                                            counted(front->older, "older message"));
  const Answer answer = notice_strip(ui, notice.severity, words, static_cast<int>(front->at), &notice);
  if (answer == Answer::none) return;
  notices.dismiss(front->at);
  if (answer == Answer::mend) workspace_.attempt([&] { workspace_.mend({*notice.remedy}, notice.path); });
}

// Jobs with a bar each; else what the window waits for.
void Shell::draw_jobs(const Ui& ui, float height) {
  const float width = ImGui::GetContentRegionAvail().x;
  const FontScope font(ui.fonts.small);
  const float y = ImGui::GetCursorPosY() + (height - ImGui::GetFontSize()) / 2;
  ImGui::SetCursorPos({ui.px(18), y});
  const std::vector<JobView> jobs = workspace_.shared.jobs.view();
  struct Hint {
    std::string_view words, action;
    bool needs_model;
  };
  constexpr auto kHints = std::to_array<Hint>({{"Ctrl+P anything", "palette", false},
                                               {"F2 does it fit?", "advice", true},
                                               {"Ctrl+E export", "export", true},
                                               {"F1 manual", "manual", false},
                                               {"? keys", "keys", false}});
  const float between = ui.px(14);
  float right_width = -between;
  for (const Hint& hint : kHints)
    if (!hint.needs_model || workspace_.document().model) right_width += text_width(hint.words) + between;
  if (jobs.empty())
    muted(ui, elided(workspace_.done.empty() ? "Ready" : workspace_.done, width - right_width - ui.px(54)));
  for (const JobView& job : jobs) {
    if (ImGui::GetCursorPosX() + ui.px(280) > width - right_width - ui.px(36)) break;
    const IdScope scope(static_cast<int>(job.id));
    ImGui::SetCursorPosY(y);
    text(elided(job.name, ui.px(220)));
    ImGui::SameLine(0, ui.px(8));
    ImGui::SetCursorPosY(y + ImGui::GetFontSize() / 2 - ui.px(3));
    bar(ui, job.fraction, ui.theme->accent, {ui.px(90), ui.px(6)});
    if (job.total > 0) {
      ImGui::SameLine(0, ui.px(8));
      ImGui::SetCursorPosY(y);
      muted(ui, job.cancelling ? "stopping" : fmt::format("{:.0f}%", job.fraction * 100));
    }
    ImGui::SameLine(0, ui.px(2));
    ImGui::SetCursorPosY(y - (ImGui::GetFrameHeight() - ImGui::GetFontSize()) / 2);
    if (icon_button(ui, "cancel", "Cancel", [&](ImVec2 center, ImU32 ink) { paint_cross(ui, center, ink); }))
      workspace_.shared.jobs.cancel(job.id);
    ImGui::SameLine(0, ui.px(14));
  }
  ImGui::SetCursorPos({width - right_width - ui.px(18), y});
  for (const Hint& hint : kHints) {
    if (hint.needs_model && !workspace_.document().model) continue;
    const IdScope scope(hint.action);
    const ImVec2 at = ImGui::GetCursorScreenPos();
    const float room = text_width(hint.words);
    if (press_area(ui, "hint", {room, ImGui::GetFontSize()})) run_action(workspace_, hint.action);
    put_text(at, ImGui::IsItemHovered() ? ui.theme->text : ui.theme->muted, hint.words);
    ImGui::SameLine(0, between);
  }
}

}  // namespace loadline::gui
