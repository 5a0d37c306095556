// What was drawn, as text: glyphs are read back from ImGui's draw lists.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <imgui.h>

namespace loadline::gui {

// Of the last frame, in the order it was drawn, without blanks, which are not drawn: "Openamodel". What lies
// outside its clip rectangle as a whole is left out.
std::string drawn_text();
// The middle of every place, in pixels, where the last frame shows these words: in one line, with nothing
// that touches them before or after. In the order in which they were drawn: what lies on top comes last.
std::vector<ImVec2> drawn_at(std::string_view words);
// A text that is expected, as drawn_text() has it.
std::string without_blanks(std::string_view text);

}  // namespace loadline::gui
