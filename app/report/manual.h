// The manual, for `loadline help` and the window's F1: pages of plain Markdown, embedded at build time.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace loadline::report {

// A page of assets/manual: its id is the file's name, its first line "# Title".
struct ManualPage {
  std::string_view id;
  std::string_view title;
  std::string_view text;
};
// The page to begin with comes first, the others by name.
std::span<const ManualPage> manual_pages();
// Throws Error{usage} that lists the ids.
const ManualPage& find_manual_page(std::string_view id);

// For a place without pictures: without lines that show one, and with the words of links alone.
std::string manual_plain_text(std::string_view markdown);

}  // namespace loadline::report
