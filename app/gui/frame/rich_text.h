// Draws texts whose words differ in emphasis, broken into lines.
#pragma once

#include "app/gui/parts/ui.h"
#include "app/report/markdown.h"

namespace loadline::gui {

// The width of a text in one line, and of its widest word, in pixels.
struct RichWidth {
  float line = 0;
  float word = 0;
};
RichWidth rich_width(const Ui& ui, const report::RichText& text);

// The height of a text in lines of `width` pixels; draw_rich_text() draws it there, and returns it too. Words
// that are wider stick out.
float rich_height(const Ui& ui, const report::RichText& text, float width);
float draw_rich_text(const Ui& ui, const report::RichText& text, ImVec2 at, float width);

}  // namespace loadline::gui
