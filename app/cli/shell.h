// Command lines to be printed for a person, who pastes them into a shell.
#pragma once

#include <string>
#include <string_view>

namespace loadline::cli {

// One word for bash and zsh, whatever is in it: as it is where that is safe, quoted where not, and with
// escapes where it holds what must not reach a terminal.
std::string shell_word(std::string_view raw);

}  // namespace loadline::cli
