// The choice of a load, as several panels offer it.
#pragma once

#include "app/gui/panels/option_controls.h"
#include "app/gui/ui.h"
#include "app/gui/workspace.h"

namespace loadline::gui {

// Method and order side by side.
void method_and_order(Workspace& workspace, const Ui& ui, float method_width, float order_width);

// What a load has to fit into and what is simulated, side by side in as many lines as it takes.
void memory_options(Document& document, const Ui& ui, OptionControls& controls);
// What the chosen method has a choice in, likewise.
void method_options(Document& document, const Ui& ui, OptionControls& controls);
// What an upload by the chosen method has a choice in, one under the other.
void upload_options(Document& document, const Ui& ui, OptionControls& controls);

// Where the weights go, for a method that keeps some off the device: one of several options. The one that is
// set shows for other methods, too: it is why they cannot be done.
class PlacementControls {
 public:
  void draw(Document& document, const Ui& ui, OptionControls& controls);

 private:
  const LoadOption* wanted_ = nullptr;  // chosen, before it has a value
};

}  // namespace loadline::gui
