// The choice of what the arena panel packs and how, and the figures of a packing.
#pragma once

#include "app/gui/ui.h"
#include "app/gui/widgets.h"
#include "app/gui/workspace.h"

namespace loadline::gui {

// On as many lines as they need.
class ArenaControls {
 public:
  void draw(Workspace& workspace, const Ui& ui);

 private:
  void pick_options(Workspace& workspace, const Ui& ui);
  void pick_capacity(Workspace& workspace, const Ui& ui, ArenaOptions& options);

  TypedField capacity_;
};

// Height, lower bound, gap, what greedy has, how it was found, and whether it keeps the capacity.
void arena_figures(const Document& document, const Ui& ui, const ArenaScene& scene, std::uint32_t arena);
// What the colours mean.
void arena_legend(const Ui& ui, const ArenaScene& scene, std::uint32_t arena);

}  // namespace loadline::gui
