// The options of a request as rows of a page.
#pragma once

#include "core/load/request/request.h"

#include <string>
#include <utility>
#include <vector>

namespace loadline::report {

// Option titles and their values; not escaped.
using OptionList = std::vector<std::pair<std::string, std::string>>;

// The kind of memory, the staging ring, and every option that differs from its default; named by option
// title.
OptionList asked_for(const LoadRequest& request, MemoryKind memory);

}  // namespace loadline::report
