// The manual over the window.
#pragma once

#include "app/gui/ui.h"
#include "app/gui/workspace.h"

namespace loadline::gui {

// The page Workspace::manual, if there is one, to be read and closed.
void draw_manual(Workspace& workspace, const Ui& ui);

}  // namespace loadline::gui
