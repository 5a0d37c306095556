// What the palette finds, and what it runs.
#include "app/gui/frame/gui_app.h"
#include "app/gui/frame/overlays.h"
#include "core/base/error.h"
#include "tests/gui/drawn_text.h"
#include "tests/gui/null_window.h"
#include "tests/gui/sample_graphs.h"

#include <gtest/gtest.h>

namespace loadline::gui {
namespace {

std::vector<PaletteItem> find(const Workspace& workspace, std::string_view typed) {
  return palette_items(workspace, typed, 20);
}

TEST(Palette, RanksBeginningsBeforeMiddlesBeforeScatteredLetters) {
  EXPECT_LT(*match_rank("methods", "met"), *match_rank("show methods", "met"));
  EXPECT_LT(*match_rank("show methods", "met"), *match_rank("primetime", "met"));
  EXPECT_LT(*match_rank("primetime", "met"), *match_rank("m e t", "met"));
  EXPECT_FALSE(match_rank("methods", "meth0d"));
  EXPECT_FALSE(match_rank("", "a"));
  EXPECT_EQ(match_rank("anything", ""), 0);
}

TEST(Palette, FindsActionsPanelsOptionsTensorsAndModules) {
  Workspace workspace("");
  EXPECT_EQ(find(workspace, "open a model").at(0).word, "browse");
  for (const PaletteItem& item : find(workspace, ""))
    EXPECT_NE(item.word, "upload") << "it is not possible now";
  workspace.show(llama_70b_graph(), "");
  EXPECT_EQ(find(workspace, "show methods").at(0).argument, "methods");
  EXPECT_EQ(find(workspace, "state_dict").at(0).word, "method");
  EXPECT_TRUE(find(workspace, "device budget").at(0).needs_more);
  const PaletteItem tensor = find(workspace, "layers.7.mlp.down").at(0);
  EXPECT_EQ(tensor.word, "select");
  EXPECT_EQ(tensor.argument, "model.layers.7.mlp.down_proj.weight");
  EXPECT_EQ(find(workspace, "self_attn").at(0).word, "select-module");
  EXPECT_TRUE(find(workspace, "zzzzqq").empty());
}

TEST(Palette, RunsWhatAScriptWouldSay) {
  Workspace workspace("");
  workspace.show(llama_70b_graph(), "");
  const PaletteItem budget = find(workspace, "device_budget 80GiB").at(0);
  EXPECT_EQ(budget.argument, "80GiB");
  run_item(workspace, budget);
  EXPECT_EQ(workspace.document().asked().request.device_budget, std::uint64_t{80} << 30);
  run_item(workspace, find(workspace, "show tensors").at(0));
  EXPECT_EQ(workspace.settings.panel, "tensors");
  EXPECT_THROW(run_item(workspace, find(workspace, "select no_such_tensor").at(0)), Error);
}

TEST(Palette, IsDrawnOverEverything) {
  const auto window = open_null_window({});
  GuiApp app(*window, "");
  app.workspace().show(llama_70b_graph(), "");
  app.settle();
  play_script(app, parse_script("palette\nframes 3\n", "inline"), "inline");
  EXPECT_NE(drawn_text().find(without_blanks("Open a path")), std::string::npos);
  play_script(app, parse_script("click 20 700\nkeys\nframes 3\n", "inline"), "inline");
  EXPECT_NE(drawn_text().find(without_blanks("Run anything by its name")), std::string::npos);
  EXPECT_NE(drawn_text().find("Ctrl+P"), std::string::npos);
}

}  // namespace
}  // namespace loadline::gui
