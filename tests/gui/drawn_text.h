// What was drawn, as text: glyphs are read back from ImGui's draw lists.
#pragma once

#include <string>
#include <string_view>

namespace loadline::gui {

// Of the last frame, in the order it was drawn, without blanks, which are not drawn: "Openamodel". What lies
// outside its clip rectangle as a whole is left out.
std::string drawn_text();
// The same of a text that is expected.
std::string without_blanks(std::string_view text);

}  // namespace loadline::gui
