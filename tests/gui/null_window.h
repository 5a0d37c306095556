// A window for tests that builds frames and draws nothing: no Vulkan, no display.
#pragma once

#include "app/gui/window/window.h"

#include <memory>

namespace loadline::gui {

// picture() throws Error{unsupported}.
std::unique_ptr<Window> open_null_window(const WindowOptions& options);

}  // namespace loadline::gui
