// The arena panel's controls for source and options, and the figures of a packing.
#pragma once

#include "app/gui/parts/ui.h"
#include "app/gui/parts/widgets.h"
#include "app/gui/state/workspace.h"

namespace loadline::gui {

// Draws the controls on as many lines as they need.
class ArenaControls {
 public:
  void draw(Workspace& workspace, const Ui& ui);

 private:
  void pick_options(Workspace& workspace, const Ui& ui);
  void pick_capacity(Workspace& workspace, const Ui& ui, ArenaOptions& options);

  TypedField capacity_;
};

// Draws height, lower bound, gap, greedy height, how the packing was found, and whether it fits the capacity.
void arena_figures(const Document& document, const Ui& ui, const ArenaScene& scene, std::uint32_t arena);
// Draws the legend of the colours.
void arena_legend(const Ui& ui, const ArenaScene& scene, std::uint32_t arena);

}  // namespace loadline::gui
