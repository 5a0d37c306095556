// The window's entry: what `loadline gui` calls.
#pragma once

#include "app/gui_request.h"

namespace loadline::gui {

// Opens a window and returns when it is closed; with a screenshot or a script to play without a
// display, draws offscreen instead. Returns the exit code. Throws Error.
int run_gui(const GuiRequest& request);

}  // namespace loadline::gui
