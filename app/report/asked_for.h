// What was asked for, as the rows of a page.
#pragma once

#include "core/load/request.h"

#include <string>
#include <utility>
#include <vector>

namespace loadline::report {

// Names and values; not escaped.
using OptionList = std::vector<std::pair<std::string, std::string>>;

// The kind of memory, the staging ring and every option that is not the default, by their titles.
OptionList asked_for(const LoadRequest& request, MemoryKind memory);

}  // namespace loadline::report
