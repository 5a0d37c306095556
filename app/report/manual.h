// The manual's pages, and its table of measured framework runs.
#pragma once

#include "core/load/measure/evidence.h"
#include "core/load/request/method.h"

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace loadline::report {

// --- The manual, for `loadline help` and the window's F1: pages of plain Markdown, embedded at build time.

// A page of assets/manual: its id is the file's name, its first line "# Title".
struct ManualPage {
  std::string_view id;
  std::string_view title;
  std::string text;
};
// The first page to read comes first, the others sorted by name.
std::span<const ManualPage> manual_pages();
// Throws Error{usage} that lists the ids.
const ManualPage& find_manual_page(std::string_view id);

// The explanation of a method from the page `methods`: one line of text without markup. Throws Error{usage}.
std::string_view method_explanation(std::string_view id);

// What the words in the laws of these methods mean, in one line: "weights: all weights as they are stored;
// if cast: ...".
std::string law_legend(const std::vector<const load::Method*>& methods);

// --- The runs of real frameworks as a Markdown table.

// A section per framework and version, a line per run: recipe, checkpoint, method, then projected and
// measured MiB of host, mapped pages and device, and the verdict.
std::string truth_table(const load::Truth& truth);
// The six runs that the README shows, as a Markdown table of its own.
std::string truth_summary(const load::Truth& truth);

}  // namespace loadline::report
