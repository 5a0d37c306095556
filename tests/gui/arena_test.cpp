// What the arena panel packs, and what it says of it.
#include "app/gui/state/workspace.h"
#include "core/base/error.h"
#include "core/packing/pack.h"
#include "tests/gui/sample_graphs.h"
#include "tests/support/builders.h"

#include <algorithm>
#include <thread>

#include <gtest/gtest.h>

namespace loadline::gui {
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
  Workspace workspace("");
  workspace.document().arena->view.steps = true;
  show(workspace);
  ASSERT_TRUE(workspace.document().arena->scene());
  const ArenaScene& scene = *workspace.document().arena->scene();
  expect_sound(scene);
  EXPECT_EQ(scene.packing.height(), kTeachingCapacity);
  EXPECT_TRUE(scene.packing.proven_optimal());
  EXPECT_GT(scene.greedy[0].value(), kTeachingCapacity);
  ASSERT_TRUE(workspace.document().arena->steps());
  const ArenaSteps& steps = *workspace.document().arena->steps();
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
  Workspace workspace("");
  workspace.document().arena->view.steps = true;
  workspace.document().arena->options.capacity = kTeachingCapacity / 2;
  show(workspace);
  ASSERT_TRUE(workspace.document().arena->steps());
  const ArenaSteps& steps = *workspace.document().arena->steps();
  EXPECT_TRUE(steps.search.steps.empty());
  EXPECT_EQ(step_text(steps, steps.search, 0), "Everything was tried: no packing is that low");
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
  workspace.document().set_option("seq", std::to_string(2 * kFirstSequence));
  show(workspace);
  EXPECT_NE(workspace.document().arena->scene(), before);
  EXPECT_GT(workspace.document().arena->scene()->packing.height(), before->packing.height());
  workspace.document().arena->choose(ArenaSource::device, arena_model(workspace.document()));
  show(workspace);
  const auto ring = workspace.document().arena->scene();
  workspace.document().set_option("method", "sequential");
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
  ASSERT_FALSE(workspace.shared.notices.all().empty());
  EXPECT_NE(workspace.shared.notices.all().back().text.find("'a'"), std::string::npos)
      << workspace.shared.notices.all().back().text;
  EXPECT_EQ(workspace.document().arena->scene()->of->title, "two.csv") << "the last good one stays";
}

TEST(Arena, SaysWhetherTheCapacityIsKept) {
  Workspace workspace("");
  const auto verdict = [&](std::uint64_t capacity) {
    workspace.document().arena->options.capacity = capacity;
    show(workspace);
    return capacity_text(*workspace.document().arena->scene(), 0);
  };
  EXPECT_EQ(verdict(kTeachingCapacity), "Fits to the last byte");
  EXPECT_EQ(verdict(kTeachingCapacity - 1), "Cannot fit (proved): 1 B more is needed at least");
  EXPECT_TRUE(verdict(2 * kTeachingCapacity).starts_with("Fits, "));
}

TEST(Arena, CanBeCancelledAndTakenUpAgain) {
  Workspace workspace("");
  show_arena(workspace.document());
  workspace.document().arena->cancel();
  while (workspace.busy()) workspace.poll();
  if (workspace.document().arena->cancelled()) {  // else it was faster
    EXPECT_EQ(workspace.document().arena->error(), "");
    show_arena(workspace.document());
    EXPECT_FALSE(workspace.busy()) << "not of itself";
    workspace.document().arena->retry();
  }
  show(workspace);
  EXPECT_TRUE(workspace.document().arena->scene());
}

TEST(Arena, StepsCanBeCancelledAndTakenUpAgain) {
  Workspace workspace("");
  show(workspace);
  workspace.document().arena->update_steps();
  workspace.document().arena->cancel();
  while (workspace.busy()) workspace.poll();
  if (workspace.document().arena->steps_cancelled()) {  // else it was faster
    EXPECT_EQ(workspace.document().arena->steps_error(), "") << "it did not fail";
    EXPECT_FALSE(workspace.document().arena->cancelled()) << "the packing is there";
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
  steps.greedy.end = TraceEnd::gave_up;
  EXPECT_EQ(step_text(steps, steps.greedy, 0), "Not worked out in time");
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
}  // namespace loadline::gui
