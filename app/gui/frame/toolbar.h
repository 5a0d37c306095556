// The line at the top of the window: which model, where to, by which load, and whether that fits.
#pragma once

#include "app/gui/parts/option_controls.h"
#include "app/gui/parts/ui.h"
#include "app/gui/state/workspace.h"

namespace loadline::gui {

class Toolbar {
 public:
  // Draws over the width of the region, `height` pixels high.
  void draw(Workspace& workspace, const Ui& ui, float height);

 private:
  // What stands in the line; the rest is in the sheet of options and behind "More".
  struct Shown {
    bool target = true, sheets = true, order = true, open = true, name = true;
  };
  static Shown shown_in(const Ui& ui, float width);
  static float request_width(const Ui& ui, const Shown& shown);
  void draw_model(const Workspace& workspace, const Ui& ui, float room);
  void draw_request(Workspace& workspace, const Ui& ui, const Shown& shown, float right);
  void draw_chip(Workspace& workspace, const Ui& ui, float room);
  void draw_options(Workspace& workspace, const Ui& ui, bool with_order);
  void draw_buttons(Workspace& workspace, const Ui& ui, const Shown& shown);

  OptionControls controls_;
  OptionControls sheet_controls_;
  bool advice_open_ = false;
};

}  // namespace loadline::gui
