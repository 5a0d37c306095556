// What runs behind the window: jobs, arenas, lessons; and what is remembered.

#include "app/gui/state/base/jobs.h"

#include "app/gui/state/lesson_play.h"
#include "app/gui/state/load/arena.h"
#include "app/gui/state/settings.h"
#include "app/gui/state/workspace.h"
#include "app/lesson/exercises.h"
#include "app/lesson/lesson.h"
#include "core/base/error.h"
#include "core/io/file_system.h"
#include "core/packing/pack.h"
#include "tests/gui/sample_graphs.h"
#include "tests/support/builders.h"

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <fstream>
#include <latch>
#include <thread>

#include <gtest/gtest.h>

namespace loadline::gui {

// --- The newest question alone is answered, whatever the jobs of older ones deliver, and when.

namespace {

void drain(Jobs& jobs) {
  while (!jobs.idle())
    if (!jobs.poll()) std::this_thread::yield();
}

// Until a worker has delivered something, which nobody has polled yet.
void wait_until_finished(Jobs& jobs) {
  while (!jobs.view().empty()) std::this_thread::yield();
}

const auto seven = [](Progress&) { return 7; };
const auto eight = [](Progress&) { return 8; };
const auto fails = [](Progress&) -> int { throw Error(ErrorCode::io, "disk is gone"); };

TEST(Latest, an_answer_arrives) {
  Jobs jobs(1);
  Latest<int> latest;
  bool told = false;
  latest.ask(jobs, "q", seven, [&] { told = true; });
  EXPECT_TRUE(latest.busy());
  EXPECT_FALSE(latest.value());
  drain(jobs);
  EXPECT_TRUE(told);
  EXPECT_FALSE(latest.busy());
  EXPECT_EQ(latest.error(), nullptr);
  ASSERT_TRUE(latest.value());
  EXPECT_EQ(*latest.value(), 7);
}

TEST(Latest, an_older_answer_that_waits_to_be_polled_is_dropped) {
  Jobs jobs(1);
  Latest<int> latest;
  std::string told;
  latest.ask(jobs, "older", seven, [&] { told += "older "; });
  wait_until_finished(jobs);
  latest.ask(jobs, "newer", eight, [&] { told += "newer "; });
  drain(jobs);
  EXPECT_EQ(told, "newer ");
  EXPECT_EQ(*latest.value(), 8);
}

TEST(Latest, an_older_answer_that_comes_later_is_dropped) {
  Jobs jobs(2);
  std::latch running(1);
  std::latch go(1);
  Latest<int> latest;
  latest.ask(jobs, "older", [&](Progress&) {
    running.count_down();
    go.wait();
    return 7;
  });
  running.wait();
  bool told = false;
  latest.ask(jobs, "newer", eight, [&] { told = true; });
  while (!told)
    if (!jobs.poll()) std::this_thread::yield();
  EXPECT_FALSE(latest.busy());
  go.count_down();
  drain(jobs);
  EXPECT_EQ(*latest.value(), 8);
}

TEST(Latest, a_newer_question_stops_the_job_of_the_older_one) {
  Jobs jobs(1);
  std::latch running(1);
  Latest<int> latest;
  latest.ask(jobs, "older", [&](Progress& progress) -> int {
    running.count_down();
    for (;;) progress.check_canceled();
  });
  running.wait();
  latest.ask(jobs, "unstarted", seven);
  latest.ask(jobs, "newest", eight);
  EXPECT_LE(jobs.view().size(), 2u);
  drain(jobs);
  EXPECT_EQ(*latest.value(), 8);
}

TEST(Latest, two_of_them_do_not_replace_each_others_questions) {
  Jobs jobs(1);
  Latest<int> one, other;
  one.ask(jobs, "q", seven);
  other.ask(jobs, "q", eight);
  drain(jobs);
  EXPECT_EQ(*one.value(), 7);
  EXPECT_EQ(*other.value(), 8);
}

TEST(Latest, a_failure_keeps_the_last_answer_until_it_is_dropped) {
  Jobs jobs(1);
  Latest<int> latest;
  latest.ask(jobs, "q", seven);
  drain(jobs);
  latest.ask(jobs, "q", fails);
  drain(jobs);
  EXPECT_EQ(latest.error_text(), "disk is gone");
  EXPECT_FALSE(latest.was_canceled());
  EXPECT_EQ(*latest.value(), 7);
  latest.drop();
  EXPECT_FALSE(latest.value());
  EXPECT_EQ(latest.error_text(), "disk is gone");
  latest.ask(jobs, "q", eight);
  EXPECT_EQ(latest.error(), nullptr);
  drain(jobs);
  EXPECT_EQ(*latest.value(), 8);
}

TEST(Latest, a_canceled_question_says_so) {
  Jobs jobs(1);
  Latest<int> latest;
  latest.ask(jobs, "q", [](Progress& progress) -> int {
    for (;;) progress.check_canceled();
  });
  latest.cancel();
  EXPECT_TRUE(latest.busy());
  drain(jobs);
  EXPECT_TRUE(latest.was_canceled());
}

TEST(Latest, a_withdrawn_question_has_no_answer) {
  Jobs jobs(1);
  Latest<int> latest;
  bool told = false;
  const auto tell = [&] { told = true; };
  latest.set(1);
  latest.ask(jobs, "q", seven, tell);
  wait_until_finished(jobs);
  latest.withdraw();
  drain(jobs);
  EXPECT_EQ(*latest.value(), 1);
  latest.ask(jobs, "q", seven, tell);
  latest.set(2);
  drain(jobs);
  EXPECT_EQ(*latest.value(), 2);
  latest.ask(jobs, "q", seven, tell);
  latest.reset();
  drain(jobs);
  EXPECT_FALSE(latest.value());
  EXPECT_FALSE(told);
}

TEST(Latest, goes_away_while_its_question_is_open) {
  Jobs jobs(1);
  bool told = false;
  {
    Latest<int> latest;
    latest.ask(jobs, "q", seven, [&] { told = true; });
    wait_until_finished(jobs);
  }
  drain(jobs);
  EXPECT_FALSE(told);
}

TEST(Latest, goes_away_inside_its_own_answer) {
  Jobs jobs(1);
  auto latest = std::make_unique<Latest<int>>();
  int got = 0;
  latest->ask(jobs, "q", seven, [&] {
    got = *latest->value();
    latest.reset();
  });
  drain(jobs);
  EXPECT_EQ(got, 7);
  EXPECT_FALSE(latest);
}

TEST(Latest, keeps_a_pointer_that_the_work_made) {
  Jobs jobs(1);
  Latest<int> latest;
  const auto made = std::make_shared<const int>(3);
  latest.ask(jobs, "q", [made](Progress&) { return made; });
  drain(jobs);
  EXPECT_EQ(latest.value(), made);
}

}  // namespace

// --- Background jobs: delivery, errors, replacement, cancellation, shutdown.

namespace {

TEST(Jobs, a_value_arrives_on_the_polling_thread) {
  Jobs jobs(2);
  int got = 0;
  std::thread::id where;
  jobs.post(
      "answer", "", [](Progress&) { return 42; },
      [&](Outcome<int> outcome) {
        got = outcome.value();
        where = std::this_thread::get_id();
      });
  EXPECT_EQ(got, 0);
  drain(jobs);
  EXPECT_EQ(got, 42);
  EXPECT_EQ(where, std::this_thread::get_id());
}

TEST(Jobs, an_error_arrives_as_one) {
  Jobs jobs(1);
  std::vector<std::string> messages;
  const auto note = [&](Outcome<int> outcome) { messages.push_back(outcome.error().what()); };
  jobs.post(
      "a", "", [](Progress&) -> int { throw Error(ErrorCode::io, "disk is gone"); }, note);
  jobs.post(
      "b", "", [](Progress&) -> int { throw std::bad_alloc(); }, note);
  jobs.post(
      "c", "", [](Progress&) -> int { throw std::runtime_error("foreign"); }, note);
  drain(jobs);
  EXPECT_EQ(messages, (std::vector<std::string>{"disk is gone", "out of memory",
                                                "unexpected failure: a fault of this program"}));
}

TEST(Jobs, a_tag_replaces_what_has_not_started) {
  Jobs jobs(1);
  std::latch running(1);
  std::latch go(1);
  std::vector<int> results;
  jobs.post(
      "blocker", "slider",
      [&](Progress&) {
        running.count_down();
        go.wait();
        return 0;
      },
      [&](Outcome<int> outcome) { results.push_back(outcome.value()); });
  running.wait();
  for (int i = 1; i <= 100; ++i)
    jobs.post(
        "move", "slider", [i](Progress&) { return i; },
        [&](Outcome<int> outcome) { results.push_back(outcome.value()); });
  EXPECT_EQ(jobs.view().size(), 2u);
  go.count_down();
  drain(jobs);
  EXPECT_EQ(results, (std::vector<int>{0, 100}));
}

TEST(Jobs, a_tag_stops_what_is_running) {
  Jobs jobs(2);
  std::latch running(1);
  std::vector<std::string> ends;
  const auto note = [&](Outcome<int> outcome) { ends.push_back(outcome.ok() ? "done" : "stopped"); };
  jobs.post(
      "endless", "plan",
      [&](Progress& progress) {
        running.count_down();
        for (;; std::this_thread::yield()) progress.check_canceled();
        return 0;
      },
      note);
  running.wait();
  jobs.post(
      "next", "plan", [](Progress&) { return 1; }, note);
  drain(jobs);
  std::sort(ends.begin(), ends.end());
  EXPECT_EQ(ends, (std::vector<std::string>{"done", "stopped"}));
}

TEST(Jobs, progress_is_seen_and_cancel_reaches_the_worker) {
  Jobs jobs(1);
  std::latch half(1);
  bool canceled = false;
  const JobId id = jobs.post(
      "long", "",
      [&](Progress& progress) {
        progress.add_total(10);
        progress.add(5);
        half.count_down();
        while (true) {
          progress.check_canceled();
          std::this_thread::yield();
        }
        return 0;
      },
      [&](Outcome<int> outcome) { canceled = outcome.error().code() == ErrorCode::canceled; });
  half.wait();
  const JobView view = jobs.view().front();
  EXPECT_EQ(view.name, "long");
  EXPECT_TRUE(view.running);
  EXPECT_EQ(view.fraction, 0.5);
  jobs.cancel(id);
  drain(jobs);
  EXPECT_TRUE(canceled);
}

TEST(Jobs, destruction_stops_what_runs_and_forgets_what_waits) {
  std::atomic<int> started = 0;
  std::atomic<int> delivered = 0;
  {
    Jobs jobs(2);
    std::latch both(2);
    for (int i = 0; i < 50; ++i)
      jobs.post(
          "endless", "",
          [&](Progress& progress) {
            if (started++ < 2) both.count_down();
            while (!progress.canceled()) std::this_thread::yield();
            return 0;
          },
          [&](Outcome<int>) { ++delivered; });
    both.wait();
  }
  EXPECT_EQ(started, 2);
  EXPECT_EQ(delivered, 0);
}

TEST(Jobs, wake_is_called_for_every_delivery) {
  std::atomic<int> woken = 0;
  Jobs jobs(2);
  jobs.set_wake([&] { ++woken; });
  for (int i = 0; i < 20; ++i)
    jobs.post(
        "x", "", [](Progress&) { return 1; }, [](Outcome<int>) {});
  drain(jobs);
  while (woken < 20) std::this_thread::yield();
  EXPECT_EQ(woken, 20);
}

TEST(Jobs, a_delivery_may_post_again) {
  Jobs jobs(1);
  int last = 0;
  std::function<void(int)> chain = [&](int i) {
    jobs.post(
        "link", "chain", [i](Progress&) { return i; },
        [&](Outcome<int> outcome) {
          last = outcome.value();
          if (last < 10) chain(last + 1);
        });
  };
  chain(1);
  drain(jobs);
  EXPECT_EQ(last, 10);
}

}  // namespace

// --- What the arena panel packs, and what it says of it.

namespace {

// As if the panel was drawn until nothing is left to do.
void show(Workspace& workspace) {
  do {
    workspace.poll();
    show_arena(workspace.document());
    if (workspace.document().arena->view.steps) workspace.document().arena->update_steps();
    std::this_thread::yield();
  } while (workspace.busy());
  show_arena(workspace.document());
}

void expect_sound(const ArenaScene& scene) {
  const auto fault = packing::find_fault(scene.of->problem, scene.packing.offsets);
  EXPECT_FALSE(fault) << *fault;
  EXPECT_EQ(scene.of->kinds.size(), scene.of->problem.buffers.size());
  for (std::uint32_t arena = 0; arena < scene.of->arenas; ++arena) {
    EXPECT_EQ(scene.charts[arena].height(), scene.packing.arenas[arena].height);
    EXPECT_GE(scene.greedy[arena].value(), scene.packing.arenas[arena].lower_bound);
    for (const view::CurvePoint& point : scene.charts[arena].taken())
      EXPECT_GE(static_cast<double>(scene.packing.arenas[arena].lower_bound), point.y);
  }
  for (std::uint32_t i = 0; i < scene.of->problem.buffers.size(); ++i)
    EXPECT_FALSE(scene.of->name(i).empty());
}

TEST(Arena, TheExampleNeedsNoModel) {
  Workspace workspace("");
  workspace.document().arena->view.steps = true;
  show(workspace);
  ASSERT_TRUE(workspace.document().arena->scene());
  const ArenaScene& scene = *workspace.document().arena->scene();
  expect_sound(scene);
  EXPECT_EQ(scene.packing.height(), packing::kTeachingCapacity);
  EXPECT_TRUE(scene.packing.proven_optimal());
  EXPECT_GT(scene.greedy[0].value(), packing::kTeachingCapacity);
  ASSERT_TRUE(workspace.document().arena->steps());
  const ArenaSteps& steps = *workspace.document().arena->steps();
  EXPECT_EQ(steps.greedy.end, packing::TraceEnd::too_high);
  EXPECT_EQ(steps.search.end, packing::TraceEnd::packed);
  EXPECT_EQ(steps.capacity, packing::kTeachingCapacity);
  EXPECT_EQ(step_text(steps, steps.greedy, 0), "Nothing is placed yet");
  EXPECT_EQ(loadline::testing::facts(step_text(steps, steps.search, steps.search.steps.size())), "1.00");
  const auto back = std::find_if(
      steps.search.steps.begin(), steps.search.steps.end(),
      [](const packing::PackingStep& s) { return s.event == packing::PackingEvent::taken_back; });
  ASSERT_NE(back, steps.search.steps.end());
  EXPECT_EQ(step_text(steps, steps.search, static_cast<std::size_t>(back - steps.search.steps.begin()) + 1),
            "Removes E: no room is left for the rest at some tick");
  const auto failing =
      std::find_if(steps.greedy.steps.begin(), steps.greedy.steps.end(),
                   [](const packing::PackingStep& s) { return s.event == packing::PackingEvent::too_high; });
  ASSERT_NE(failing, steps.greedy.steps.end());
  const auto at = static_cast<std::size_t>(failing - steps.greedy.steps.begin()) + 1;
  EXPECT_EQ(loadline::testing::facts(step_text(steps, steps.greedy, at)), "1.12 1.00");
}

TEST(Arena, SaysWhenThereIsNothingToSearch) {
  Workspace workspace("");
  workspace.document().arena->view.steps = true;
  workspace.document().arena->options.capacity = packing::kTeachingCapacity / 2;
  show(workspace);
  ASSERT_TRUE(workspace.document().arena->steps());
  const ArenaSteps& steps = *workspace.document().arena->steps();
  EXPECT_TRUE(steps.search.steps.empty());
  EXPECT_EQ(step_text(steps, steps.search, 0), "Search complete: no packing is that low");
}

TEST(Arena, PacksThePassAndEverySpaceOfThePlan) {
  Workspace workspace("");
  workspace.show(preset_graph("demo"), "");
  show(workspace);
  ASSERT_TRUE(workspace.document().arena->scene());
  EXPECT_EQ(workspace.document().arena->scene()->of->source, ArenaSource::pass)
      << "what is most worth a look comes first";
  const auto sources = workspace.document().arena->sources(arena_model(workspace.document()));
  EXPECT_GE(sources.size(), 3u);
  for (const ArenaSource source : sources) {
    workspace.document().arena->choose(source, arena_model(workspace.document()));
    show(workspace);
    ASSERT_TRUE(workspace.document().arena->scene()) << workspace.document().arena->error();
    EXPECT_EQ(workspace.document().arena->scene()->of->source, source);
    expect_sound(*workspace.document().arena->scene());
  }
  workspace.document().arena->choose(ArenaSource::device, arena_model(workspace.document()));
  show(workspace);
  const ArenaProblem& device = *workspace.document().arena->scene()->of;
  std::size_t tensors = 0;
  for (std::uint32_t i = 0; i < device.problem.buffers.size(); ++i) tensors += device.tensor(i).has_value();
  EXPECT_GT(tensors, 0u);
  EXPECT_THROW(workspace.document().arena->choose(ArenaSource::file, arena_model(workspace.document())),
               Error);
}

TEST(Arena, FollowsThePlanAndThePass) {
  Workspace workspace("");
  workspace.show(preset_graph("demo"), "");
  show(workspace);
  const auto before = workspace.document().arena->scene();
  workspace.document().load.set_option("seq", std::to_string(2 * kFirstSequence));
  show(workspace);
  EXPECT_NE(workspace.document().arena->scene(), before);
  EXPECT_GT(workspace.document().arena->scene()->packing.height(), before->packing.height());
  workspace.document().arena->choose(ArenaSource::device, arena_model(workspace.document()));
  show(workspace);
  const auto ring = workspace.document().arena->scene();
  workspace.document().load.set_option("method", "sequential");
  show(workspace);
  EXPECT_NE(workspace.document().arena->scene(), ring);
  show_arena(workspace.document());
  EXPECT_FALSE(workspace.busy()) << "nothing has changed: nothing is packed again";
}

TEST(Arena, AModelThatGoesTakesItsArenaAlong) {
  Workspace workspace("");
  workspace.show(preset_graph("demo"), "");
  show(workspace);
  const std::weak_ptr<const ArenaScene> scene = workspace.document().arena->scene();
  workspace.close_model();
  EXPECT_FALSE(workspace.document().arena->scene());
  EXPECT_TRUE(scene.expired());
  show(workspace);
  EXPECT_EQ(workspace.document().arena->scene()->of->source, ArenaSource::example);
}

TEST(Arena, OpensProblemFiles) {
  const loadline::testing::TemporaryFolder folder;
  loadline::testing::write_file(folder / "two.csv",
                                "id,lower,upper,size,arena\nodd\x1b name,0,4,100,0\nb,2,6,50,0\nc,0,1,7,1\n");
  Workspace workspace("");
  workspace.open(folder / "two.csv");
  EXPECT_EQ(workspace.settings.panel, "arena");
  show(workspace);
  ASSERT_TRUE(workspace.document().arena->scene());
  const ArenaScene& scene = *workspace.document().arena->scene();
  expect_sound(scene);
  EXPECT_EQ(scene.of->title, "two.csv");
  EXPECT_EQ(scene.of->arenas, 2u);
  EXPECT_EQ(scene.packing.arenas[0].height, 150u);
  EXPECT_EQ(scene.packing.arenas[1].height, 7u);
  workspace.show(tiny_graph(), "");
  show(workspace);
  EXPECT_EQ(workspace.document().arena->scene()->of->source, ArenaSource::file) << "it stays beside a model";

  loadline::testing::write_file(folder / "bad.csv", "id,lower,upper,size\na,5,3,1\n");
  workspace.open(folder / "bad.csv");
  show(workspace);
  ASSERT_FALSE(workspace.services.notices.all().empty());
  EXPECT_NE(workspace.services.notices.all().back().text.find("'a'"), std::string::npos)
      << workspace.services.notices.all().back().text;
  EXPECT_EQ(workspace.document().arena->scene()->of->title, "two.csv") << "the last good one stays";
}

TEST(Arena, SaysWhetherTheCapacityIsKept) {
  Workspace workspace("");
  const auto verdict = [&](std::uint64_t capacity) {
    workspace.document().arena->options.capacity = capacity;
    show(workspace);
    return capacity_text(*workspace.document().arena->scene(), 0);
  };
  EXPECT_EQ(verdict(packing::kTeachingCapacity), "Fits to the last byte");
  EXPECT_EQ(verdict(packing::kTeachingCapacity - 1), "Cannot fit (proved): 1 B more is needed at least");
  EXPECT_TRUE(verdict(2 * packing::kTeachingCapacity).starts_with("Fits, "));
}

TEST(Arena, CanBeCanceledAndTakenUpAgain) {
  Workspace workspace("");
  show_arena(workspace.document());
  workspace.document().arena->cancel();
  while (workspace.busy()) workspace.poll();
  if (workspace.document().arena->canceled()) {  // else it was faster
    EXPECT_EQ(workspace.document().arena->error(), "");
    show_arena(workspace.document());
    EXPECT_FALSE(workspace.busy()) << "not of itself";
    workspace.document().arena->retry();
  }
  show(workspace);
  EXPECT_TRUE(workspace.document().arena->scene());
}

TEST(Arena, StepsCanBeCanceledAndTakenUpAgain) {
  Workspace workspace("");
  show(workspace);
  workspace.document().arena->update_steps();
  workspace.document().arena->cancel();
  while (workspace.busy()) workspace.poll();
  if (workspace.document().arena->steps_canceled()) {  // else it was faster
    EXPECT_EQ(workspace.document().arena->steps_error(), "") << "it did not fail";
    EXPECT_FALSE(workspace.document().arena->canceled()) << "the packing is there";
    workspace.document().arena->update_steps();
    EXPECT_FALSE(workspace.busy()) << "not of itself";
    const auto scene = workspace.document().arena->scene();
    workspace.document().arena->retry();
    workspace.document().arena->view.steps = true;
    show(workspace);
    EXPECT_EQ(workspace.document().arena->scene(), scene) << "nor is it packed again";
  }
  workspace.document().arena->update_steps();
  while (workspace.busy()) workspace.poll();
  EXPECT_TRUE(workspace.document().arena->steps());
}

TEST(Arena, StepsThatWereNotWorkedOutInTimeSaySo) {
  Workspace workspace("");
  show(workspace);
  ArenaSteps steps;
  steps.of = workspace.document().arena->scene();
  steps.greedy.end = packing::TraceEnd::gave_up;
  EXPECT_EQ(step_text(steps, steps.greedy, 0), "Not finished in time");
}

TEST(Arena, TooManyBuffersAreNotTraced) {
  const loadline::testing::TemporaryFolder folder;
  std::string rows = "id,lower,upper,size\n";
  for (int i = 0; i < 5000; ++i) rows += std::to_string(i) + ",0,1,1\n";
  loadline::testing::write_file(folder / "many.csv", rows);
  Workspace workspace("");
  workspace.document().arena->view.steps = true;
  workspace.open(folder / "many.csv");
  show(workspace);
  EXPECT_EQ(workspace.document().arena->scene()->packing.height(), 5000u);
  EXPECT_FALSE(workspace.document().arena->steps());
}

}  // namespace

// --- Lessons in the window, without a window: texts, answers, scenes, runs, and what is left behind.

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
  EXPECT_TRUE(workspace.services.notices.all().empty());
}

