// What the palette offers for what was typed: actions, options with values, panels, tensors and modules.
#pragma once

#include "app/gui/state/workspace.h"

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace loadline::gui {

struct PaletteItem {
  std::string title;        // "Show the panel Methods"
  std::string hint;         // a shortcut, or what kind of thing it is
  std::string word;         // of a script: an action, or an option of the load
  std::string argument;     // of that word
  bool needs_more = false;  // the argument is still to be typed: `word` goes into the field
  std::string takes = {};   // what that is, as in the manual: "FORMAT FILE", "on|off"
};

// The best `most` of what matches, best first: its words begin like those typed, or contain their letters in
// order. A whole line of a script is an item of its own.
std::vector<PaletteItem> palette_items(const Workspace& workspace, std::string_view typed, std::size_t most);
// How well `text` matches what was typed: the less the better; nothing if it does not.
std::optional<int> match_rank(std::string_view text, std::string_view typed);
// Runs an item. Throws Error.
void run_item(Workspace& workspace, const PaletteItem& item);

}  // namespace loadline::gui
