// The built-in demo model: a small checkpoint in a temporary folder.
#pragma once

#include "core/base/tasks.h"

#include <string>

namespace loadline::gui {

// Writes the demo preset with seeded random weights into `folder`, unless it is already there, and
// returns the path to open. The model appears whole or not at all, even if others write there at the same
// time.
std::string write_demo_model(const std::string& folder, Progress& progress);

}  // namespace loadline::gui
