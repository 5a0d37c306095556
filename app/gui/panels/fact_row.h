// A line of facts: a label, and a value that is never cut as long as lines can be broken.
#pragma once

#include "app/gui/ui.h"

#include <string_view>

namespace loadline::gui {

// The value stands at the right of the label or, without room there, below it.
void fact_row(const Ui& ui, std::string_view label, std::string_view value, std::string_view hint = {});

}  // namespace loadline::gui
