// Lines of facts: labels, and values that are never cut as long as lines can be broken.
#pragma once

#include "app/gui/parts/ui.h"

#include <string_view>

namespace loadline::gui {

// Every line, of small text with 4 pixels between, is as high as this.
float fact_height(const Ui& ui);
// The name of what the facts are about.
void fact_title(const Ui& ui, std::string_view name);
// The value stands at the right of the label or, without room there, below it.
void fact_row(const Ui& ui, std::string_view label, std::string_view value, std::string_view hint = {});

}  // namespace loadline::gui
