// Whether the desktop wants dark windows.
#pragma once

#include <optional>

namespace loadline::gui {

// Asks the desktop's portal (org.freedesktop.appearance, color-scheme) over D-Bus; waits at most half a
// second. Nothing without a session bus, without a portal, or where the user prefers neither.
std::optional<bool> desktop_prefers_dark();

}  // namespace loadline::gui
