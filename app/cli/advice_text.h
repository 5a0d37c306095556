// What `plan` says after a table in which not everything fits: the cheapest change that does.
#pragma once

#include "app/cli/command.h"
#include "core/load/answer.h"

#include <string>

namespace loadline::cli {

// `path` is the model as the command line named it: each change comes with the command that projects it.
std::string advice_text(const LoadAdvice& advice, const std::string& path);
Json advice_json(const LoadAdvice& advice, const std::string& path);

}  // namespace loadline::cli