TEST(LessonPlay, keeps_what_was_answered_and_says_what_cannot_be_read) {
  Workspace workspace("");
  workspace.stage.play("six-ways");
  LessonPlay& play = workspace.lesson;
  EXPECT_THROW(play.answer("6"), Error);  // the first step asks nothing
  EXPECT_THROW(play.run(), Error);
  workspace.stage.go_to(1);
  settle(workspace);
  play.answer("a lot");
  settle(workspace);
  EXPECT_FALSE(play.now().judged);
  EXPECT_EQ(loadline::testing::facts(play.now().fault), "'a lot' 12.5");
  EXPECT_TRUE(play.is_open());
  play.answer("1");
  settle(workspace);
  ASSERT_TRUE(play.now().judged);
  EXPECT_FALSE(play.now().judged->right);
  workspace.stage.go_to(2);
  EXPECT_TRUE(play.is_open());
  play.reveal();
  EXPECT_FALSE(play.is_open());
  EXPECT_FALSE(play.now().judged);
  workspace.stage.go_to(1);
  EXPECT_TRUE(play.now().judged);
  EXPECT_EQ(play.now().typed, "1");
  EXPECT_THROW(workspace.stage.go_to(7), Error);
  EXPECT_EQ(play.at(), 1u);
  EXPECT_THROW(workspace.stage.play("cookery"), Error);
}

