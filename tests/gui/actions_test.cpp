// The tables of actions and panels: rows that scripts, buttons and shortcuts can rely on, and the keys that
// run them.
#include "app/gui/frame/actions.h"

#include "app/gui/frame/gui_app.h"
#include "app/gui/panels/panels.h"
#include "app/report/manual.h"
#include "tests/gui/drawn_text.h"
#include "tests/gui/null_window.h"
#include "tests/gui/sample_graphs.h"

#include <set>

#include <gtest/gtest.h>
#include <imgui.h>

namespace loadline::gui {
namespace {

TEST(Actions, every_word_of_a_script_means_one_thing) {
  const std::vector<std::string_view> words = script_words();
  EXPECT_EQ(std::set(words.begin(), words.end()).size(), words.size());
  for (const std::string_view word : words) {
    EXPECT_FALSE(word.empty());
    EXPECT_EQ(word.find_first_not_of("abcdefghijklmnopqrstuvwxyz-_"), std::string_view::npos) << word;
  }
}

TEST(Actions, have_titles_and_shortcuts_of_their_own) {
  std::set<std::string_view> titles, shortcuts;
  std::size_t with_shortcut = 0;
  for (const Action& action : actions()) {
    EXPECT_FALSE(action.title.empty()) << action.id;
    titles.insert(action.title);
    if (action.shortcut.empty()) continue;
    shortcuts.insert(action.shortcut);
    ++with_shortcut;
    EXPECT_NE(action.argument, Argument::required) << action.id << ": a key gives none";
  }
  EXPECT_EQ(titles.size(), actions().size());
  EXPECT_EQ(shortcuts.size(), with_shortcut);
  EXPECT_EQ(find_action("fly"), nullptr);
}

TEST(Actions, what_needs_a_model_is_enabled_once_it_is_there) {
  Workspace workspace("");
  const auto enabled = [&](std::string_view id) { return find_action(id)->enabled(workspace); };
  for (const char* id : {"select", "doctor", "convert", "upload", "save-chart", "operator", "move-item"})
    EXPECT_FALSE(enabled(id)) << id;
  for (const char* id : {"open", "demo", "theme", "panel"}) EXPECT_TRUE(enabled(id)) << id;
  workspace.show(operator_graph(3), "");
  EXPECT_TRUE(enabled("select"));
  EXPECT_FALSE(enabled("upload"));  // it is not projected yet
  while (workspace.busy()) workspace.poll();
  for (const char* id : {"doctor", "convert", "upload", "save-chart", "operator"})
    EXPECT_TRUE(enabled(id)) << id;
  for (const char* id : {"compare-converted", "open-converted"}) EXPECT_FALSE(enabled(id)) << id;
  run_action(workspace, "close");
  EXPECT_FALSE(enabled("select"));
}

TEST(Actions, a_failure_is_a_notice) {
  Workspace workspace("");
  run_action(workspace, "upload");
  ASSERT_EQ(workspace.shared.notices.all().size(), 1u);
  EXPECT_EQ(workspace.shared.notices.all()[0].text, "no model is open");
}

TEST(Panels, are_called_the_same_everywhere) {
  for (const PanelRow& row : panels()) {
    std::string title(row.title);
    title[0] = static_cast<char>(title[0] - 'A' + 'a');
    EXPECT_EQ(title, row.id);
    EXPECT_FALSE(report::find_manual_page(row.manual).text.empty()) << row.id;
    EXPECT_EQ(&find_panel(row.id), &row);
  }
}

class Keys : public ::testing::Test {
 protected:
  Keys() {  // as the desktop's window has them
    ImGui::GetIO().KeyMap[ImGuiKey_Escape] = kEscape;
    ImGui::GetIO().KeyMap[ImGuiKey_Backspace] = kBackspace;
  }
  // Presses what an action's shortcut says, and lets it go.
  void press(std::string_view id) {
    const std::string_view shortcut = find_action(id)->shortcut;
    ImGuiIO& io = ImGui::GetIO();
    const bool control = shortcut.starts_with("Ctrl+");
    ASSERT_TRUE(control || shortcut == "Escape" || shortcut == "Backspace" || shortcut == "F1") << shortcut;
    const int key = control                ? shortcut.back()
                    : shortcut == "Escape" ? kEscape
                    : shortcut == "F1"     ? kF1
                                           : kBackspace;
    app_.frame();
    io.KeyCtrl = control;
    io.KeysDown[key] = true;
    app_.frame();
    io.KeyCtrl = false;
    io.KeysDown[key] = false;
    app_.frame();
  }

  static constexpr int kEscape = 256;
  static constexpr int kBackspace = 259;
  static constexpr int kF1 = 290;
  const std::unique_ptr<Window> window_ = open_null_window({});
  GuiApp app_{*window_, ""};
  Workspace& workspace_ = app_.workspace();
};

TEST_F(Keys, run_the_actions_that_name_them) {
  workspace_.show(llama_70b_graph(), "");
  app_.settle();
  const bool dark = workspace_.settings.dark;
  press("theme");
  EXPECT_NE(workspace_.settings.dark, dark);
  workspace_.document().select(TensorId{3});
  press("deselect");
  EXPECT_FALSE(workspace_.document().selected_tensor());
  const NodeId below = workspace_.document().model->tree.root().children.front();
  workspace_.document().zoom(below);
  press("zoom-out");
  EXPECT_EQ(workspace_.document().zoomed(), kRootNode);
  workspace_.document().select(TensorId{3});
  press("find-tensor");
  app_.frame();
  EXPECT_TRUE(ImGui::GetIO().WantTextInput) << "the filter has the keyboard";
  press("deselect");
  EXPECT_TRUE(workspace_.document().selected_tensor()) << "Escape leaves the filter first";
  press("tree");
  EXPECT_FALSE(workspace_.settings.layout.show_tree);
  press("close");
  EXPECT_FALSE(workspace_.document().model);
  press("browse");
  EXPECT_TRUE(workspace_.listing.busy() || !workspace_.folder().path.empty());  // of the file browser
  EXPECT_FALSE(app_.wants_close());
  press("quit");
  EXPECT_TRUE(app_.wants_close());
}

TEST_F(Keys, show_the_manual_s_page_about_the_panel_and_close_it) {
  workspace_.show(llama_70b_graph(), "");
  app_.settle();
  for (const PanelRow& row : panels()) {
    workspace_.settings.panel = row.id;
    press("manual");
    EXPECT_EQ(workspace_.manual, row.manual);
    EXPECT_NE(drawn_text().find(without_blanks(report::find_manual_page(row.manual).title)),
              std::string::npos)
        << row.id;
    for (const std::string_view markup : {"**", "|---", "```"})
      EXPECT_EQ(drawn_text().find(markup), std::string::npos) << row.id << ": " << markup;
    workspace_.document().select(TensorId{3});
    press("deselect");  // closes the manual alone
    EXPECT_EQ(workspace_.manual, "");
    EXPECT_TRUE(workspace_.document().selected_tensor());
  }
  EXPECT_THROW(find_action("manual")->run(workspace_, "cookery"), Error);
}

}  // namespace
}  // namespace loadline::gui
