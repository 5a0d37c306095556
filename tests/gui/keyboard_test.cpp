// The keyboard alone: parts of the window in turn, lists by their arrows, the filter's hits, what Escape
// closes, what the palette says of arguments.
#include "app/gui/frame/actions.h"
#include "app/gui/frame/gui_app.h"
#include "app/gui/frame/overlays.h"
#include "app/gui/window/input.h"
#include "tests/gui/drawn_text.h"
#include "tests/gui/null_window.h"
#include "tests/gui/sample_graphs.h"

#include <algorithm>
#include <set>
#include <string>

#include <gtest/gtest.h>
#include <imgui.h>
#include <imgui_internal.h>

namespace loadline::gui {
namespace {

constexpr int kEscape = 256, kEnter = 257, kTab = 258, kRight = 262, kLeft = 263, kDown = 264, kUp = 265,
              kHome = 268, kEnd = 269;

std::string refusal_of(const char* words) {
  try {
    convert_words(words);
    return "";
  } catch (const Error& error) {
    return error.what();
  }
}

class Keyboard : public ::testing::Test {
 protected:
  Keyboard() {
    workspace_.show(llama_70b_graph(), "");
    app_.settle();
    app_.draw_settled();
  }
  void press(int key, bool shift = false) {
    ImGuiIO& io = ImGui::GetIO();
    io.KeyShift = shift;
    io.KeysDown[key] = true;
    app_.frame();
    io.KeyShift = false;
    io.KeysDown[key] = false;
    for (int i = 0; i < 6; ++i) app_.frame();  // where a part holds parts, the focus goes inwards
  }
  void type(std::string_view text) {
    for (const char letter : text) ImGui::GetIO().AddInputCharacter(static_cast<unsigned char>(letter));
    for (int i = 0; i < 3; ++i) app_.frame();
  }
  // The ImGui window that has the keyboard: its own name, without its parents'.
  static std::string focused() {
    const ImGuiWindow* window = ImGui::GetCurrentContext()->NavWindow;
    const std::string name = window == nullptr ? "" : window->Name;
    const std::size_t slash = name.rfind('/');
    const std::string own = slash == std::string::npos ? name : name.substr(slash + 1);
    return own.substr(0, own.rfind('_'));
  }
  // Presses Tab until a part has the keyboard.
  bool go_to(std::string_view part) {
    for (int i = 0; i < 20 && focused() != part; ++i) press(kTab);
    return focused() == part;
  }
  Document& document() { return workspace_.document(); }

