// The line at the top of the window: which model, where to, by which load, and whether that fits.
#pragma once

#include "app/gui/panels/option_controls.h"
#include "app/gui/session/workspace.h"
#include "app/gui/ui.h"

namespace loadline::gui {

class Toolbar {
 public:
  // Draws over the width of the region, `height` pixels high.
  void draw(Workspace& workspace, const Ui& ui, float height);

 private:
  void draw_model(const Workspace& workspace, const Ui& ui, float room);
  void draw_request(Workspace& workspace, const Ui& ui, float right);
  void draw_chip(Workspace& workspace, const Ui& ui, float room);
  void draw_options(Workspace& workspace, const Ui& ui);
  void draw_buttons(Workspace& workspace, const Ui& ui);

  OptionControls controls_;
  OptionControls sheet_controls_;
  bool advice_open_ = false;
};

}  // namespace loadline::gui
