// The manual, drawn over the window.
#pragma once

#include "app/gui/parts/ui.h"
#include "app/gui/state/workspace.h"

namespace loadline::gui {

// Draws the manual page Workspace::manual, with a way to close it; nothing if it is empty.
void draw_manual(Workspace& workspace, const Ui& ui);

}  // namespace loadline::gui
