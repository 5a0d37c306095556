// The manual's pages, and its table of measured framework runs.
#pragma once

#include "core/load/measure/evidence.h"

#include <span>
#include <string>
#include <string_view>

namespace loadline::report {

// --- The manual, for `loadline help` and the window's F1: pages of plain Markdown, embedded at build time.

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

// --- The runs of real frameworks as a Markdown table.

// A section per framework and version, a line per run: recipe, checkpoint, method, then projected and
// measured MiB of host, mapped pages and device, and the verdict.
std::string truth_table(const load::Truth& truth);
// The six runs that the README shows, as a Markdown table of its own.
std::string truth_summary(const load::Truth& truth);

}  // namespace loadline::report
