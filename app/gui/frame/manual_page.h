// Draws a page of the manual.
#pragma once

#include "app/gui/parts/ui.h"

#include <string_view>

namespace loadline::gui {

// Markdown in lines as wide as the region; code and tables may be wider.
void draw_manual_page(const Ui& ui, std::string_view markdown);

}  // namespace loadline::gui
