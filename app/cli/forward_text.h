// What is said of a forward pass: for a person, and as JSON.
#pragma once

#include "app/cli/command.h"
#include "core/load/request_pass.h"

#include <string>
#include <vector>

namespace loadline::cli {

// What a file's own names for sizes were taken as, where that may be wrong.
std::vector<std::string> size_notes(const RequestPass& pass);

// The contract's "forward"; null where nothing is known.
Json forward_json(const RequestPass& pass);
// Lines for a person; empty where nothing is known and nothing was asked.
std::string forward_text(const RequestPass& pass);

}  // namespace loadline::cli
