// A small language that drives the window: how tests and demos do what a user does.
#pragma once

#include "app/gui/gui_app.h"

#include <string>
#include <string_view>
#include <vector>

namespace loadline::gui {

// One command per line; kScriptHelp lists them. The argument is the rest of the line.
struct ScriptLine {
  int number = 0;
  std::string command;
  std::string argument;
};

// All but quit.
std::vector<std::string_view> script_commands();

// Throws Error{usage} `FILE: line N: ...` for unknown commands and missing arguments.
std::vector<ScriptLine> parse_script(std::string_view text, const std::string& file);

// Plays the lines in order, drawing as it goes. A failing command throws its Error with the line's
// number. Returns true if the script asked to quit.
bool play_script(GuiApp& app, const std::vector<ScriptLine>& lines, const std::string& file);

}  // namespace loadline::gui
