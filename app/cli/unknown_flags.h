// Flags that there are not: what they are called now, or which one was meant.
#pragma once

#include "core/base/remedy.h"

#include <optional>
#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace loadline::cli {

// Throws Error{usage} for the first flag among `arguments` that neither `app` nor the command named there
// knows: with its new spelling, or the nearest one.
void check_flags(const CLI::App& app, const std::vector<std::string>& arguments);

// "; --force does it", or nothing.
std::string remedy_words(const std::optional<Remedy>& remedy);
// "--align 64".
std::string remedy_flag(const Remedy& remedy);

}  // namespace loadline::cli