TEST(LessonPlay, brings_its_scene_and_takes_it_away_again) {
  Workspace workspace("");
  workspace.show(llama_70b_graph(), "");
  workspace.settings.panel = "values";
  workspace.document().load.set_option("method", "sequential");
  const Asked before = workspace.document().load.asked();
  const std::uint64_t own = workspace.document().id;
  workspace.stage.play("kv-cache");
  settle(workspace);
  EXPECT_EQ(workspace.documents().size(), 2u);
  EXPECT_EQ(workspace.document().model->name, "llama-2-7b");
  EXPECT_TRUE(workspace.document().model->shapes_only);
  EXPECT_EQ(workspace.document().load.asked(), asked_by(workspace.lesson.scene().request));
  EXPECT_FALSE(workspace.lesson.to_show.empty());
  workspace.stage.go_to(1);  // of another model, in the same tab
  settle(workspace);
  EXPECT_EQ(workspace.documents().size(), 2u);
  EXPECT_EQ(workspace.document().model->name, "llama-3-8b");
  // the student changes something, and comes back
  workspace.document().load.set_option("method", "mmap_assign");
  workspace.show_document(0);
  workspace.stage.show_scene();
  settle(workspace);
  EXPECT_EQ(workspace.shown_document(), 1u);
  EXPECT_EQ(workspace.document().load.asked(), asked_by(workspace.lesson.scene().request));
  // or closes the model, and the lesson with it
  workspace.close_model();
  settle(workspace);
  EXPECT_FALSE(workspace.lesson.plays());
  EXPECT_EQ(workspace.documents().size(), 1u);
  EXPECT_EQ(workspace.document().id, own);
  EXPECT_EQ(workspace.document().load.asked(), before);
  EXPECT_EQ(workspace.settings.panel, "values");
  EXPECT_THROW(workspace.stage.leave(), Error);
  EXPECT_THROW(workspace.stage.go_to(0), Error);
}

