// A person at a real window.

#include "app/gui/frame/gui_app.h"
#include "app/gui/panels/panels.h"
#include "app/gui/state/summary.h"
#include "core/base/error.h"
#include "core/base/progress.h"
#include "core/forward/model/known_models.h"
#include "core/graph/names/tensor_names.h"
#include "exporters/synth.h"
#include "tests/gui/harness.h"
#include "tests/gui/sample_graphs.h"
#include "tests/support/builders.h"
#include "tests/support/onnx_builder.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <imgui.h>
#include <imgui_internal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

namespace loadline::gui {

// --- A person at the window of a test: the X server's own mouse and keyboard, moved by xdotool.

namespace {

// Frames are drawn while the person acts, so events come between them as they do on a desktop. What cannot be
// done is a failure of the running test.
class Person {
 public:
  explicit Person(GuiApp& app) : app_(app) {}

  // Presses and releases at once, as xdotool does: "ctrl+f", "Return".
  void press(const std::string& keys);
  // The same with 12 ms between going down and going up.
  void tap(const std::vector<std::string>& keys);
  // With 12 ms from one letter to the next.
  void type(const std::string& text);
  void move_to(ImVec2 pixel);
  // `how`, as xdotool takes it: the button, before it how often.
  void click_at(ImVec2 pixel, const std::vector<std::string>& how = {"1"});
  // Clicks on words once they are shown; `nth` of them in the order of drawing, from the last if negative.
  void click(std::string_view words, int nth = 0, const std::vector<std::string>& how = {"1"});
  // Goes to `at`, clicks and goes on to `away`, all faster than a frame.
  void flick(ImVec2 at, ImVec2 away);
  // What another program gets when it pastes.
  std::string paste();
  // The clipboard as a picture.
  std::string paste_png();

  bool sees(std::string_view words) const;
  // Draws frames until `condition` holds; false if it never does.
  bool wait_until(const std::function<bool()>& condition);

 private:
  void frames(int count);
  std::string run(const std::vector<std::string>& command);

