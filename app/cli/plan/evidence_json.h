// The JSON form of what frameworks measured of a method.
#pragma once

#include "app/cli/base/command.h"

#include <string_view>

namespace loadline::cli {

// {"kind": "measured", "framework", "version", "frameworks", "loads", "in_range", "beyond", "error_percent"},
// or
// {"kind": "construction"}.
Json evidence_json(std::string_view method);

}  // namespace loadline::cli
