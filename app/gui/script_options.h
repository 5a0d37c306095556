// The words of a script that are options of a load.
#pragma once

#include "app/gui/workspace.h"

#include <string>
#include <string_view>

namespace loadline::gui {

// What a word of a former version is called now; empty for any other.
std::string_view renamed_option(std::string_view word);

// Sets the option `id` of load_options(). Throws Error{usage}.
void play_option(Workspace& workspace, std::string_view id, const std::string& word);

}  // namespace loadline::gui
