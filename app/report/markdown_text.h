// The Markdown of pages as plain text for a terminal.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace loadline::report {

// What markdown_blocks() reads: paragraphs filled to `columns`, an empty line after each, code indented,
// tables in columns whose last is filled too. With `bold`, headings have the terminal's escape sequences for
// that.
std::string markdown_text(std::string_view markdown, std::size_t columns, bool bold = false);

}  // namespace loadline::report
