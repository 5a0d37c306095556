// A sheet lies over everything else in the middle of the window: palette, keys, manual, a question.
#pragma once

#include "app/gui/parts/ui.h"

namespace loadline::gui {

// Between the constructor and the end of the block the sheet's content is drawn. It keeps the keyboard.
class SheetScope {
 public:
  // `size` in pixels, cut to what the window has; `top` too, else the sheet stands in the middle.
  SheetScope(const Ui& ui, const char* id, ImVec2 size, float top = -1);
  SheetScope(const SheetScope&) = delete;
  SheetScope& operator=(const SheetScope&) = delete;
  ~SheetScope() { ImGui::End(); }
};

// In a sheet: whether Escape was pressed, or a mouse button outside of it.
bool sheet_is_left();

}  // namespace loadline::gui
