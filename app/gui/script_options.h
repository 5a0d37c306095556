// The words of a script that set what is loaded, how, where to, and what follows.
#pragma once

#include "app/gui/workspace.h"

#include <span>
#include <string>
#include <string_view>

namespace loadline::gui {

struct OptionWord {
  std::string_view id;
  void (*set)(Workspace&, const std::string& value);  // throws Error{usage}
};

std::span<const OptionWord> option_words();
// Null for an unknown id.
const OptionWord* find_option_word(std::string_view id);

}  // namespace loadline::gui