TEST(LessonPlay, leaves_the_start_page_as_it_was) {
  Workspace workspace("");
  const Asked before = workspace.document().load.asked();
  workspace.stage.play("mmap");
  settle(workspace);
  EXPECT_TRUE(workspace.document().model);
  workspace.stage.play("order");  // another one, without leaving this one
  settle(workspace);
  EXPECT_EQ(workspace.documents().size(), 1u);
  workspace.stage.leave();
  EXPECT_FALSE(workspace.document().model);
  EXPECT_EQ(workspace.document().load.asked(), before);
}

// A student who comes back finds the step and the answers where they were left, unless all was done.
TEST(Lessons, GoOnWhereTheyWereLeft) {
  Workspace workspace("");
  workspace.stage.play("order");
  settle(workspace);
  workspace.stage.go_to(1);
  workspace.lesson.now().typed = "12";
  workspace.stage.leave();
  EXPECT_EQ(workspace.lesson.left_at("order")->first, 1u);
  EXPECT_FALSE(workspace.lesson.left_at("mmap"));
  workspace.stage.play("mmap");
  EXPECT_EQ(workspace.lesson.at(), 0u);
  workspace.stage.play("order");
  EXPECT_EQ(workspace.lesson.at(), 1u);
  EXPECT_EQ(workspace.lesson.now().typed, "12");
  workspace.stage.leave();
  settle(workspace);
}

