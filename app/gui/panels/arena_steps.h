// Step mode: a greedy run and the exact search beside each other, step by step.
#pragma once

#include "app/gui/panels/arena_plot.h"
#include "app/gui/ui.h"
#include "app/gui/workspace.h"

namespace loadline::gui {

// In what is left of the region: two plots, and below them what moves through the steps. Arrow keys step,
// Enter plays and stops.
class ArenaStepsView {
 public:
  void draw(Workspace& workspace, const Ui& ui);
  void forget() { waited_ = 0; }

 private:
  bool absent(Document& document, const Ui& ui) const;
  void advance(ArenaView& view, const ArenaSteps& steps);
  static void draw_side(Document& document, const Ui& ui, const PackingTrace& trace, bool greedy,
                        ImVec2 size);
  static void draw_status(const Ui& ui, const ArenaSteps& steps, const PackingTrace& trace, std::size_t at);
  static void draw_plot(const Ui& ui, const ArenaSteps& steps, const PackingTrace& trace, std::size_t at,
                        ImVec2 size);
  static void draw_controls(Document& document, const Ui& ui, const ArenaSteps& steps);

  double waited_ = 0;  // seconds since the last step that was played
};

}  // namespace loadline::gui
