// Plays a script of app/gui/frame/gui_app.h: gui_play SCRIPT [window], offscreen unless told otherwise.
// Every message of the Vulkan validation layer is a failure.
#include "app/gui/frame/gui_app.h"
#include "core/base/error.h"
#include "tests/gui/harness.h"

#include <cstdio>
#include <fstream>
#include <sstream>
#include <string_view>

namespace {

using namespace loadline::gui;

int play(const std::string& path, bool desktop) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  const std::vector<ScriptLine> lines = parse_script(text.str(), path);
  WindowOptions options;
  options.validation = true;
  if (desktop) options.scale = 1;
  const auto window = desktop ? open_desktop_window(options) : open_offscreen_window(options);
  {
    GuiApp app(*window, "");
    play_script(app, lines, path);
    app.settle();
  }
  const std::vector<std::string> messages = window->validation_messages();
  for (const std::string& message : messages) std::fprintf(stderr, "%s\n", message.c_str());
  return messages.empty() ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) return 2;
  prepare_drivers();
  try {
    return play(argv[1], argc > 2 && std::string_view(argv[2]) == "window");
  } catch (const loadline::Error& error) {
    std::fprintf(stderr, "gui_play: %s\n", error.what());
    return 1;
  }
}
