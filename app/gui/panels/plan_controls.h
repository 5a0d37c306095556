// The choice of method, order and ring, as several panels offer it.
#pragma once

#include "app/gui/session.h"
#include "app/gui/ui.h"

namespace loadline::gui {

// Method and order side by side.
void method_and_order(Session& session, const Ui& ui, float method_width, float order_width);
// Ring bytes, slots and activations, one under the other, with labels.
void ring_controls(Session& session, const Ui& ui);

}  // namespace loadline::gui
