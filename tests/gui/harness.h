// What programs that draw share: drivers, a window that draws nothing, drawn text, odd states.
#pragma once

#include "app/gui/state/workspace.h"
#include "app/gui/window/window.h"

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <imgui.h>

namespace loadline::gui {

// --- What a test program that draws does before anything else.

// Points the Vulkan loader at the software driver, so that every machine draws the same, and keeps
// driver and validation layer in memory to the end: once unloaded, what they still own looks like
// leaks without a name to the leak checker.
void prepare_drivers();

// --- A window for tests that builds frames and draws nothing: no Vulkan, no display.

// picture() throws Error{unsupported}.
std::unique_ptr<Window> open_null_window(const WindowOptions& options);

// --- What was drawn, as text: glyphs are read back from ImGui's draw lists.

// Of the last frame, in the order it was drawn, without blanks, which are not drawn: "Openamodel". What lies
// outside its clip rectangle as a whole is left out.
std::string drawn_text();
// The middle of every place, in pixels, where the last frame shows these words: in one line, with nothing
// that touches them before or after. In the order in which they were drawn: what lies on top comes last.
std::vector<ImVec2> drawn_at(std::string_view words);
// A text that is expected, as drawn_text() has it.
std::string without_blanks(std::string_view text);

// --- The states that a panel must be able to draw: no model, odd ones, huge ones, and what goes wrong.

struct State {
  const char* name;
  void (*prepare)(Workspace& workspace);
};

std::span<const State> states();

}  // namespace loadline::gui