// A finished lesson says so and keeps its answers, until somebody begins it again.
TEST(Lessons, ThatAreFinishedSaySo) {
  Workspace workspace("");
  workspace.stage.play("order");
  settle(workspace);
  LessonPlay& play = workspace.lesson;
  EXPECT_THROW(play.finish(), Error) << "there are more steps";
  std::size_t asked = 0;
  for (std::size_t at = 0; at < play.count(); ++at) {
    workspace.stage.go_to(at);
    settle(workspace);
    if (!play.step().ask) continue;
    play.answer(asked++ == 0 ? play.now().texts->right : "0");
    settle(workspace);
  }
  play.finish();
  EXPECT_TRUE(play.is_at_end());
  EXPECT_EQ(play.score().asked, asked);
  EXPECT_EQ(play.score().right, 1u);
  const std::size_t last = play.at();
  ASSERT_NE(play.next_lesson(), nullptr);
  const std::string next = play.next_lesson()->id;
  EXPECT_NE(next, "order");
  workspace.stage.leave();
  EXPECT_TRUE(play.finished.contains("order"));
  workspace.stage.play("order");
  EXPECT_TRUE(play.is_at_end());
  EXPECT_EQ(play.at(), last);
  workspace.stage.go_to(last - 1);
  EXPECT_FALSE(play.is_at_end());
  play.begin_again();
  EXPECT_EQ(play.at(), 0u);
  EXPECT_EQ(play.score().right, 0u);
  EXPECT_FALSE(play.finished.contains("order"));
  workspace.stage.play(next);
  EXPECT_EQ(play.lesson().id, next);
  EXPECT_FALSE(play.is_at_end());
  workspace.stage.leave();
  settle(workspace);
}

