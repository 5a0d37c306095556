// A lesson in front of an audience, and the keys that turn its steps.
#include "app/gui/frame/actions_2.h"
#include "app/gui/frame/lesson.h"
#include "app/gui/frame/shell.h"
#include "app/gui/parts/widgets.h"
#include "app/gui/window/keyboard.h"

#include <algorithm>

namespace loadline::gui {

bool Shell::lesson_takes_keys() {
  LessonPlay& play = workspace_.lesson;
  if (!play.plays() || browser_.is_open() || !workspace_.manual.empty()) return false;
  const auto go = [&](bool on) {
    workspace_.attempt([&] {
      if (on && play.presents && play.is_open())
        return play.reveal();  // the audience sees the question first
      find_action("lesson-step")->run(workspace_, on ? "next" : "back");
    });
    return true;
  };
  if (take_list_key(ListKey::page_down)) return go(true);
  if (take_list_key(ListKey::page_up)) return go(false);
  if (!play.presents || ImGui::GetIO().WantTextInput || ImGui::GetIO().KeyAlt || ImGui::GetIO().KeyCtrl)
    return false;
  if (take_list_key(ListKey::right) || take_space()) return go(true);
  if (take_list_key(ListKey::left)) return go(false);
  const bool in_front =
      ImGui::IsPopupOpen(nullptr, ImGuiPopupFlags_AnyPopupId | ImGuiPopupFlags_AnyPopupLevel);
  if (in_front || !take_list_key(ListKey::escape)) return false;
  play.presents = false;
  return true;
}

// Of another model the views say nothing about the question.
bool Shell::lesson_hides_views() const {
  return workspace_.lesson.hides_views() && workspace_.document().id == workspace_.lesson.document;
}

void Shell::draw_hidden_views(const Ui& ui, ImVec2 size) {
  const ChildScope body("body", size);
  draw_notices(ui);
  const CardScope card(ui, "hidden", {0, 0});
  empty_state(ui, "Predict first", "The views show this load once you have answered.");
  const std::string_view words = "Show them now";
  const float width = text_width(words) + 2 * ImGui::GetStyle().FramePadding.x;
  ImGui::SetCursorPos({(ImGui::GetWindowWidth() - width) / 2, ImGui::GetCursorPosY() + ui.px(10)});
  if (button(ui, words, ButtonKind::ghost)) run_action(workspace_, "lesson-view");
}

// The view that the step shows, and below it the text, as high as it needs to be.
void Shell::draw_presented(const Ui& ui, ImVec2 size) {
  const LessonPlay& play = workspace_.lesson;
  const ChildScope body("presented", size);
  draw_notices(ui);
  const float room = ImGui::GetContentRegionAvail().y, gap = ui.px(8);
  if (play.hides_views()) {
    const CardScope card(ui, "question", {0, 0});
    scroll_by_keys();
    draw_caption(workspace_, ui);
    ImGui::SetCursorPosY(std::max(ImGui::GetCursorPosY() + ui.px(10),
                                  ImGui::GetWindowContentRegionMax().y - ImGui::GetFontSize()));
    return muted(ui, "Space shows the answer");
  }
  // of the room: a table is read to its end, and the buttons of a slider are reached
  const float most = play.now().ran || play.step().slider ? 0.66f : 0.5f;
  const float strip = std::clamp(caption_, ui.px(70), room * most);
  {
    const ChildScope view("view", {0, room - strip - gap});
    const bool of_load = workspace_.settings.panel == "load";
    if (!workspace_.document().model) {
      empty_state(ui, "The lesson is being prepared", "Its model is derived from a configuration.");
    } else if (of_load) {
      timeline_rect_.low = ImGui::GetCursorScreenPos();
      timeline_rect_.high = timeline_rect_.low + ImGui::GetContentRegionAvail();
      const CardScope card(ui, "timeline", {0, 0});
      timeline_->draw(workspace_, ui);
    } else {
      draw_panel(ui);
    }
  }
  ImGui::SetCursorPosY(ImGui::GetWindowContentRegionMax().y - strip);
  const CardScope card(ui, "caption", {0, strip});
  scroll_by_keys();
  draw_caption(workspace_, ui);
  caption_ = ImGui::GetCursorPosY() + ImGui::GetScrollY() + ImGui::GetStyle().WindowPadding.y;
}

}  // namespace loadline::gui
