// What a lesson says when it is shown to an audience.
#pragma once

#include "app/gui/parts/ui.h"
#include "app/gui/state/workspace.h"

namespace loadline::gui {

// The step's title, and its text and question, or the answer once that is shown, and its run; in the current
// region.
void draw_caption(Workspace& workspace, const Ui& ui);

}  // namespace loadline::gui
