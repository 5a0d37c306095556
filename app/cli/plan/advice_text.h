// The advice of `plan` after a table in which not everything fits: the smallest changes that make a load fit.
#pragma once

#include "app/cli/base/command.h"
#include "core/load/answer/answer.h"

#include <string>

namespace loadline::cli {

// `path` is the model as given on the command line: each change comes with a `plan` command that projects it.
std::string advice_text(const LoadAdvice& advice, const std::string& path);
Json advice_json(const LoadAdvice& advice, const std::string& path);

}  // namespace loadline::cli
