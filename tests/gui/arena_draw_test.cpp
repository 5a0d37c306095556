// The arena panel under the mouse and under scripts.
#include "app/gui/frame/gui_app.h"
#include "app/gui/panels/arena_plot.h"
#include "tests/gui/null_window.h"
#include "tests/gui/sample_graphs.h"
#include "tests/support/builders.h"

#include <functional>
#include <limits>

#include <gtest/gtest.h>
#include <imgui.h>

namespace loadline::gui {
namespace {

void play(GuiApp& app, const std::string& text) { play_script(app, parse_script(text, "s"), "s"); }

std::string refusal(GuiApp& app, const std::string& text) {
  try {
    play(app, text);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

void move_everywhere(GuiApp& app, int width, int height) {
  for (int y = 60; y < height; y += 70)
    for (int x = 20; x < width; x += 110) {
      app.window().set_mouse(static_cast<float>(x), static_cast<float>(y), false);
      app.frame();
      app.frame();
    }
}

TEST(SmokeArenaPanel, BothViewsAtEverySizeUnderTheMouse) {
  for (const bool model : {false, true}) {
    const auto window = open_null_window({});
    GuiApp app(*window, "");
    if (model) app.workspace().show(preset_graph("demo"), "");
    play(app, "panel arena\narena-time 0.1\nwait\n");
    for (const char* view : {"packing", "steps"})
      for (const auto& [width, height] :
           {std::pair(kLeastWidth, kLeastHeight), std::pair(1600, 900), std::pair(420, 260)}) {
        window->set_size(width, height);
        play(app, std::string("arena-view ") + view + "\nframes 2\nwait\nframes 2\n");
        app.workspace().settings.dark = !app.workspace().settings.dark;
        move_everywhere(app, width, height);
      }
  }
}

TEST(ArenaPanel, ScriptsDriveIt) {
  const auto window = open_null_window({});
  GuiApp app(*window, "");
  const loadline::testing::TemporaryFolder folder;
  loadline::testing::write_file(folder / "p.csv", "id,lower,upper,size,arena\na,0,4,100,0\nb,2,6,50,1\n");
  app.workspace().show(preset_graph("demo"), "");
  play(app,
       "wait\npanel arena\narena device\narena-time 0.1\narena-threads 2\narena-capacity 1GiB\nwait\n"
       "arena-zoom 0.25 0.5 0 0.5\nframes 2\n");
  ArenaWork& work = *app.workspace().document().arena;
  EXPECT_EQ(work.scene()->of->source, ArenaSource::device);
  EXPECT_EQ(work.options.threads, 2u);
  EXPECT_EQ(work.options.seconds, 0.1);
  EXPECT_EQ(work.options.capacity, 1u << 30);
  EXPECT_EQ(work.view.time, (PlotRange{0.25, 0.5}));
  EXPECT_EQ(work.view.height, (PlotRange{0, 0.5}));
  play(app,
       "arena example\narena-capacity none\nwait\narena-zoom\narena-view steps\narena-rule start\nwait\n"
       "frames 2\nwait\narena-step end\nframes 2\n");
  ASSERT_TRUE(work.steps());
  EXPECT_EQ(greedy_rules()[work.steps()->rule].id, "start");
  EXPECT_EQ(work.view.step, work.steps()->length());
  EXPECT_EQ(refusal(app, "arena nowhere\n"),
            "s: line 1: no arena 'nowhere'; there are: device, host, staging, pass, file, example");
  EXPECT_NE(refusal(app, "arena file\n").find("nothing to pack of 'file'"), std::string::npos);
  EXPECT_EQ(refusal(app, "arena-step 1000\n"),
            "s: line 1: '1000' is not a number between 0 and " + std::to_string(work.steps()->length()));
  EXPECT_EQ(refusal(app, "arena-view pie\n"), "s: line 1: no view 'pie'; there are: packing, steps");
  EXPECT_EQ(refusal(app, "arena-zoom 0.5 0.5\n"), "s: line 1: '0.5 0.5' is not TIME0 TIME1 [LOW HIGH]");
  EXPECT_EQ(refusal(app, "arena-zoom 0 1 0 1 0\n"), "s: line 1: '0 1 0 1 0' is not TIME0 TIME1 [LOW HIGH]");
  EXPECT_EQ(refusal(app, "arena-zoom 0 nan\n"), "s: line 1: 'nan' is not a number between 0 and 1");
  EXPECT_NE(refusal(app, "arena-rule luck\n").find("no greedy order 'luck'; there are: size,"),
            std::string::npos);
  EXPECT_EQ(refusal(app, "arena-number 1\n"), "s: line 1: '1' is not a number between 0 and 0");
  play(app, "arena-view packing\nopen " + folder / "p.csv" + "\nwait\narena-number 1\nframes 2\n");
  EXPECT_EQ(work.scene()->of->title, "p.csv");
  EXPECT_EQ(work.view.arena, 1u);
  EXPECT_EQ(refusal(app, "arena-step 1\n"), "") << "those of the example are still there";
}

// Ticks and sizes as large as a file can have them, names that are none.
TEST(ArenaPanel, DrawsWhatAHostileFileHas) {
  const auto window = open_null_window({});
  GuiApp app(*window, "");
  const loadline::testing::TemporaryFolder folder;
  loadline::testing::write_file(
      folder / "far.csv",
      "id,lower,upper,size,gaps\n\x1b[31m,0,18446744073709551615,1,\n\"a,b\",18446744073709551000,"
      "18446744073709551615,4611686018427387000,\n,5,5,7,\n\xff\xfe,1,9,0,\nz,2,100,3,4-5 7-9\n");
  play(app, "open " + folder / "far.csv" + "\nwait\n");
  ASSERT_TRUE(app.workspace().shared.notices.all().empty())
      << app.workspace().shared.notices.all().front().text;
  ASSERT_TRUE(app.workspace().document().arena->scene()) << app.workspace().document().arena->error();
  for (const char* how :
       {"arena-zoom", "arena-zoom 0.9999 1 0.9999 1", "arena-zoom 0 0.0001 0 0.0001", "arena-view steps"}) {
    play(app, std::string(how) + "\nframes 2\nwait\nframes 2\n");
    move_everywhere(app, 1280, 800);
  }
}

TEST(ArenaPanel, APlaceIsAWholeNumber) {
  EXPECT_EQ(whole(std::numeric_limits<double>::quiet_NaN()), 0u);
  EXPECT_EQ(whole(-1), 0u);
  EXPECT_EQ(whole(2.9), 2u);
  EXPECT_EQ(whole(0x1p64), UINT64_MAX - 2047);
}

// Ticks that are one double, and such as are neighbours among doubles.
TEST(ArenaPanel, DrawsTicksThatDoublesDoNotTellApart) {
  const auto window = open_null_window({});
  GuiApp app(*window, "");
  const loadline::testing::TemporaryFolder folder;
  for (const char* ticks :
       {"18446744073709551614,18446744073709551615", "9223372036854775808,9223372036854779904",
        "18446744073709547520,18446744073709551615", "9007199254740993,9007199254740995"}) {
    loadline::testing::write_file(folder / "late.csv", std::string("lower,upper,size\n") + ticks + ",7\n");
    play(app, "open " + folder / "late.csv" + "\narena-view packing\nwait\nframes 2\n");
    ASSERT_TRUE(app.workspace().shared.notices.all().empty())
        << app.workspace().shared.notices.all().front().text;
    for (const char* how : {"arena-zoom", "arena-zoom 0.9999 1 0.9999 1", "arena-zoom 0 0.0001 0.9999 1"}) {
      play(app, std::string(how) + "\narena-view packing\nframes 2\n");
      move_everywhere(app, 1280, 800);
      app.window().set_mouse(700, 400, false);
      ImGui::GetIO().MouseWheel = 1;
      app.frame();
      app.frame();
      const ArenaView& view = app.workspace().document().arena->view;
      EXPECT_TRUE(view.time.from < view.time.to) << ticks;
      play(app, "arena-view steps\nframes 2\nwait\nframes 2\n");
      move_everywhere(app, 1280, 800);
    }
  }
}

TEST(ArenaPanel, PlaysToTheEndAndStops) {
  const auto window = open_null_window({});
  GuiApp app(*window, "");
  play(app, "panel arena\nwait\narena-view steps\nframes 2\nwait\nframes 2\narena-play on\n");
  ArenaView& view = app.workspace().document().arena->view;
  ASSERT_TRUE(app.workspace().document().arena->steps());
  view.speed = std::size(kArenaSpeeds) - 1;
  std::size_t last = view.step;
  for (int i = 0; i < 1000 && view.playing; ++i) {
    app.frame();
    EXPECT_GE(view.step, last);
    last = view.step;
  }
  EXPECT_FALSE(view.playing);
  EXPECT_EQ(view.step, app.workspace().document().arena->steps()->length());
}

TEST(ArenaPanel, AClickSelectsTheTensorThatLiesThere) {
  const auto window = open_null_window({});
  GuiApp app(*window, "");
  app.workspace().show(llama_70b_graph(), "");
  play(app, "wait\npanel arena\narena-time 0.1\narena device\nwait\nframes 2\n");
  for (int y = 300; y < 600 && !app.workspace().document().selected_tensor(); y += 40)
    play(app, "click 1100 " + std::to_string(y) + "\n");
  EXPECT_TRUE(app.workspace().document().selected_tensor());
  play(app, "frames 2\n");  // with its outline
}

TEST(ArenaPanel, IsAPageOfItsOwnWithoutAModel) {
  const auto window = open_null_window({});
  GuiApp app(*window, "");
  play(app, "demo\nwait\npanel arena\nwait\nclose\n");
  EXPECT_EQ(app.workspace().settings.panel, "map") << "the start page, not an example nobody asked for";
  play(app, "panel arena\nwait\nframes 2\n");
  EXPECT_EQ(app.workspace().document().arena->scene()->of->source, ArenaSource::example);
  for (int y = 66; y < 100 && app.workspace().settings.panel == "arena"; y += 6)
    play(app, "click 60 " + std::to_string(y) + "\n");
  EXPECT_EQ(app.workspace().settings.panel, "map") << "the button that leads back";
  play(app, "frames 2\n");
  for (int y = 280; y < 440 && app.workspace().settings.panel != "arena"; y += 12)
    play(app, "click 790 " + std::to_string(y) + "\n");
  EXPECT_EQ(app.workspace().settings.panel, "arena") << "the button that leads here";
}

}  // namespace
}  // namespace loadline::gui
