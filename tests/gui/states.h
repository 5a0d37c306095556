// The states that a panel must be able to draw: no model, odd ones, huge ones, and what goes wrong.
#pragma once

#include "app/gui/state/workspace.h"

#include <span>

namespace loadline::gui {

struct State {
  const char* name;
  void (*prepare)(Workspace& workspace);
};

std::span<const State> states();

}  // namespace loadline::gui
