// A small script language that drives the window, for tests and demos.
#pragma once

#include "app/gui/frame/gui_app.h"

#include <string>
#include <string_view>
#include <vector>

namespace loadline::gui {

// A line begins with an action (app/gui/actions.h), a load option (core/load/load_options.h) or a command for
// the window itself. The rest of the line is the argument. The manual's page "scripting" lists the commands.
struct ScriptLine {
  int number = 0;
  std::string command;
  std::string argument;
};

std::vector<std::string_view> script_words();

// Throws Error{usage} `FILE: line N: ...` for unknown words and missing arguments.
std::vector<ScriptLine> parse_script(std::string_view text, const std::string& file);

// Plays the lines in order, drawing as it goes. A failing line throws its Error with the line's
// number. Returns true if the script asked to quit.
bool play_script(GuiApp& app, const std::vector<ScriptLine>& lines, const std::string& file);

}  // namespace loadline::gui
