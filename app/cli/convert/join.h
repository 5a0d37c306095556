// Ending a conversion, for `join` and for a `convert --resume` that finds nothing else to do.
#pragma once

#include "app/cli/base/command.h"

#include <string>

namespace loadline::cli {

// Verifies the parts of an output, puts them in place and reports. Throws as join_parts() does.
int run_join(const Context& context, const std::string& out, bool force);

}  // namespace loadline::cli
