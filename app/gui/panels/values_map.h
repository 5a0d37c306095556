// The heat map of a tensor's values: cells, their scale, and zooming with the mouse.
#pragma once

#include "app/gui/parts/ui.h"
#include "app/gui/state/model/values_view.h"

namespace loadline::gui {

// What a cell stands for.
enum class CellValue : std::uint8_t { mean, largest };

// Draws the cells of the view's range, with axes and a scale, into `size` pixels at the cursor. The wheel
// zooms at the place under the mouse, a double click shows everything.
void draw_values_map(ValuesView& values, const Ui& ui, ImVec2 size, CellValue show);

// Draws a square of counts with axes and a scale into the room there is: from low to high in both directions,
// the kept tensor to the right, the other one upwards.
void draw_scatter(const ValueComparison& comparison, const Ui& ui, float room, float height);

}  // namespace loadline::gui