  GuiApp& app_;
  bool waited_in_vain_ = false;
};

using Clock = std::chrono::steady_clock;

constexpr std::chrono::seconds kPatience{60};       // only what never happens takes as long
constexpr std::chrono::seconds kLittlePatience{2};  // once that was: a test waits a hundred times
constexpr int kSettleFrames = 4;
constexpr double kPause = 0.01;  // seconds between frames, unless events come

// The identifier of the child, whose output goes to a file; -1 if it does not start.
pid_t start(const std::vector<std::string>& command, const std::string& output) {
  std::vector<char*> words;
  for (const std::string& word : command) words.push_back(const_cast<char*>(word.c_str()));
  words.push_back(nullptr);
  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  posix_spawn_file_actions_addopen(&files, STDOUT_FILENO, output.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
  pid_t child = -1;
  if (posix_spawnp(&child, words[0], &files, nullptr, words.data(), environ) != 0) child = -1;
  posix_spawn_file_actions_destroy(&files);
  return child;
}

bool is_installed(std::string_view program) {
  const char* const folders = std::getenv("PATH");
  std::string_view rest = folders != nullptr ? folders : "";
  while (!rest.empty()) {
    const std::size_t end = std::min(rest.find(':'), rest.size());
    const std::filesystem::path path = std::filesystem::path(rest.substr(0, end)) / program;
    if (::access(path.c_str(), X_OK) == 0) return true;
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  return false;
}

// Why no person can be had here; empty if one can.
std::string no_person() {
  for (const char* const program : {"xdotool", "xclip"})
    if (!is_installed(program)) return std::string(program) + " is not installed";
  try {
    open_desktop_window({.scale = 1});
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

void Person::frames(int count) {
  for (; count > 0; --count) {
    app_.frame();
    app_.window().wait_events(kPause);
  }
}

bool Person::wait_until(const std::function<bool()>& condition) {
  const Clock::time_point end = Clock::now() + (waited_in_vain_ ? kLittlePatience : kPatience);
  while (!condition()) {
    waited_in_vain_ = waited_in_vain_ || Clock::now() > end;
    if (Clock::now() > end) return false;
    frames(1);
  }
  return true;
}

std::string Person::run(const std::vector<std::string>& command) {
  const testing::TemporaryFolder folder;
  const std::string output = folder / "output";
  const pid_t child = start(command, output);
  if (child < 0) {
    ADD_FAILURE() << command.front() << " does not start";
    return "";
  }
  int status = 0;
  if (!wait_until([&] { return ::waitpid(child, &status, WNOHANG) == child; })) {
    ::kill(child, SIGKILL);
    ::waitpid(child, &status, 0);
  }
  EXPECT_EQ(status, 0) << command.front() << " " << command.at(1) << " failed";
  frames(kSettleFrames);
  return testing::read_file(output);
}

void Person::press(const std::string& keys) { run({"xdotool", "key", "--delay", "0", keys}); }

void Person::tap(const std::vector<std::string>& keys) {
  std::vector<std::string> command = {"xdotool"};
  for (const std::string& key : keys)
    for (const char* const word : {"keydown", key.c_str(), "sleep", "0.012", "keyup", key.c_str()})
      command.emplace_back(word);
  run(command);
}

void Person::type(const std::string& text) { run({"xdotool", "type", "--delay", "12", text}); }

void Person::move_to(ImVec2 pixel) {
  const ImVec2 at = {std::round(pixel.x), std::round(pixel.y)};
  run({"xdotool", "getwindowfocus", "mousemove", "--window", "%1", std::to_string(static_cast<int>(at.x)),
       std::to_string(static_cast<int>(at.y))});
  EXPECT_TRUE(wait_until([&] {
    return ImGui::GetIO().MousePos.x == at.x && ImGui::GetIO().MousePos.y == at.y;
  })) << "the mouse does not come to "
      << at.x << " " << at.y;
  frames(kSettleFrames);
}

void Person::click_at(ImVec2 pixel, const std::vector<std::string>& how) {
  move_to(pixel);
  std::vector<std::string> command = {"xdotool", "click"};
  command.insert(command.end(), how.begin(), how.end());
  run(command);
}

void Person::flick(ImVec2 at, ImVec2 away) {
  const auto whole = [](float pixel) { return std::to_string(std::lround(pixel)); };
  run({"xdotool", "getwindowfocus", "mousemove", "--window", "%1", whole(at.x), whole(at.y), "click", "1",
       "mousemove", "--window", "%1", whole(away.x), whole(away.y)});
}

void Person::click(std::string_view words, int nth, const std::vector<std::string>& how) {
  std::vector<ImVec2> places;
  const auto needed = static_cast<std::size_t>(nth < 0 ? -nth : nth + 1);
  if (!wait_until([&] { return (places = drawn_at(words)).size() >= needed; })) {
    ADD_FAILURE() << "'" << words << "' is shown " << places.size() << " times";
    return;
  }
  click_at(nth < 0 ? places[places.size() - needed] : places[needed - 1], how);
}

std::string Person::paste() { return run({"xclip", "-out", "-selection", "clipboard"}); }

std::string Person::paste_png() {
  return run({"xclip", "-out", "-selection", "clipboard", "-target", "image/png"});
}

bool Person::sees(std::string_view words) const { return !drawn_at(words).empty(); }

}  // namespace

// --- Whole sessions of a person at a real window: what they do with mouse and keys, and what comes of it.

namespace {

class AtTheWindow : public ::testing::Test {
 protected:
  // The demo model in a folder of its own, without bytes on the disk.
  std::string demo(const char* name) const {
    const std::string path = folder_ / name;
    Progress progress;
    exporters::synthesize(forward::config_graph(forward::find_preset("demo")->config_json, "config.json"),
                          path, {}, progress);
    return path;
  }
  void show_demo() {
    app_.workspace().show(preset_graph("demo"), "");
    ASSERT_TRUE(
        person_.wait_until([&] { return document().load.judged_load() != nullptr && !workspace().busy(); }));
  }
  Workspace& workspace() { return app_.workspace(); }
  Document& document() { return app_.workspace().document(); }
  std::string model_name() { return document().model ? document().model->name : ""; }
  std::string selected() {
    return document().selected_tensor() ? document().model->tensor(*document().selected_tensor()).name.str()
                                        : "";
  }

  // Another method that the list of methods shows.
  const load::Method* shown_beside(std::string_view id) {
    const auto at = std::ranges::find_if(
        load::methods(), [&](const load::Method& row) { return row.id != id && person_.sees(row.id); });
    return at == load::methods().end() ? nullptr : &*at;
  }

  const loadline::testing::TemporaryFolder folder_;
  const std::unique_ptr<Window> window_ =
      open_desktop_window({.width = 1400, .height = 900, .scale = 1, .validation = true});
  GuiApp app_{*window_, folder_ / "no hub"};
  Person person_{app_};
  std::array<pid_t, 2> busy_ =
      {};  // take the processor's cores from the window, if the environment asks for it

  void SetUp() override {
    if (std::getenv("LOADLINE_TEST_BUSY") == nullptr) return;
    for (pid_t& child : busy_) child = start({"sh", "-c", "while :; do :; done"}, "/dev/null");
  }
  void TearDown() override {
    for (const pid_t child : busy_)
      if (child > 0) {
        ::kill(child, SIGKILL);
        ::waitpid(child, nullptr, 0);
      }
    EXPECT_EQ(window_->validation_messages(), std::vector<std::string>{});
    if (!HasFailure()) return;
    const std::string picture =
        std::string(::testing::UnitTest::GetInstance()->current_test_info()->name()) + ".png";
    window_->save_png(picture);
    std::printf("what the window showed then: %s\n", picture.c_str());
  }
};

#define SOON(condition) \
  ASSERT_TRUE(person_.wait_until([&] { return (condition); })) << #condition << " does not become true"

TEST_F(AtTheWindow, opens_models_by_typing_their_paths_and_moves_between_their_tabs) {
  const std::string first = demo("first"), second = demo("second");
  person_.press("ctrl+o");
  SOON(person_.sees("Open this folder"));
  SOON(!workspace().places.listing.busy());
  person_.press("ctrl+a");
  person_.type(first);
  person_.press("Return");
  SOON(model_name() == "first" && !workspace().busy());

  person_.click("Open");
  SOON(person_.sees("Open this folder"));
  SOON(!workspace().places.listing.busy());
  person_.press("ctrl+a");
  person_.type(second);
  person_.press("Return");
  SOON(model_name() == "second" && !workspace().busy());
  ASSERT_EQ(workspace().documents().size(), 2u);

  person_.press("ctrl+Tab");
  SOON(model_name() == "first");
  person_.press("ctrl+shift+Tab");
  SOON(model_name() == "second");
  person_.click("first");  // its tab
  SOON(model_name() == "first");

  person_.press("ctrl+d");
  SOON(workspace().settings.panel == "diff");
  SOON(document().diff.result.value() != nullptr);
  EXPECT_EQ(document().diff.there(), workspace().documents()[1]->model);
  for (const DiffKind kind : document().diff.result.value()->of_tensor) EXPECT_EQ(kind, DiffKind::equal);

  // the cross behind the tab's name is no word: the mouse goes there until it is told what a click does
  SOON(drawn_at("first").size() > 1);
  ImVec2 at = drawn_at("first").at(1);  // the toolbar says it first
  for (int steps = 0; steps < 40 && !person_.sees("Close (Ctrl+W)"); ++steps)
    person_.move_to({at.x += 4, at.y});
  ASSERT_TRUE(person_.sees("Close (Ctrl+W)"));
  person_.click_at(at);
  SOON(workspace().documents().size() == 1);
  EXPECT_EQ(model_name(), "second");
  person_.press("ctrl+w");
  SOON(document().model == nullptr);
}

TEST_F(AtTheWindow, filters_and_selects_with_the_keyboard) {
  show_demo();
  person_.press("ctrl+f");
  person_.type("layer:0 q_proj");
  SOON(document().table.view().applied == "layer:0 q_proj");
  ASSERT_EQ(document().table.view().rows.size(), 1u);
  const std::string name = document().model->tensor(document().table.view().rows[0]).name.str();
  // the table's rows follow the arrows once it has the keyboard
  person_.press("ctrl+a");
  person_.type("layer:0");
  SOON(document().table.view().applied == "layer:0");
  ASSERT_GT(document().table.view().rows.size(), 2u);
  person_.press("Return");
  person_.click("Tensors");
  SOON(workspace().settings.panel == "tensors");
  person_.click(document().model->tensor(document().table.view().rows[0]).name.view());
  SOON(document().selected_tensor() == document().table.view().rows[0]);
  person_.press("Down");
  SOON(document().selected_tensor() == document().table.view().rows[1]);
  person_.press("Up");
  SOON(document().selected_tensor() == document().table.view().rows[0]);
  // the palette finds any tensor by its name
  person_.press("ctrl+p");
  person_.type(name);
  person_.press("Return");
  SOON(selected() == name);
  person_.press("alt+Left");
  SOON(document().selected_tensor() == document().table.view().rows[0]);
  person_.press("Escape");
  SOON(!document().selected_tensor());
}

TEST_F(AtTheWindow, copies_what_is_selected_for_other_programs) {
  show_demo();
  person_.press("ctrl+shift+c");
  const std::string model = person_.paste();
  EXPECT_NE(model.find("tensors: 75"), std::string::npos) << model;
  document().select(graph::TensorId{3});
  person_.press("ctrl+shift+c");
  const std::string tensor = person_.paste();
  EXPECT_NE(tensor.find("tensor: " + selected()), std::string::npos) << tensor;
}

TEST_F(AtTheWindow, asks_what_can_be_done_with_what_lies_under_the_mouse) {
  show_demo();
  person_.click("lm_head.weight", 0, {"--repeat", "2", "--delay", "40", "1"});
  SOON(workspace().settings.panel == "values");
  SOON(selected() == "lm_head.weight");
  person_.click("norm.weight", 0, {"3"});
  SOON(person_.sees("Copy as JSON"));
  SOON(selected() == "model.norm.weight");
  person_.press("Escape");
  SOON(!person_.sees("Copy as JSON"));
  EXPECT_EQ(selected(), "model.norm.weight");
  person_.press("shift+F10");
  SOON(person_.sees("Show in its file"));
  person_.click("Show in its file", -1);
  SOON(workspace().settings.panel == "bytes");
  SOON(!person_.sees("Copy as JSON"));
  person_.press("Menu");
  SOON(person_.sees("Copy as JSON"));
  person_.press("Return");
  SOON(workspace().settings.panel == "map");
}

TEST_F(AtTheWindow, changes_the_method_with_the_mouse) {
  show_demo();
  ASSERT_EQ(shown_method(document().load.asked()).id, "staged_ring");
  person_.click("staged_ring");
  // the list opens where the chosen method stands
  const load::Method* other = nullptr;
  SOON((other = shown_beside("staged_ring")) != nullptr);
  person_.click(other->id, -1);
  SOON(shown_method(document().load.asked()).id == other->id);
  SOON(document().load.projection.value() && document().load.projection.value()->method->id == other->id);
}

TEST_F(AtTheWindow, walks_the_graph_of_operators) {
  show_demo();
  const auto module = [&] {
    return graph::op_path(document().forward.scene.value()->tree, document().forward.module);
  };
  person_.click("Forward");
  person_.click("Graph");
  SOON(workspace().settings.panel == "graph" && person_.sees("Whole"));
  SOON(person_.sees("model"));
  // in the middle of the window, not in the tree or the inspector
  const auto box = [] {
    std::vector<ImVec2> places = drawn_at("model");
    std::erase_if(places, [](ImVec2 at) { return at.x < 300 || at.x > 1000 || at.y < 200; });
    return places;
  };
  SOON(!box().empty());
  person_.click_at(box().front(), {"--repeat", "2", "--delay", "60", "1"});
  SOON(module().starts_with("model"));
  person_.press("Down");
  person_.press("Down");
  SOON(std::holds_alternative<OperatorAt>(document().selected()) || module() != "");
  person_.press("BackSpace");
  SOON(module().empty());
}

// A small network of pictures, of which the sides are open: a convolution, and a function called "block".
std::string picture_network() {
  using namespace loadline::testing::onnx;
  using loadline::testing::Proto;
  const Proto block = Proto()
                          .text(1, "block")
                          .text(4, "given")
                          .text(5, "result")
                          .text(7, node("Relu", {"given"}, {"positive"}, "inner_relu"))
                          .text(7, node("Tanh", {"positive"}, {"result"}, "inner_tanh"))
                          .text(10, "own");
  return model(Proto()
                   .text(kNode, node("Conv", {"x", "conv.weight"}, {"c"}, "conv"))
                   .text(kNode, node("block", {"c"}, {"b"}, "the_block", "own"))
                   .text(kNode, node("GlobalAveragePool", {"b"}, {"y"}, "pool"))
                   .text(kInput, value("x", kFloat, {"1", "3", "height", "width"}))
                   .text(kInitializer,
                         raw_tensor("conv.weight", kFloat, {4, 3, 3, 3}, std::string(4 * 108, '\0')))
                   .text(kOutput, value("y", kFloat, {"1", "4", "1", "1"}))) +
         Proto().text(25, block).bytes();
}

TEST_F(AtTheWindow, finds_operators_goes_inside_and_out_again_and_takes_other_pictures) {
  const std::string path = folder_ / "net.onnx";
  testing::write_file(path, picture_network());
  workspace().open(path);
  SOON(document().model && !workspace().busy() && document().forward.graph() != nullptr);
  person_.click("Forward");
  SOON(workspace().settings.panel == "graph" && person_.sees("Find operators"));
  person_.press("ctrl+f");
  person_.type("inner");
  SOON(document().forward.search == "inner" && person_.sees("2 found"));
  person_.press("Return");
  SOON(document().forward.inside.size() == 1 && person_.sees("1 of 2"));
  person_.press("Return");
  SOON(person_.sees("2 of 2"));
  const Selected tanh = document().selected();
  ASSERT_TRUE(std::holds_alternative<graph::OpPlace>(tanh)) << "the pass runs the call as one";
  person_.press("shift+Return");
  SOON(person_.sees("1 of 2"));
  person_.press("Escape");  // leaves the field
  SOON(!ImGui::GetIO().WantTextInput);
  EXPECT_EQ(document().forward.inside.size(), 1u);
  person_.press("Escape");  // leaves the function
  SOON(document().forward.inside.empty());
  EXPECT_TRUE(std::holds_alternative<OperatorAt>(document().selected())) << "the call is marked";

  SOON(person_.sees("height") && person_.sees("224"));
  person_.click("224");
  person_.press("ctrl+a");
  person_.type("64");
  person_.press("Return");
  SOON(!document().model->picture_sides.empty() && !workspace().busy() &&
       document().forward.graph() != nullptr);
  const auto side = [&](std::string_view name) {
    const auto& sizes = document().forward.graph()->sizes;
    return *std::ranges::find(sizes, name, &graph::NamedSize::name)->taken_as.constant();
  };
  EXPECT_EQ(side("height"), 64);
  EXPECT_EQ(side("width"), 224);
  const auto height_is = [&](int pixels) {
    return !workspace().busy() && document().forward.graph() != nullptr && side("height") == pixels;
  };
  person_.press("ctrl+z");
  SOON(height_is(224) && person_.sees("Undid: side height of pictures 64, side width of pictures 224"));
  person_.press("ctrl+shift+z");
  SOON(height_is(64));
  person_.click("Usual");
  SOON(document().model->picture_sides.empty() && !workspace().busy() &&
       document().forward.graph() != nullptr);
  EXPECT_EQ(side("height"), 224);
}

TEST_F(AtTheWindow, asks_what_can_be_done_with_modules_of_the_graph_and_cells_of_values) {
  workspace().open(demo("first"));
  SOON(document().model && !workspace().busy() && document().load.judged_load() != nullptr);
  workspace().settings.panel = "graph";
  SOON(person_.sees("Whole"));
  const auto box = [] {
    std::vector<ImVec2> places = drawn_at("model");
    std::erase_if(places, [](ImVec2 at) { return at.x < 300 || at.x > 1000 || at.y < 200; });
    return places;
  };
  SOON(!box().empty());
  person_.click_at(box().front(), {"3"});
  SOON(person_.sees("Go inside") && person_.sees("Show its weights in the map"));
  person_.press("Escape");
  SOON(!person_.sees("Go inside"));
  person_.click_at(box().front(), {"3"});
  person_.click("Go inside");
  SOON(
      graph::op_path(document().forward.scene.value()->tree, document().forward.module).starts_with("model"));

  document().select(*find_tensor(*document().model, "lm_head.weight"));
  workspace().settings.panel = "values";
  SOON(person_.sees("column") && !workspace().busy());
  const ImVec2 axis = drawn_at("column").back();
  person_.click_at({axis.x, axis.y - 40}, {"3"});
  person_.click("Look closely around it");
  SOON(document().values.range().rows == 32 && document().values.range().columns == 32);
  person_.click_at({axis.x, axis.y - 40}, {"3"});
  SOON(person_.sees("Show all rows and columns") && person_.sees("Show in the map"));
  person_.click("Copy its place");
  SOON(person_.paste().starts_with("["));
}

TEST_F(AtTheWindow, closes_drop_downs_by_escape_and_clicks_on) {
  show_demo();
  for (const char* const words : {"staged_ring", "no target", "Options"}) {
    person_.click(words);
    SOON(!ImGui::GetCurrentContext()->OpenPopupStack.empty());
    person_.press("Escape");
    SOON(ImGui::GetCurrentContext()->OpenPopupStack.empty());
  }
  person_.click("Methods");
  SOON(workspace().settings.panel == "methods");
  person_.press("ctrl+b");  // the tree goes, and its edge brings it back
  SOON(!workspace().settings.layout.show_tree);
  person_.click_at({14, 300});
  SOON(workspace().settings.layout.show_tree);
}

TEST_F(AtTheWindow, opens_the_model_to_compare_with) {
  const std::string first = demo("first"), second = demo("second");
  workspace().settings.recent = {second};
  workspace().open(first);
  SOON(model_name() == "first" && !workspace().busy());
  person_.press("ctrl+d");  // one model is open: the second is asked for
  SOON(person_.sees("Choose a file"));
  person_.click(second);
  SOON(workspace().documents().size() == 2u && document().diff.result.value() != nullptr);
}

TEST_F(AtTheWindow, asks_the_start_page_what_runs_with_many_tokens) {
  std::filesystem::create_directory(folder_ / "store");
  const std::string first = demo("store/first"), second = demo("store/second");
  workspace().settings.folders = {folder_ / "store"};
  SOON(person_.sees("first") && person_.sees("second") && workspace().shelf.unread() == 0);
  person_.press("ctrl+f");
  person_.type("second");
  SOON(!person_.sees("first"));
  person_.press("ctrl+a");
  person_.press("BackSpace");
  SOON(person_.sees("first"));
  person_.click("Size");
  SOON(workspace().shelf.view.by == ShelfColumn::size && !workspace().shelf.view.ascending);
  person_.click("as prompt");
  person_.type("100k");
  person_.press("Return");
  SOON(workspace().settings.context == 102'400);
  SOON(person_.sees("0 of 2 models run on this machine") && person_.sees("with a context of 102,400 tokens"));
  // what can be done with a row
  person_.click("second", 0, {"3"});
  person_.click("Keep as a favorite");
  SOON(workspace().settings.favorites == std::vector<std::string>{second});
  SOON(!workspace().shelf.listing() && workspace().shelf.models().front().favorite);
  person_.click("second", 0, {"3"});
  person_.click("Copy the path");
  EXPECT_EQ(person_.paste(), second);
  person_.click("first", 0, {"3"});
  person_.click("Open in a new tab");
  SOON(model_name() == "first" && !workspace().busy());
  EXPECT_EQ(workspace().documents().size(), 2u) << "the start page stays";
  EXPECT_EQ(document().load.asked().request.past + document().load.asked().request.sequence, 102'400u)
      << "it is asked the same";
}

TEST_F(AtTheWindow, finishes_a_lesson_and_begins_it_again) {
  workspace().attempt([&] { workspace().stage.play("order"); });
  SOON(document().model && !workspace().busy());
  workspace().attempt([&] { workspace().stage.go_to(workspace().lesson.count() - 1); });
  person_.click("Finish");
  SOON(workspace().lesson.is_at_end());
  person_.click("Begin again");
  SOON(workspace().lesson.at() == 0 && !workspace().lesson.is_at_end());
}

TEST_F(AtTheWindow, asks_what_a_part_of_the_window_shows) {
  show_demo();
  person_.press("F1");
  SOON(person_.sees("More: Getting started"));
  person_.press("Escape");
  SOON(!person_.sees("Esc closes, Left and Right turn pages"));
  person_.press("ctrl+f");
  person_.press("F1");
  SOON(person_.sees("The modules with their sizes."));
  person_.press("Escape");
}

TEST_F(AtTheWindow, states_a_budget_and_takes_advice_and_takes_it_back) {
  show_demo();
  person_.click("no budget");
  person_.type("32MiB");
  person_.press("Return");
  SOON(document().load.asked().request.device_budget == 32u << 20);
  SOON(verdict_of(document()).state == Verdict::State::over);
  const Asked before = document().load.asked();
  person_.press("F2");
  SOON(document().advice.is_current() && document().advice.answer.value() &&
       document().advice.answer.value()->advice);
  person_.click("Apply");
  SOON(document().advice.can_take_back());
  EXPECT_NE(document().load.asked(), before);
  person_.press("F2");  // the sheet closed, and what it did is to be seen
  person_.click("Undo suggestion");
  SOON(document().load.asked() == before);
}

TEST_F(AtTheWindow, walks_back_through_what_was_asked) {
  show_demo();
  const Asked first = document().load.asked();
  person_.click("no budget");
  person_.type("32MiB");
  person_.press("Return");
  SOON(document().load.asked().request.device_budget == 32u << 20);
  person_.press("T");  // no part of the request
  person_.press("ctrl+z");
  SOON(document().load.asked() == first);
  SOON(person_.sees("Undid: Device budget 32.00 MiB"));
  person_.press("ctrl+shift+z");
  SOON(document().load.asked().request.device_budget == 32u << 20);
  SOON(person_.sees("Redid: Device budget 32.00 MiB"));
}

TEST_F(AtTheWindow, exports_what_is_seen_to_a_file_and_to_the_clipboard) {
  show_demo();
  const std::string picture = folder_ / "seen.png";
  person_.press("ctrl+e");
  SOON(person_.sees("Browse") && person_.sees("PNG picture"));
  person_.click("Timeline", -1);
  person_.click("Browse");
  SOON(person_.sees("Places"));
  person_.press("ctrl+a");
  person_.type(picture);
  person_.press("Return");
  SOON(!person_.sees("Places") && person_.sees("PNG picture"));
  person_.click("Write");
  SOON(std::filesystem::exists(picture));
  EXPECT_TRUE(testing::read_file(picture).starts_with("\x89PNG"));
  person_.press("ctrl+e");
  SOON(person_.sees("PNG picture"));
  person_.click("Copy", -1);
  SOON(workspace().services.done == "Copied to the clipboard");
  EXPECT_TRUE(person_.paste_png().starts_with("\x89PNG"));
  person_.press("ctrl+e");
  SOON(person_.sees("CSV table"));
  person_.click("CSV table");
  person_.click("Copy", -1);
  SOON(person_.paste().starts_with("block,space,bytes,"));
}

TEST_F(AtTheWindow, converts_to_a_file_that_was_browsed_for) {
  workspace().open(demo("first"));
  SOON(model_name() == "first" && !workspace().busy());
  const std::string out = folder_ / "small.gguf";
  workspace().settings.panel = "convert";
  person_.click("safetensors, one file");
  SOON(person_.sees("GGUF version"));
  person_.click("GGUF version");
  SOON(!workspace().busy());
  person_.click("as stored");
  SOON(person_.sees("Q8_0"));
  person_.click("Q8_0");
  person_.click("Browse");
  SOON(person_.sees("Places"));
  person_.press("ctrl+a");
  person_.type(out);
  person_.press("Return");
  SOON(!person_.sees("Places") && !workspace().busy());
  person_.click("Convert", -1);
  SOON(std::filesystem::exists(out));
  SOON(person_.sees("Written") && person_.sees("verified"));
}

TEST_F(AtTheWindow, asks_of_the_timeline_what_can_be_done) {
  show_demo();
  person_.press("comma");
  SOON(!document().time.at_peak());
  SOON(!drawn_at("device peak").empty() || !drawn_at("peak").empty());
  const ImVec2 flag = drawn_at("peak").empty() ? drawn_at("device peak").front() : drawn_at("peak").back();
  person_.click_at({flag.x, flag.y + 30}, {"3"});
  SOON(person_.sees("Go to the peak"));
  person_.click("Go to the peak");
  SOON(document().time.at_peak());
}

TEST_F(AtTheWindow, plays_the_load_and_steps_through_it) {
  show_demo();
  person_.press("comma");
  SOON(!document().time.at_peak());
  const std::size_t step = document().time.step();
  person_.press("period");
  SOON(document().time.step() == step + 1);
  person_.press("space");
  SOON(document().time.playing());
  SOON(document().time.step() != step + 1);
  person_.press("space");
  SOON(!document().time.playing());
}

TEST_F(AtTheWindow, shows_every_tab_the_keys_and_another_scale) {
  show_demo();
  for (std::size_t i = 0; i < tabs().size(); ++i) {
    person_.press("ctrl+" + std::to_string(i + 1));
    SOON(find_panel(workspace().settings.panel).tab == tabs()[i]);
  }
  for (const std::string_view tab : tabs()) {
    person_.click(tab);
    SOON(find_panel(workspace().settings.panel).tab == tab);
  }
  person_.press("question");
  SOON(person_.sees("Keyboard shortcuts"));
  person_.press("Escape");
  SOON(!person_.sees("Keyboard shortcuts"));

  const float usual = workspace().settings.shown_scale;
  person_.press("ctrl+equal");
  SOON(workspace().settings.shown_scale > usual);
  person_.press("ctrl+0");
  SOON(workspace().settings.scale == 0);
  SOON(workspace().settings.shown_scale == usual);

  const bool dark = workspace().settings.dark;
  person_.press("ctrl+t");
  SOON(workspace().settings.dark != dark);
}

TEST_F(AtTheWindow, runs_what_is_typed_into_the_palette_and_quits) {
  show_demo();
  person_.press("ctrl+p");
  person_.type("host_budget 1GiB");
  person_.press("Return");
  SOON(document().load.asked().request.host_budget == 1u << 30);
  person_.press("ctrl+p");
  person_.type("Show Lifetimes");
  person_.press("Return");
  SOON(workspace().settings.panel == "lifetimes");
  person_.press("ctrl+q");
  SOON(app_.wants_close());
}

TEST_F(AtTheWindow, runs_a_row_of_the_palette_that_is_clicked) {
  show_demo();
  person_.click("Ctrl+P commands");
  person_.type("lifet");
  SOON(person_.sees("Show Lifetimes"));
  person_.click("Show Lifetimes");
  SOON(workspace().settings.panel == "lifetimes");
  // the hints of the last line are buttons
  person_.click("F2 does it fit?");
  SOON(person_.sees("staged_ring in file order"));
  person_.press("Escape");
  SOON(!person_.sees("staged_ring in file order"));
  person_.click("? keys");
  SOON(person_.sees("Keyboard shortcuts"));
  person_.click_at({640, 320});  // inside of the sheet
  EXPECT_TRUE(person_.wait_until([&] { return person_.sees("Keyboard shortcuts"); }));
  person_.click_at({20, 700});  // outside
  SOON(!person_.sees("Keyboard shortcuts"));
}

TEST_F(AtTheWindow, goes_everywhere_without_a_mouse) {
  show_demo();
  person_.press("ctrl+f");
  person_.type("down_proj");
  SOON(document().table.view().rows.size() == 8);
  person_.press("Return");
  SOON(document().selected_tensor() == document().table.view().rows.front());
  person_.press("Down");
  person_.press("Down");
  SOON(document().selected_tensor() != document().table.view().rows.front());
  person_.press("F6");  // the tabs
  person_.press("Right");
  person_.press("Return");
  SOON(workspace().settings.panel == "load");
  person_.press("ctrl+3");
  SOON(workspace().settings.panel == "methods");
  SOON(document().load.comparison.value() && !document().load.comparison.value()->answer.rows.empty());
  const auto before = document().load.asked().request.methods;
  person_.press("F6");
  person_.press("F6");
  person_.press("Down");
  SOON(document().load.asked().request.methods != before);
}

TEST_F(AtTheWindow, loses_no_click_of_a_mouse_that_goes_on_at_once) {
  show_demo();
  const auto tab = [](std::string_view title) {
    const ImVec2 at = drawn_at(title).at(0);
    return ImVec2{at.x + 4, at.y + 4};
  };
  for (int round = 0; round < 3; ++round)
    for (const auto& wanted : {std::pair{"Load", "load"}, {"Arena", "arena"}, {"Values", "values"}}) {
      const char *const title = wanted.first, *const panel = wanted.second;
      SOON(person_.sees(title));
      person_.flick(tab(title), {640, 790});
      SOON(workspace().settings.panel == panel);
      person_.flick(tab("Methods"), tab("Files"));
      SOON(workspace().settings.panel == "methods");
    }
}

// Faster than frames are drawn, as fast as people type.
TEST_F(AtTheWindow, loses_no_letter_of_a_key_that_is_down_for_12_ms) {
  show_demo();
  std::vector<std::string> keys;
  std::string expected;
  for (int round = 0; round < 3; ++round)
    for (char letter = 'a'; letter <= 'z'; ++letter) {
      keys.emplace_back(1, letter);
      expected += letter;
    }
  for (const char* const twice : {"l", "l", "o", "o"}) {
    keys.emplace_back(twice);
    expected += twice;
  }
  person_.press("ctrl+f");
  person_.tap(keys);
  SOON(document().table.view().filter == expected);
  person_.press("ctrl+a");
  const std::string words = "model.layers.0.self_attn.q_proj.weight, or: (Another) \"one\" of 1,024 = 2^10?";
  person_.type(words);
  SOON(document().table.view().filter == words);
  person_.press("Escape");
  // letters right behind the shortcut belong to the field that it opens
  person_.tap({"ctrl+p", "z", "o", "o", "m", "ctrl+a", "q", "u", "i", "t", "Return"});
  SOON(workspace().services.requests.holds<Quit>());
}

}  // namespace

}  // namespace loadline::gui

// --- GoogleTest where a person can be had, and a display; else exit code 77, which CTest takes for skipped.

int main(int argc, char** argv) {
  constexpr int kSkipped = 77;
  loadline::gui::prepare_drivers();
  ::testing::InitGoogleTest(&argc, argv);
  if (const std::string why = loadline::gui::no_person(); !why.empty()) {
    std::printf("skipped: %s\n", why.c_str());
    return kSkipped;
  }
  return RUN_ALL_TESTS();
}
