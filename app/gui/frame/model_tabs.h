// The strip of open models, below the toolbar.
#pragma once

#include "app/gui/parts/ui.h"
#include "app/gui/state/workspace.h"

namespace loadline::gui {

// The strip's height in pixels: 0 for one model, which the toolbar names.
float model_tabs_height(const Workspace& workspace, const Ui& ui);
// Draws at the cursor over `width` pixels. A click shows a model; its cross or the middle button closes it.
void draw_model_tabs(Workspace& workspace, const Ui& ui, float width);

}  // namespace loadline::gui
