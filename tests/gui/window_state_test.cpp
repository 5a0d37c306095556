// What is remembered comes back, and a wrong file is no reason not to start.
#include "app/gui/state/window_state.h"

#include "core/base/error.h"
#include "tests/support/builders.h"

#include <algorithm>

#include <gtest/gtest.h>

namespace loadline::gui {
namespace {

WindowState sample() {
  WindowState state;
  state.dark = false;
  state.follows_desktop = false;
  state.favourites = {"/models/kept"};
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
  std::vector<std::string> recent;
  for (int i = 0; i < 20; ++i) remember(recent, std::to_string(i));
  remember(recent, "15");
  EXPECT_EQ(recent.size(), kMostRecent);
  EXPECT_EQ(recent[0], "15");
  EXPECT_EQ(recent[1], "19");
  EXPECT_EQ(std::ranges::count(recent, "15"), 1);
}

}  // namespace
}  // namespace loadline::gui
