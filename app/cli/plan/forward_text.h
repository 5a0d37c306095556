// Describes a forward pass in text and in JSON.
#pragma once

#include "app/cli/base/command.h"
#include "core/load/request/pass.h"

#include <string>
#include <vector>

namespace loadline::cli {

// Remarks on named sizes of a file that were guessed and may be wrong.
std::vector<std::string> size_notes(const RequestPass& pass);

// The key "forward" of the JSON output; null if nothing is known.
Json forward_json(const RequestPass& pass);
// Lines of text; empty if nothing is known and no pass was requested.
std::string forward_text(const RequestPass& pass);

}  // namespace loadline::cli
