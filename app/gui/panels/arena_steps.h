// Step mode: a greedy run and the exact search beside each other, step by step.
#pragma once

#include "app/gui/panels/arena_plot.h"
#include "app/gui/parts/ui.h"
#include "app/gui/state/workspace.h"

namespace loadline::gui {

// Fills the rest of the region with two plots, and below them the controls to move through the steps. Arrow
// keys step, Enter plays and stops.
class ArenaStepsView {
 public:
  void draw(Document& document, const Ui& ui);
  void forget() { waited_ = 0; }

 private:
  bool absent(Document& document, const Ui& ui) const;
  void advance(ArenaView& view, const ArenaSteps& steps);

  double waited_ = 0;  // seconds since the last step that was played
};

}  // namespace loadline::gui
