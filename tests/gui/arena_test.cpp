// What the arena panel packs, and what it says of it.
#include "app/gui/session.h"
#include "core/base/error.h"
#include "core/packing/validator.h"
#include "tests/gui/sample_graphs.h"
#include "tests/support/builders.h"

#include <algorithm>
#include <thread>

#include <gtest/gtest.h>

namespace loadline::gui {
namespace {

// As if the panel was drawn until nothing is left to do.
void show(Session& session) {
  do {
    session.poll();
    session.show_arena();
    if (session.arena().view.steps) session.arena().update_steps();
    std::this_thread::yield();
  } while (session.busy());
  session.show_arena();
}

void expect_sound(const ArenaScene& scene) {
  const auto fault = find_fault(scene.of->problem, scene.packing.offsets);
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
  Session session("");
  session.arena().view.steps = true;
  show(session);
  ASSERT_TRUE(session.arena().scene());
  const ArenaScene& scene = *session.arena().scene();
  expect_sound(scene);
  EXPECT_EQ(scene.packing.height(), kTeachingCapacity);
  EXPECT_TRUE(scene.packing.proven_optimal());
  EXPECT_GT(scene.greedy[0].value(), kTeachingCapacity);
  ASSERT_TRUE(session.arena().steps());
  const ArenaSteps& steps = *session.arena().steps();
  EXPECT_EQ(steps.greedy.end, TraceEnd::too_high);
  EXPECT_EQ(steps.search.end, TraceEnd::packed);
  EXPECT_EQ(steps.capacity, kTeachingCapacity);
  EXPECT_EQ(step_text(steps, steps.greedy, 0), "Nothing is placed yet");
  EXPECT_EQ(step_text(steps, steps.search, steps.search.steps.size()), "All placed: ends at 1.00 MiB");
  const auto back = std::find_if(steps.search.steps.begin(), steps.search.steps.end(),
                                 [](const PackingStep& s) { return s.event == PackingEvent::taken_back; });
  ASSERT_NE(back, steps.search.steps.end());
  EXPECT_EQ(step_text(steps, steps.search, static_cast<std::size_t>(back - steps.search.steps.begin()) + 1),
            "Takes E back: some tick has no room left for the rest");
  const auto failing = std::find_if(steps.greedy.steps.begin(), steps.greedy.steps.end(),
                                    [](const PackingStep& s) { return s.event == PackingEvent::too_high; });
  ASSERT_NE(failing, steps.greedy.steps.end());
  const auto at = static_cast<std::size_t>(failing - steps.greedy.steps.begin()) + 1;
  EXPECT_NE(step_text(steps, steps.greedy, at).find("ends at 1.12 MiB, capacity 1.00 MiB"), std::string::npos)
      << step_text(steps, steps.greedy, at);
}

TEST(Arena, SaysWhenThereIsNothingToSearch) {
  Session session("");
  session.arena().view.steps = true;
  ArenaOptions options;
  options.capacity = kTeachingCapacity / 2;
  session.arena().set_options(options);
  show(session);
  ASSERT_TRUE(session.arena().steps());
  const ArenaSteps& steps = *session.arena().steps();
  EXPECT_TRUE(steps.search.steps.empty());
  EXPECT_EQ(step_text(steps, steps.search, 0), "Everything was tried: no packing is that low");
}

TEST(Arena, PacksThePassAndEverySpaceOfThePlan) {
  Session session("");
  session.show(preset_graph("demo"), "");
  show(session);
  ASSERT_TRUE(session.arena().scene());
  EXPECT_EQ(session.arena().scene()->of->source, ArenaSource::pass)
      << "what is most worth a look comes first";
  const auto sources = session.arena().sources(session.arena_model());
  EXPECT_GE(sources.size(), 3u);
  for (const ArenaSource source : sources) {
    session.set_arena(source);
    show(session);
    ASSERT_TRUE(session.arena().scene()) << session.arena().error();
    EXPECT_EQ(session.arena().scene()->of->source, source);
    expect_sound(*session.arena().scene());
  }
  session.set_arena(ArenaSource::device);
  show(session);
  const ArenaProblem& device = *session.arena().scene()->of;
  std::size_t tensors = 0;
  for (std::uint32_t i = 0; i < device.problem.buffers.size(); ++i) tensors += device.tensor(i).has_value();
  EXPECT_GT(tensors, 0u);
  EXPECT_THROW(session.set_arena(ArenaSource::file), Error);
}

TEST(Arena, FollowsThePlanAndThePass) {
  Session session("");
  session.show(preset_graph("demo"), "");
  show(session);
  const auto before = session.arena().scene();
  ForwardChoice pass = session.forward_choice();
  pass.sequence *= 2;
  session.set_forward(pass);
  show(session);
  EXPECT_NE(session.arena().scene(), before);
  EXPECT_GT(session.arena().scene()->packing.height(), before->packing.height());
  session.set_arena(ArenaSource::device);
  show(session);
  const auto ring = session.arena().scene();
  PlanChoice choice = session.choice();
  choice.method = "sequential";
  session.set_plan(choice);
  show(session);
  EXPECT_NE(session.arena().scene(), ring);
  session.show_arena();
  EXPECT_FALSE(session.busy()) << "nothing has changed: nothing is packed again";
}

TEST(Arena, AModelThatGoesTakesItsArenaAlong) {
  Session session("");
  session.show(preset_graph("demo"), "");
  show(session);
  const std::weak_ptr<const ArenaScene> scene = session.arena().scene();
  session.close_model();
  EXPECT_FALSE(session.arena().scene());
  EXPECT_TRUE(scene.expired());
  show(session);
  EXPECT_EQ(session.arena().scene()->of->source, ArenaSource::example);
}

TEST(Arena, OpensProblemFiles) {
  const loadline::testing::TemporaryFolder folder;
  loadline::testing::write_file(folder / "two.csv",
                                "id,lower,upper,size,arena\nodd\x1b name,0,4,100,0\nb,2,6,50,0\nc,0,1,7,1\n");
  Session session("");
  session.open(folder / "two.csv");
  EXPECT_EQ(session.panel, "arena");
  show(session);
  ASSERT_TRUE(session.arena().scene());
  const ArenaScene& scene = *session.arena().scene();
  expect_sound(scene);
  EXPECT_EQ(scene.of->title, "two.csv");
  EXPECT_EQ(scene.of->arenas, 2u);
  EXPECT_EQ(scene.packing.arenas[0].height, 150u);
  EXPECT_EQ(scene.packing.arenas[1].height, 7u);
  session.show(tiny_graph(), "");
  show(session);
  EXPECT_EQ(session.arena().scene()->of->source, ArenaSource::file) << "it stays beside a model";

  loadline::testing::write_file(folder / "bad.csv", "id,lower,upper,size\na,5,3,1\n");
  session.open(folder / "bad.csv");
  show(session);
  ASSERT_FALSE(session.notices().empty());
  EXPECT_NE(session.notices().back().text.find("'a'"), std::string::npos) << session.notices().back().text;
  EXPECT_EQ(session.arena().scene()->of->title, "two.csv") << "the last good one stays";
}

TEST(Arena, SaysWhetherTheCapacityIsKept) {
  Session session("");
  const auto verdict = [&](std::uint64_t capacity) {
    ArenaOptions options;
    options.capacity = capacity;
    session.arena().set_options(options);
    show(session);
    return capacity_text(*session.arena().scene(), 0);
  };
  EXPECT_EQ(verdict(kTeachingCapacity), "Fits to the last byte");
  EXPECT_EQ(verdict(kTeachingCapacity - 1), "Cannot fit (proved): 1 B more is needed at least");
  EXPECT_TRUE(verdict(2 * kTeachingCapacity).starts_with("Fits, "));
}

TEST(Arena, CanBeCancelledAndTakenUpAgain) {
  Session session("");
  session.show_arena();
  session.arena().cancel();
  while (session.busy()) session.poll();
  if (session.arena().cancelled()) {  // else it was faster
    EXPECT_EQ(session.arena().error(), "");
    session.show_arena();
    EXPECT_FALSE(session.busy()) << "not of itself";
    session.arena().retry();
  }
  show(session);
  EXPECT_TRUE(session.arena().scene());
}

TEST(Arena, StepsCanBeCancelledAndTakenUpAgain) {
  Session session("");
  show(session);
  session.arena().update_steps();
  session.arena().cancel();
  while (session.busy()) session.poll();
  if (session.arena().steps_cancelled()) {  // else it was faster
    EXPECT_EQ(session.arena().steps_error(), "") << "it did not fail";
    EXPECT_FALSE(session.arena().cancelled()) << "the packing is there";
    session.arena().update_steps();
    EXPECT_FALSE(session.busy()) << "not of itself";
    const auto scene = session.arena().scene();
    session.arena().retry();
    session.arena().view.steps = true;
    show(session);
    EXPECT_EQ(session.arena().scene(), scene) << "nor is it packed again";
  }
  session.arena().update_steps();
  while (session.busy()) session.poll();
  EXPECT_TRUE(session.arena().steps());
}

TEST(Arena, StepsThatWereNotWorkedOutInTimeSaySo) {
  Session session("");
  show(session);
  ArenaSteps steps;
  steps.of = session.arena().scene();
  steps.greedy.end = TraceEnd::gave_up;
  EXPECT_EQ(step_text(steps, steps.greedy, 0), "Not worked out in time");
}

TEST(Arena, TooManyBuffersAreNotTraced) {
  const loadline::testing::TemporaryFolder folder;
  std::string rows = "id,lower,upper,size\n";
  for (int i = 0; i < 5000; ++i) rows += std::to_string(i) + ",0,1,1\n";
  loadline::testing::write_file(folder / "many.csv", rows);
  Session session("");
  session.arena().view.steps = true;
  session.open(folder / "many.csv");
  show(session);
  EXPECT_EQ(session.arena().scene()->packing.height(), 5000u);
  EXPECT_FALSE(session.arena().steps());
}

}  // namespace
}  // namespace loadline::gui
