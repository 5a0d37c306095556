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
// The first page to read comes first, the others sorted by name.
std::span<const ManualPage> manual_pages();
// Throws Error{usage} that lists the ids.
const ManualPage& find_manual_page(std::string_view id);

// The explanation of a method from the page `methods`: one line of text without markup. Throws Error{usage}.
std::string_view method_explanation(std::string_view id);

// The symbols of the laws, or of one law alone, from the page `glossary`, in one line: "W: all weights, each
// once; w*: ...".
std::string law_symbols(std::string_view law = {});

}  // namespace loadline::report
