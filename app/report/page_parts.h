// Escapes text for SVG and HTML, and gives them their style sheets.
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>

namespace loadline {

// `raw` escaped by safe_display, then with & < > " ' written as entities: safe in text and in quoted
// attributes.
std::string markup_text(std::string_view raw);
// The same, shortened to at most `columns` code points.
std::string markup_text(std::string_view raw, std::size_t columns);

namespace report {
// assets/report/NAME.css.
std::string_view style_sheet(std::string_view name);
// The head of a self-contained page: light or dark as the reader has it, then these style sheets. `title` is
// escaped here.
std::string page_head(std::string_view title, std::initializer_list<std::string_view> sheets);
}  // namespace report

}  // namespace loadline
