// Every step of every lesson drawn, beside the views and in front of an audience; its keys. No window.
#include "app/gui/frame/actions.h"
#include "app/gui/frame/gui_app.h"
#include "tests/gui/drawn_text.h"
#include "tests/gui/null_window.h"
#include "tests/gui/sample_graphs.h"

#include <gtest/gtest.h>
#include <imgui.h>

namespace loadline::gui {
namespace {

class LessonInWindow : public ::testing::Test {
 protected:
  void settle() {
    app_.settle();
    app_.draw_settled();
    app_.settle();
    app_.draw_settled();
  }
  void run(std::string_view action, const std::string& argument = "") {
    find_action(action)->run(workspace_, argument);
    settle();
  }
  void press(int key) {
    ImGui::GetIO().KeysDown[key] = true;
    app_.frame();
    ImGui::GetIO().KeysDown[key] = false;
    app_.frame();
    settle();
  }
  static bool shows(std::string_view words) {
    return drawn_text().find(without_blanks(words)) != std::string::npos;
  }
  void expect_no_error(const std::string& where) {
    for (const Notice& notice : workspace_.shared.notices.all())
      EXPECT_NE(notice.severity, Severity::error) << where << ": " << notice.text;
  }

  static constexpr int kSpace = 32, kEscape = 256, kRight = 262, kLeft = 263, kPageUp = 266, kPageDown = 267;
  const std::unique_ptr<Window> window_ = open_null_window({.width = 1280, .height = 720});
  GuiApp app_{*window_, ""};
  Workspace& workspace_ = app_.workspace();
};

TEST_F(LessonInWindow, every_step_of_every_lesson) {
  std::vector<std::string> ids;
  for (const lesson::Lesson& lesson : workspace_.lesson.all()) ids.push_back(lesson.id);
  for (const std::string& id : ids) {
    run("lesson", id);
    const LessonPlay& play = workspace_.lesson;
    for (std::size_t at = 0; at < play.count(); ++at) {
      const std::string where = id + ", step " + play.lesson().steps[at].id;
      run("lesson-step", std::to_string(at + 1));
      EXPECT_TRUE(play.to_show.empty()) << where;
      expect_no_error(where);
      EXPECT_TRUE(shows("Step " + std::to_string(at + 1) + " of")) << where;
      EXPECT_EQ(shows("Check"),
                play.step().ask && std::holds_alternative<lesson::AskNumber>(play.step().ask->kind))
          << where;
      workspace_.settings.dark = !workspace_.settings.dark;
      run("present", "on");
      EXPECT_FALSE(shows("Reset the view")) << where;
      if (play.step().ask) run("lesson-answer");
      run("present", "off");
      expect_no_error(where);
    }
  }
  run("lesson-leave");
  EXPECT_TRUE(shows("How deep will it sit?"));
}

TEST_F(LessonInWindow, a_line_that_cannot_be_run_is_a_notice) {
  run("lesson", "six-ways");
  for (const char* line : {"fly", "quit", "convert gguf out.gguf", "panel nowhere", "panel",
                           "method teleport", "export window out.png", "zoom-out now"})
    EXPECT_THROW(run_lesson_line(workspace_, line), Error) << line;
  EXPECT_FALSE(workspace_.wants_quit);
  workspace_.lesson.to_show = {"panel nowhere", "time end", "panel values"};
  settle();
  EXPECT_EQ(workspace_.settings.panel, "values");  // the lines after it are run
  ASSERT_EQ(workspace_.shared.notices.all().size(), 1u);
  EXPECT_NE(workspace_.shared.notices.all()[0].text.find("Lesson six-ways, step weights: 'panel nowhere'"),
            std::string::npos);
}

TEST_F(LessonInWindow, keys_turn_its_steps) {
  run("lesson", "six-ways");
  const LessonPlay& play = workspace_.lesson;
  press(kPageDown);
  EXPECT_EQ(play.at(), 1u);
  EXPECT_TRUE(ImGui::GetIO().WantTextInput) << "the answer has the keyboard";
  press(kPageDown);
  press(kPageDown);
  press(kPageUp);
  EXPECT_EQ(play.at(), 2u);
  run("present", "on");
  EXPECT_TRUE(shows("How many GiB"));
  press(kSpace);  // the answer first
  EXPECT_EQ(play.at(), 2u);
  EXPECT_FALSE(play.is_open());
  press(kRight);
  EXPECT_EQ(play.at(), 3u);
  press(kLeft);
  EXPECT_EQ(play.at(), 2u);
  EXPECT_FALSE(workspace_.document().playing);
  press(kEscape);
  EXPECT_FALSE(play.presents);
  EXPECT_TRUE(play.plays());
  press(kRight);
  EXPECT_EQ(play.at(), 2u);
}

TEST_F(LessonInWindow, its_cross_leaves_it) {
  run("lesson", "six-ways");
  const std::vector<ImVec2> present = drawn_at("Present");
  ASSERT_EQ(present.size(), 1u);
  const float x = 1280 - 10 - 14 - 12;  // the margin, the padding of the card, half of the button
  for (const bool down : {false, true, false}) {
    window_->set_mouse(x, present[0].y, down);
    app_.frame();
    app_.frame();
  }
  settle();
  EXPECT_FALSE(workspace_.lesson.plays());
}

TEST_F(LessonInWindow, enter_checks_the_answer) {
  run("lesson", "six-ways");
  run("lesson-step", "next");
  ImGui::GetIO().AddInputCharactersUTF8("12.8");
  settle();
  EXPECT_EQ(workspace_.lesson.now().typed, "12.8");
  press(257);
  ASSERT_TRUE(workspace_.lesson.now().judged);
  EXPECT_TRUE(workspace_.lesson.now().judged->right);
  EXPECT_TRUE(shows("Right: it is"));
  EXPECT_TRUE(shows("Published: 12.8"));
}

}  // namespace
}  // namespace loadline::gui
