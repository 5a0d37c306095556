// Everything a user can do, as one table: buttons, shortcuts and scripts are rows of it.
#pragma once

#include "app/gui/workspace.h"

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace loadline::gui {

enum class Argument : std::uint8_t { none, optional, required };

// `run` throws Error when it cannot be done, whatever `enabled` says; what goes wrong later is a notice.
struct Action {
  std::string_view id;  // the word in a script
  std::string_view title;
  // "Ctrl+O", or a key alone, which does nothing while somebody types; empty: none.
  std::string_view shortcut;
  Argument argument;                  // one line of text
  bool (*enabled)(const Workspace&);  // it makes sense now
  void (*run)(Workspace&, const std::string& argument);
};

std::span<const Action> actions();
// Null for an unknown id.
const Action* find_action(std::string_view id);
// For buttons: a failure is a notice. The id must be one of the table.
void run_action(Workspace& workspace, std::string_view id);

}  // namespace loadline::gui
