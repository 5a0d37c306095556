// What would make the load fit that is asked for.
#pragma once

#include "app/gui/parts/ui.h"
#include "app/gui/state/workspace.h"

namespace loadline::gui {

// The content of the sheet behind the chip: the verdict, each change with its figures before and after, and
// buttons that take it over or back. Searches for changes while it is drawn.
void draw_advice(Workspace& workspace, const Ui& ui);

}  // namespace loadline::gui
