// The colour of a tile of the map, and its row in the legend.
#pragma once

#include "app/gui/parts/ui.h"
#include "app/gui/state/workspace.h"

namespace loadline::gui {

// `category` is the row of the legend: a role, an index in Model::dtypes, a layer or a file; -1 = none.
struct Paint {
  int category = -1;
  ImU32 color = 0;
};

Paint paint_of(const Model& model, const Theme& theme, ColorBy mode, TensorId id);
// The ground of a tensor that differs that way from one of another model. Red is for what is over a budget.
ImU32 diff_color(const Theme& theme, DiffKind kind);
Paint paint_of_difference(const ModelDiff& diff, const Theme& theme, TensorId id);
Paint paint_of_difference(const ModelDiff& diff, const Theme& theme, NodeId module);
// The paint of a module whose tensors are too small to draw: by the role or layer in its path.
Paint paint_of_module(const Model& model, const Theme& theme, ColorBy mode, NodeId node);
// Fills a rectangle with the colour of a space, and hatches it: level lines for the host, upright ones for
// the page cache.
void paint_space(const Ui& ui, Space space, ImVec2 low, ImVec2 high);

}  // namespace loadline::gui
