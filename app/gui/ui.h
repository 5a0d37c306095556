// What every drawing function gets: theme, fonts and scale of this frame.
#pragma once

#include "app/gui/theme.h"

#include <imgui.h>

namespace loadline::gui {

struct Ui {
  const Theme* theme = nullptr;
  Fonts fonts;
  float scale = 1;

  // Logical units to pixels.
  float px(float logical) const { return logical * scale; }
};

}  // namespace loadline::gui
