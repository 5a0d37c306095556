// Everything that a user can do, as one table. Buttons, shortcuts and scripts run its rows.
#pragma once

#include "app/gui/state/workspace.h"

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace loadline::gui {

enum class Argument : std::uint8_t { none, optional, required };

// `run` throws Error if the action cannot be done, even if `enabled` is true. A later failure becomes a
// notice.
struct Action {
  std::string_view id;  // the word in a script
  std::string_view title;
  // "Ctrl+O", or a single key, which is ignored while the user types text; empty: no shortcut.
  std::string_view shortcut;
  Argument argument;                  // one line of text
  bool (*enabled)(const Workspace&);  // whether the action makes sense now
  void (*run)(Workspace&, const std::string& argument);
};

std::span<const Action> actions();
// The action with this id; null for an unknown id.
const Action* find_action(std::string_view id);
// Runs an action for a button: a failure becomes a notice. The id must be in the table.
void run_action(Workspace& workspace, std::string_view id);

}  // namespace loadline::gui
