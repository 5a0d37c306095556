// Wraps prose for a terminal.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace loadline::report {

// `text` in lines of at most `columns` columns, each begun by `indent`; ends with a line break.
std::string wrapped(std::string_view text, std::string_view indent, std::size_t columns);

// Wraps every line that is too long and keeps its indent. Lines that begin with a parenthesis (commands) stay
// whole, so that they can be copied.
std::string reflowed(std::string_view text, std::size_t columns);

}  // namespace loadline::report
