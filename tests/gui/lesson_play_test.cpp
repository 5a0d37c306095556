// Lessons in the window, without a window: texts, answers, scenes, runs, and what is left behind.
#include "app/gui/state/lesson_play.h"

#include "app/gui/state/workspace.h"
#include "core/io/file_system.h"
#include "tests/gui/sample_graphs.h"
#include "tests/gui/settle.h"

#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>

namespace loadline::gui {
namespace {

TEST(LessonPlay, every_step_of_every_lesson_has_its_texts_and_a_right_answer) {
  Workspace workspace("");
  LessonPlay& play = workspace.lesson;
  ASSERT_EQ(play.all().size(), 13u);
  std::vector<std::string> ids;
  for (const lesson::Lesson& lesson : play.all()) ids.push_back(lesson.id);
  for (const std::string& id : ids) {
    play.start(id);
    for (std::size_t at = 0; at < play.count(); ++at) {
      SCOPED_TRACE(id + ", " + play.lesson().steps[at].id);
      play.go_to(at);
      EXPECT_EQ(play.at(), at);
      settle(workspace);
      ASSERT_TRUE(play.now().texts) << play.now().fault;
      EXPECT_EQ(play.now().fault, "");
      EXPECT_FALSE(play.now().texts->text.empty());
      EXPECT_EQ(play.now().texts->published.size(), play.step().published.size());
      for (const StepTexts::Published& one : play.now().texts->published) EXPECT_TRUE(one.within);
      if (!play.step().ask) continue;
      EXPECT_TRUE(play.is_open());
      play.answer(play.now().texts->right);
      settle(workspace);
      ASSERT_TRUE(play.now().judged) << play.now().fault;
      EXPECT_TRUE(play.now().judged->right) << play.now().judged->words;
      EXPECT_FALSE(play.is_open());
    }
  }
  EXPECT_TRUE(workspace.shared.notices.all().empty());
}

TEST(LessonPlay, keeps_what_was_answered_and_says_what_cannot_be_read) {
  Workspace workspace("");
  workspace.play_lesson("six-ways");
  LessonPlay& play = workspace.lesson;
  EXPECT_THROW(play.answer("6"), Error);  // the first step asks nothing
  EXPECT_THROW(play.run(), Error);
  workspace.go_to_step(1);
  settle(workspace);
  play.answer("a lot");
  settle(workspace);
  EXPECT_FALSE(play.now().judged);
  EXPECT_EQ(play.now().fault, "'a lot' is no number; write one such as 12.5");
  EXPECT_TRUE(play.is_open());
  play.answer("1");
  settle(workspace);
  ASSERT_TRUE(play.now().judged);
  EXPECT_FALSE(play.now().judged->right);
  workspace.go_to_step(2);
  EXPECT_TRUE(play.is_open());
  play.reveal();
  EXPECT_FALSE(play.is_open());
  EXPECT_FALSE(play.now().judged);
  workspace.go_to_step(1);
  EXPECT_TRUE(play.now().judged);
  EXPECT_EQ(play.now().typed, "1");
  EXPECT_THROW(workspace.go_to_step(7), Error);
  EXPECT_EQ(play.at(), 1u);
  EXPECT_THROW(workspace.play_lesson("cookery"), Error);
}

TEST(LessonPlay, brings_its_scene_and_takes_it_away_again) {
  Workspace workspace("");
  workspace.show(llama_70b_graph(), "");
  workspace.settings.panel = "values";
  workspace.document().set_option("method", "sequential");
  const Asked before = workspace.document().asked();
  const std::uint64_t own = workspace.document().id;
  workspace.play_lesson("kv-cache");
  settle(workspace);
  EXPECT_EQ(workspace.documents().size(), 2u);
  EXPECT_EQ(workspace.document().model->name, "llama-2-7b");
  EXPECT_TRUE(workspace.document().model->shapes_only);
  EXPECT_EQ(workspace.document().asked(), asked_by(workspace.lesson.scene().request));
  EXPECT_FALSE(workspace.lesson.to_show.empty());
  workspace.go_to_step(1);  // of another model, in the same tab
  settle(workspace);
  EXPECT_EQ(workspace.documents().size(), 2u);
  EXPECT_EQ(workspace.document().model->name, "llama-3-8b");
  // the student changes something, and comes back
  workspace.document().set_option("method", "mmap_assign");
  workspace.show_document(0);
  workspace.show_lesson_scene();
  settle(workspace);
  EXPECT_EQ(workspace.shown_document(), 1u);
  EXPECT_EQ(workspace.document().asked(), asked_by(workspace.lesson.scene().request));
  // or closes the model
  workspace.close_model();
  workspace.go_to_step(0);
  settle(workspace);
  EXPECT_EQ(workspace.document().model->name, "llama-2-7b");
  workspace.leave_lesson();
  settle(workspace);
  EXPECT_EQ(workspace.documents().size(), 1u);
  EXPECT_EQ(workspace.document().id, own);
  EXPECT_EQ(workspace.document().asked(), before);
  EXPECT_EQ(workspace.settings.panel, "values");
  EXPECT_THROW(workspace.leave_lesson(), Error);
  EXPECT_THROW(workspace.go_to_step(0), Error);
}

TEST(LessonPlay, leaves_the_start_page_as_it_was) {
  Workspace workspace("");
  const Asked before = workspace.document().asked();
  workspace.play_lesson("mmap");
  settle(workspace);
  EXPECT_TRUE(workspace.document().model);
  workspace.play_lesson("order");  // another one, without leaving this one
  settle(workspace);
  EXPECT_EQ(workspace.documents().size(), 1u);
  workspace.leave_lesson();
  EXPECT_FALSE(workspace.document().model);
  EXPECT_EQ(workspace.document().asked(), before);
}

TEST(LessonPlay, runs_a_step_in_a_job) {
  Workspace workspace("");
  workspace.play_lesson("sparsity");
  LessonPlay& play = workspace.lesson;
  workspace.go_to_step(play.count() - 1);
  settle(workspace);
  play.run();
  EXPECT_TRUE(play.runs());
  settle(workspace);
  EXPECT_FALSE(play.runs());
  ASSERT_TRUE(play.now().ran) << (workspace.shared.notices.all().empty()
                                      ? ""
                                      : workspace.shared.notices.all().front().text);
  EXPECT_FALSE(play.now().ran->lines.empty());
  EXPECT_FALSE(play.now().ran->text.empty());
  EXPECT_EQ(play.now().ran->text.find('{'), std::string::npos);
  play.run();
  play.cancel_run();
  settle(workspace);
  EXPECT_FALSE(play.runs());
  play.run();
  workspace.leave_lesson();  // while it runs
  settle(workspace);
}

TEST(LessonPlay, of_a_folder_and_one_that_cannot_be_read) {
  const TemporaryFolder folder;
  std::ofstream(std::filesystem::path(folder.path()) / "broken.json") << "{";
  Workspace workspace("");
  workspace.lesson.folder = std::filesystem::path(folder.path()).string();
  EXPECT_EQ(workspace.lesson.all().size(), 13u);
  ASSERT_EQ(workspace.shared.notices.all().size(), 1u);
  EXPECT_EQ(workspace.shared.notices.all()[0].severity, Severity::warning);
  EXPECT_NE(workspace.shared.notices.all()[0].text.find("broken."), std::string::npos)
      << workspace.shared.notices.all()[0].text;
}

}  // namespace
}  // namespace loadline::gui
