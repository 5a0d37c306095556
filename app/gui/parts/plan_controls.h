// Controls for the load, shared by several panels.
#pragma once

#include "app/gui/parts/option_controls.h"
#include "app/gui/parts/ui.h"
#include "app/gui/state/workspace.h"

namespace loadline::gui {

// Draw the choice of the method, of the order, and both side by side.
void method_choice(Workspace& workspace, const Ui& ui, float width);
void order_choice(Workspace& workspace, const Ui& ui, float width);
void method_and_order(Workspace& workspace, const Ui& ui, float method_width, float order_width);

// Draws the options that the chosen method takes, side by side on as many lines as they need.
void method_options(Document& document, const Ui& ui, OptionControls& controls);
// Draws the options of an upload by the chosen method, one below the other.
void upload_options(Document& document, const Ui& ui, OptionControls& controls);

// The placement of weights, for a method that keeps some off the device: one of several options. A placement
// that is set is shown for other methods, too, since it is why they are refused.
class PlacementControls {
 public:
  void draw(Document& document, const Ui& ui, OptionControls& controls);

 private:
  const LoadOption* wanted_ = nullptr;  // the option that was chosen but has no value yet
};

}  // namespace loadline::gui
