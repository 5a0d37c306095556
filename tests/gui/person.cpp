// Child processes that act while this one draws.
#include "tests/gui/person.h"

#include "core/base/error.h"
#include "tests/gui/drawn_text.h"
#include "tests/support/builders.h"

#include <chrono>
#include <cmath>
#include <csignal>
#include <cstdlib>
#include <filesystem>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <imgui.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

namespace loadline::gui {
namespace {

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

}  // namespace

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

void Person::click_at(ImVec2 pixel) {
  move_to(pixel);
  run({"xdotool", "click", "1"});
}

void Person::flick(ImVec2 at, ImVec2 away) {
  const auto whole = [](float pixel) { return std::to_string(std::lround(pixel)); };
  run({"xdotool", "getwindowfocus", "mousemove", "--window", "%1", whole(at.x), whole(at.y), "click", "1",
       "mousemove", "--window", "%1", whole(away.x), whole(away.y)});
}

void Person::click(std::string_view words, int nth) {
  std::vector<ImVec2> places;
  const auto needed = static_cast<std::size_t>(nth < 0 ? -nth : nth + 1);
  if (!wait_until([&] { return (places = drawn_at(words)).size() >= needed; })) {
    ADD_FAILURE() << "'" << words << "' is shown " << places.size() << " times";
    return;
  }
  click_at(nth < 0 ? places[places.size() - needed] : places[needed - 1]);
}

std::string Person::paste() { return run({"xclip", "-out", "-selection", "clipboard"}); }

bool Person::sees(std::string_view words) const { return !drawn_at(words).empty(); }

}  // namespace loadline::gui
