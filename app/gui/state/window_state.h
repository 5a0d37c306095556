// What the window remembers from one start to the next: its parts, its looks, and the models opened last.
#pragma once

#include "app/gui/state/workspace.h"

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace loadline::gui {

inline constexpr std::size_t kMostRecent = 12, kMostFavorites = 50;

struct WindowState {
  bool dark = true;
  bool follows_desktop = true;  // the theme of a window that was never shown before
  Layout layout;
  float scale = 0;                  // as Settings::scale
  int width = 0, height = 0;        // logical; 0: never shown
  std::vector<std::string> recent;  // paths, the last one first
  std::vector<std::string> favorites = {};
  bool operator==(const WindowState&) const = default;
};

// The state as a file's text, and back. What a text does not say, or says wrongly, is as it is by default: a
// state is no reason not to start.
std::string state_text(const WindowState& state);
WindowState parse_state(std::string_view text);

// As parse_state(), of a file that may be missing.
WindowState read_state(const std::string& path);
// Writes the file and its folder. Throws Error{io}.
void write_state(const WindowState& state, const std::string& path);

// Puts a path first, once.
void remember(std::vector<std::string>& recent, const std::string& path);

}  // namespace loadline::gui
