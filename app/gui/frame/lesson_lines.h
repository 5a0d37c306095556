// The lines of a lesson's step that say what the views show: actions and load options, as in a script.
#pragma once

#include "app/gui/state/workspace.h"

#include <string>

namespace loadline::gui {

// Throws Error: usage for a word that is unknown, or that a lesson may not say, because it does more than
// change the view.
void run_lesson_line(Workspace& workspace, const std::string& line);

// In every frame: runs the lines that wait, each once it can be run. One that fails becomes a notice.
void follow_lesson(Workspace& workspace);

}  // namespace loadline::gui
