// Text inside SVG and HTML.
#pragma once

#include <string>
#include <string_view>

namespace loadline {

// `raw` as safe_display shows it, with what markup gives a meaning (& < > " ') written as entities: fit for
// text and for attributes in quotes.
std::string markup_text(std::string_view raw);
// The same, of at most so many code points.
std::string markup_text(std::string_view raw, std::size_t columns);

}  // namespace loadline
