// The legend of the colors that the map and the strips of files share.
#pragma once

#include "app/gui/parts/theme.h"
#include "app/gui/state/workspace.h"

namespace loadline::gui {

// At the cursor, or behind the last item unless it is `first`; in at most so many lines, without the rows
// that have no more room. Returns the category of paint_of() under the mouse, else -1. `diff` may be null.
int coloring_legend(const Ui& ui, const Model& model, ColorBy mode, const ModelDiff* diff, bool first,
                    int lines = 1);

}  // namespace loadline::gui