TEST(LessonPlay, runs_a_step_in_a_job) {
  Workspace workspace("");
  workspace.stage.play("sparsity");
  LessonPlay& play = workspace.lesson;
  workspace.stage.go_to(play.count() - 1);
  settle(workspace);
  play.run();
  EXPECT_TRUE(play.runs());
  settle(workspace);
  EXPECT_FALSE(play.runs());
  ASSERT_TRUE(play.now().ran) << (workspace.services.notices.all().empty()
                                      ? ""
                                      : workspace.services.notices.all().front().text);
  EXPECT_FALSE(play.now().ran->lines.empty());
  EXPECT_FALSE(play.now().ran->text.empty());
  EXPECT_EQ(play.now().ran->text.find('{'), std::string::npos);
  play.run();
  play.cancel_run();
  settle(workspace);
  EXPECT_FALSE(play.runs());
  play.run();
  workspace.stage.leave();  // while it runs
  settle(workspace);
}

TEST(LessonPlay, of_a_folder_and_one_that_cannot_be_read) {
  const io::TemporaryFolder folder;
  std::ofstream(std::filesystem::path(folder.path()) / "broken.json") << "{";
  Workspace workspace("");
  workspace.lesson.folder = std::filesystem::path(folder.path()).string();
  EXPECT_EQ(workspace.lesson.all().size(), 13u);
  ASSERT_EQ(workspace.services.notices.all().size(), 1u);
  EXPECT_EQ(workspace.services.notices.all()[0].severity, graph::Severity::warning);
  EXPECT_NE(workspace.services.notices.all()[0].text.find("broken."), std::string::npos)
      << workspace.services.notices.all()[0].text;
}

}  // namespace