  const std::unique_ptr<Window> window_ = open_null_window({});
  GuiApp app_{*window_, ""};
  Workspace& workspace_ = app_.workspace();
};

TEST_F(Keyboard, tab_goes_round_every_part_and_back) {
  std::vector<std::string> there, back;
  press(kTab);
  const std::string first = focused();
  do {
    there.push_back(focused());
    press(kTab);
  } while (focused() != first && there.size() < 30);
  ASSERT_LT(there.size(), 30u);
  for (const std::string part : {"shell", "tree", "lines", "main", "panel", "timeline"})
    EXPECT_EQ(std::ranges::count(there, part), 1) << part;
  do {
    back.push_back(focused());
    press(kTab, true);
  } while (focused() != first && back.size() < 30);
  EXPECT_EQ(std::set(back.begin(), back.end()), std::set(there.begin(), there.end()));
}

TEST_F(Keyboard, arrows_walk_fold_and_unfold_the_tree) {
  ASSERT_TRUE(go_to("lines"));
  press(kHome);
  ASSERT_TRUE(document().selected_tensor() || std::holds_alternative<NodeId>(document().selected()));
  const auto path = [&] {
    if (const auto* const module = std::get_if<NodeId>(&document().selected()))
      return module_path(document().model->tree, *module);
    return document().model->tensor(*document().selected_tensor()).name.str();
  };
  for (int i = 0; i < 30 && path() != "model.layers"; ++i) press(kDown);
  ASSERT_EQ(path(), "model.layers");
  press(kRight);  // unfolds
  EXPECT_EQ(path(), "model.layers");
  press(kRight);  // goes in
  EXPECT_EQ(path(), "model.layers.0");
  press(kDown);
  EXPECT_EQ(path(), "model.layers.1");
  press(kLeft);  // it is folded: out
  EXPECT_EQ(path(), "model.layers");
  press(kLeft);  // folds
  press(kDown);
  EXPECT_NE(path(), "model.layers.0") << "what is folded is passed by";
  press(kEnd);
  const std::string last = path();
  press(kDown);
  EXPECT_EQ(path(), last);
  press(kUp);
  EXPECT_NE(path(), last);
}

TEST_F(Keyboard, arrows_choose_tensors_and_methods_in_their_tables) {
  workspace_.settings.panel = "tensors";
  app_.draw_settled();
  ASSERT_TRUE(go_to("rows") || go_to("tensors")) << focused();
  press(kDown);
  ASSERT_TRUE(document().selected_tensor());
  EXPECT_EQ(*document().selected_tensor(), document().table().rows.front());
  press(kDown);
  EXPECT_EQ(*document().selected_tensor(), document().table().rows[1]);
  press(kEnter);
  EXPECT_EQ(workspace_.settings.panel, "values");
  workspace_.settings.panel = "methods";
  app_.settle();
  app_.draw_settled();
  ASSERT_TRUE(go_to("comparison")) << focused();
  press(kHome);
  const auto first = document().asked().request.methods;
  press(kDown);
  EXPECT_NE(document().asked().request.methods, first);
  app_.settle();
  press(kEnter);
  EXPECT_EQ(workspace_.settings.panel, "load");
}

TEST_F(Keyboard, the_filter_leads_to_its_hits_and_keeps_its_words) {
  run_action(workspace_, "find-tensor");
  app_.draw_settled();
  type("layer:7 q_proj");
  ASSERT_EQ(document().table().rows.size(), 1u);
  press(kEnter);
  ASSERT_TRUE(document().selected_tensor());
  EXPECT_EQ(*document().selected_tensor(), document().table().rows.front());
  press(kEscape);
  EXPECT_EQ(document().table().filter, "layer:7 q_proj") << "Escape leaves the field, not its words";
  EXPECT_FALSE(ImGui::GetIO().WantTextInput);
  document().set_filter("k_proj");
  run_action(workspace_, "find-tensor");
  app_.draw_settled();
  press(kEnter);
  EXPECT_EQ(*document().selected_tensor(), document().table().rows[0]);
  press(kEnter);
  EXPECT_EQ(*document().selected_tensor(), document().table().rows[1]);
  press(kEnter, true);
  EXPECT_EQ(*document().selected_tensor(), document().table().rows[0]);
  press(kDown);
  EXPECT_EQ(focused(), "lines") << "and down into the tree";
}

TEST_F(Keyboard, a_button_is_pressed_by_enter_and_space_plays) {
  ASSERT_TRUE(go_to("main"));
  press(kRight);
  press(kEnter);
  EXPECT_EQ(workspace_.settings.panel, "load");
  press(' ');
  EXPECT_TRUE(document().playing);
  press(' ');
  EXPECT_FALSE(document().playing);
  EXPECT_EQ(workspace_.settings.panel, "load");
}

TEST_F(Keyboard, escape_closes_a_message_then_a_sheet_then_deselects) {
  document().select(TensorId{3});
  workspace_.settings.panel = "tensors";
  app_.draw_settled();
  workspace_.settings.panel = "convert";
  app_.draw_settled();
  run_action(workspace_, "upload");
  app_.draw_settled();  // what comes of it may be a message, too
  workspace_.shared.notices.add(Severity::error, "one thing");
  const std::size_t messages = workspace_.shared.notices.all().size();
  press(kEscape);
  EXPECT_EQ(workspace_.shared.notices.all().size(), messages - 1);
  while (!workspace_.shared.notices.all().empty()) press(kEscape);
  EXPECT_EQ(workspace_.settings.panel, "convert");
  press(kEscape);
  EXPECT_EQ(workspace_.settings.panel, "tensors");
  EXPECT_TRUE(document().selected_tensor());
  press(kEscape);
  EXPECT_FALSE(document().selected_tensor());
}

TEST_F(Keyboard, the_palette_says_what_an_action_takes) {
  const auto items = palette_items(workspace_, "Move the time cursor", 5);
  ASSERT_FALSE(items.empty());
  EXPECT_EQ(items.front().takes, "STEP|peak|end");
  const auto colors = palette_items(workspace_, "color l", 5);
  ASSERT_FALSE(colors.empty());
  EXPECT_EQ(colors.front().argument, "layer");
  run_item(workspace_, colors.front());
  EXPECT_EQ(workspace_.settings.color_by, ColorBy::layer);
}

TEST(ConvertWords, take_options_and_tell_a_type_from_a_name) {
  const ConvertTask task = convert_words("gguf a b.gguf --outtype q8_0 --max-shard-size 1GiB");
  EXPECT_EQ(task.request.to, "gguf");
  EXPECT_EQ(task.out, "a b.gguf");
  EXPECT_EQ(task.request.layout.policy->name, "q8_0");
  EXPECT_EQ(refusal_of("gguf out.gguf q8_0"),
            "'out.gguf q8_0' ends with a type, not with a file's name: write out.gguf --outtype q8_0");
  EXPECT_EQ(refusal_of("gguf out.gguf --speed 2"), "no option '--speed' of a conversion");
  EXPECT_EQ(refusal_of("gguf"), "needs a format and a file");
}

}  // namespace
}  // namespace loadline::gui
