// Prose on a terminal.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace loadline::report {

// Words of `text`, as many to a line of `columns` as fit behind `indent`; ends with a line break.
std::string wrapped(std::string_view text, std::string_view indent, std::size_t columns);

}  // namespace loadline::report
