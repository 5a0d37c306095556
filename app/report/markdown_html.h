// The Markdown of pages as HTML.
#pragma once

#include <string>
#include <string_view>

namespace loadline::report {

// What markdown_blocks() reads, as HTML; a heading of level 1 becomes <h`first`>. Everything is escaped.
std::string markdown_html(std::string_view markdown, std::size_t first = 2);
// The inside of one line.
std::string rich_html(std::string_view line);

}  // namespace loadline::report
