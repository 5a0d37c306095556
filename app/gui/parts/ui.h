// The context of every drawing function: theme, fonts and scale of this frame.
#pragma once

#include "app/gui/parts/theme.h"

#include <imgui.h>

namespace loadline::gui {

inline ImVec2 operator+(ImVec2 a, ImVec2 b) { return {a.x + b.x, a.y + b.y}; }
inline ImVec2 operator-(ImVec2 a, ImVec2 b) { return {a.x - b.x, a.y - b.y}; }
inline ImVec2 operator/(ImVec2 a, float by) { return {a.x / by, a.y / by}; }

struct Ui {
  const Theme* theme = nullptr;
  Fonts fonts;
  float scale = 1;

  // Logical units to pixels.
  float px(float logical) const { return logical * scale; }
};

}  // namespace loadline::gui
