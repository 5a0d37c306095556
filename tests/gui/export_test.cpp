// Files of what is seen: tables of every view, drawings, and plays.
#include "app/gui/frame/export.h"

#include "app/gui/frame/gui_app.h"
#include "app/gui/panels/panels.h"
#include "app/gui/window/still_window.h"
#include "tests/gui/null_window.h"
#include "tests/gui/sample_graphs.h"
#include "tests/support/builders.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>

#include <gif_lib.h>
#include <gtest/gtest.h>

namespace loadline::gui {
namespace {

std::string content(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

std::size_t lines(const std::string& text) {
  return static_cast<std::size_t>(std::ranges::count(text, '\n'));
}

// A window without pixels of its own: each picture is one colour.
class Painted final : public StillWindow {
 public:
  Painted() : StillWindow({}) {}
  void frame(const std::function<void()>& build) override {
    if (!ImGui::GetIO().Fonts->IsBuilt()) upload_fonts();
    build_frame(build);
  }
  Picture picture() override {
    shade_ = static_cast<unsigned char>(shade_ + 40);
    return {32, 16, std::vector<unsigned char>(std::size_t{4} * 32 * 16, shade_)};
  }
  void upload_fonts() override { ImGui::GetIO().Fonts->Build(); }

 private:
  unsigned char shade_ = 0;
};

class Exports : public ::testing::Test {
 protected:
  Exports() {
    app.workspace().show(preset_graph("demo"), "");
    app.settle();
  }
  void run(const std::string& script) { play_script(app, parse_script(script, "inline"), "inline"); }

  const loadline::testing::TemporaryFolder folder;
  const std::unique_ptr<Window> window = open_null_window({});
  GuiApp app{*window, ""};
};

TEST_F(Exports, EveryTabHasATable) {
  for (const PanelRow& panel : panels()) {
    if (panel.tab.empty()) {
      if (panel.id != "diff") EXPECT_THROW(view_csv(app.workspace().document(), panel.id), Error) << panel.id;
      continue;
    }
    run("panel " + std::string(panel.id) + "\nwait\n");
    if (panel.id == "values") {
      EXPECT_THROW(view_csv(app.workspace().document(), panel.id), Error) << "no tensor was read";
      continue;
    }
    const std::string csv = view_csv(app.workspace().document(), panel.id);
    EXPECT_GE(lines(csv), panel.id == "findings" ? 1u : 2u) << panel.id;
    const std::string titles = csv.substr(0, csv.find('\r'));
    const auto columns = std::ranges::count(titles, ',');
    if (csv.find('"') == std::string::npos)
      EXPECT_EQ(std::ranges::count(csv, ','), columns * static_cast<long>(lines(csv))) << panel.id;
  }
}

TEST_F(Exports, TablesHoldWhatPassesTheFilter) {
  run("filter layer:3\nexport " + (folder / "rows.csv") + "\nwait\n");
  const std::string csv = content(folder / "rows.csv");
  EXPECT_EQ(lines(csv), 10u);
  EXPECT_NE(csv.find("model.layers.3.mlp.down_proj.weight,BF16,512x1408,1441792,mlp,3,"), std::string::npos)
      << csv;
}

TEST_F(Exports, DrawingsHoldTheWords) {
  run("export window " + (folder / "all.svg") + "\nwait\nexport timeline " + (folder / "part.svg") +
      "\nwait\n");
  const std::string all = content(folder / "all.svg"), part = content(folder / "part.svg");
  EXPECT_TRUE(all.starts_with("<svg "));
  EXPECT_TRUE(all.ends_with("</svg>\n"));
  for (const char* const word : {">Options</text>", ">Alive at the peak</text>", ">Methods</text>"})
    EXPECT_NE(all.find(word), std::string::npos) << word;
  EXPECT_EQ(part.find(">Alive at the peak</text>"), std::string::npos) << "that is in the inspector";
  EXPECT_NE(part.find(">Split</text>"), std::string::npos);
  EXPECT_TRUE(ImGui::GetStyle().AntiAliasedFill) << "only the frame of the drawing goes without";
}

TEST_F(Exports, WhatCannotBeWrittenIsAMessage) {
  EXPECT_THROW(run("export map.gif\n"), Error);
  EXPECT_THROW(run("export-play play.svg\n"), Error);
  EXPECT_THROW(run("export-play play.gif 1\n"), Error);
  const auto messages = [&] { return app.workspace().shared.notices.all().size(); };
  run("export " + (folder / "no/such/folder/map.csv") + "\nwait\n");
  EXPECT_EQ(messages(), 1u);
  EXPECT_FALSE(app.workspace().wants_export);
  run("panel convert\nexport " + (folder / "convert.csv") + "\nwait\n");
  EXPECT_EQ(messages(), 2u);
  run("close\nexport " + (folder / "none.csv") + "\nwait\n");
  EXPECT_FALSE(std::filesystem::exists(folder / "none.csv"));
}

TEST(Plays, BecomeAnimationsAndSeries) {
  const loadline::testing::TemporaryFolder folder;
  Painted window;
  GuiApp app(window, "");
  app.workspace().show(preset_graph("demo"), "");
  app.settle();
  app.workspace().document().set_step(7);
  play_script(app,
              parse_script("export-play " + (folder / "play.gif") + " 5\nwait\nexport-play " +
                               (folder / "play.png") + " 3\nwait\n",
                           "inline"),
              "inline");
  EXPECT_EQ(app.workspace().document().step(), 7u) << "the cursor is where it was";
  for (const char* const name : {"play-0001.png", "play-0002.png", "play-0003.png"})
    EXPECT_TRUE(std::filesystem::exists(folder / name)) << name;
  EXPECT_FALSE(std::filesystem::exists(folder / "play-0004.png"));
  GifFileType* const gif = DGifOpenFileName((folder / "play.gif").c_str(), nullptr);
  ASSERT_NE(gif, nullptr);
  ASSERT_EQ(DGifSlurp(gif), GIF_OK);
  EXPECT_EQ(gif->ImageCount, 5);
  EXPECT_EQ(gif->SWidth, 32);
  EXPECT_EQ(gif->SHeight, 16);
  GraphicsControlBlock control = {};
  EXPECT_EQ(DGifSavedExtensionToGCB(gif, 0, &control), GIF_OK);
  EXPECT_EQ(control.DelayTime, 10);
  for (int i = 0; i < 5; ++i) {
    const SavedImage& image = gif->SavedImages[i];
    EXPECT_NEAR(image.ImageDesc.ColorMap->Colors[image.RasterBits[0]].Red, 40 * (i + 1), 8);
  }
  DGifCloseFile(gif, nullptr);
}

TEST(Pictures, AreCutToWhatThereIs) {
  Picture picture{4, 2, {}};
  for (unsigned char i = 0; i < 32; ++i) picture.rgba.push_back(i);
  const Picture part = cropped(picture, 3, 1, 10, 10);
  EXPECT_EQ(part.width, 1u);
  EXPECT_EQ(part.height, 1u);
  EXPECT_EQ(part.rgba, (std::vector<unsigned char>{28, 29, 30, 31}));
  EXPECT_TRUE(cropped(picture, 9, 9, 1, 1).rgba.empty());
}

}  // namespace
}  // namespace loadline::gui
