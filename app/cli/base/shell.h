// Command lines for display, safe to paste into a shell.
#pragma once

#include <string>
#include <string_view>

namespace loadline::cli {

// `raw` as one word for bash and zsh: unchanged if that is safe, else quoted; characters unsafe for a
// terminal are written as escapes.
std::string shell_word(std::string_view raw);

}  // namespace loadline::cli