// --- What is remembered comes back, and a wrong file is no reason not to start.

namespace {

WindowState sample() {
  WindowState state;
  state.dark = false;
  state.follows_desktop = false;
  state.favorites = {"/models/kept"};
  state.layout = {.tree = 210.5f,
                  .inspector = 300,
                  .timeline = 0,
                  .show_tree = true,
                  .show_inspector = false,
                  .show_timeline = true};
  state.scale = 1.5f;
  state.width = 1600;
  state.height = 900;
  state.recent = {"/models/a b", "org/name"};
  return state;
}

TEST(WindowState, ComesBack) {
  EXPECT_EQ(parse_state(state_text(sample())), sample());
  const loadline::testing::TemporaryFolder folder;
  const std::string path = folder / "new/window.json";
  EXPECT_EQ(read_state(path), WindowState());
  write_state(sample(), path);
  EXPECT_EQ(read_state(path), sample());
}

TEST(WindowState, ForgivesWhatItCannotRead) {
  for (const char* const text :
       {"", "{", "[]", "null", "\xff\xfe", "{\"dark\": 7}", "{\"tree\": \"wide\"}", "{\"tree\": -5}",
        "{\"scale\": 100}", "{\"scale\": 0.01}", "{\"tree\": 1e300}", "{\"width\": -1}", "{\"recent\": 3}",
        "{\"recent\": [1, null, {}]}"})
    EXPECT_EQ(parse_state(text), WindowState()) << text;
  std::string many = "{\"recent\": [";
  for (int i = 0; i < 100; ++i) many += (i == 0 ? "\"" : ",\"") + std::to_string(i) + "\"";
  EXPECT_EQ(parse_state(many + "]}").recent.size(), kMostRecent);
  EXPECT_TRUE(parse_state("{\"recent\": [\"" + std::string(5000, 'x') + "\"]}").recent.empty());
  WindowState broken = sample();
  broken.recent = {"\xff", "fine"};
  EXPECT_EQ(parse_state(state_text(broken)).recent, std::vector<std::string>{"fine"});
}

TEST(WindowState, RemembersThePathsOpenedLast) {
  Remembered remembered;
  const std::vector<std::string>& recent = remembered.recent;
  for (int i = 0; i < 20; ++i) remember(remembered, std::to_string(i), i);
  remember(remembered, "15", 99);
  EXPECT_EQ(recent.size(), kMostRecent);
  EXPECT_EQ(recent[0], "15");
  EXPECT_EQ(recent[1], "19");
  EXPECT_EQ(std::ranges::count(recent, "15"), 1);
  EXPECT_EQ(remembered.used.at("15"), 99);
  EXPECT_EQ(remembered.used.at("0"), 0);
  for (std::size_t i = 0; i < 2 * kMostUsedPaths; ++i) remember(remembered, "at " + std::to_string(i), 1000);
  EXPECT_EQ(remembered.used.size(), kMostUsedPaths);
}

}  // namespace

}  // namespace loadline::gui
