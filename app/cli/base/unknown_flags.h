// Reports unknown flags, with their new name or the nearest known flag.
#pragma once

#include "core/base/remedy.h"

#include <optional>
#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace loadline::cli {

// Throws Error{usage} for the first flag in `arguments` that neither `app` nor the named command knows; the
// message has its new name or the nearest known flag.
void check_flags(const CLI::App& app, const std::vector<std::string>& arguments);

// "; --force allows it"; empty without a remedy.
std::string remedy_words(const std::optional<Remedy>& remedy);
// The remedy as a flag: "--align 64".
std::string remedy_flag(const Remedy& remedy);

}  // namespace loadline::cli
