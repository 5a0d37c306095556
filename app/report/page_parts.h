// What pages and pictures are made of: escaped text, style sheets, option lists, machine facts; writing them
// to a file.
#pragma once

#include "core/load/request/request.h"

#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace loadline::report {

// --- Escapes text for SVG and HTML, and gives them their style sheets.

// `raw` escaped by safe_display, then with & < > " ' written as entities: safe in text and in quoted
// attributes.
std::string markup_text(std::string_view raw);
// The same, shortened to at most `columns` code points.
std::string markup_text(std::string_view raw, std::size_t columns);

// assets/report/NAME.css.
std::string_view style_sheet(std::string_view name);
// The head of a self-contained page: light or dark as the reader has it, then these style sheets. `title` is
// escaped here.
std::string page_head(std::string_view title, std::initializer_list<std::string_view> sheets);

// --- Writes the files that commands produce besides their answer: charts, pages, saved requests, packings
// and rates. A file appears complete or not at all.

// Throws Error{usage} unless `path` is empty or ends in `extension`, so that no other kind of file is
// overwritten.
void check_picture_path(const std::string& path, std::string_view extension);

// Throws Error{io}. Without `replace`, throws Error{usage} if the file exists by the time it is complete.
void write_file(const std::string& path, std::string_view text, bool replace = true);

// --- The options of a request as rows of a page.

// Option titles and their values; not escaped.
using OptionList = std::vector<std::pair<std::string, std::string>>;

// The kind of memory, the staging ring, and every option that differs from its default; named by option
// title.
OptionList asked_for(const load::LoadRequest& request, plan::MemoryKind memory);

// --- What machine a page's figures come from.

// System, processor with its cores, and memory; not escaped.
OptionList machine_facts();

}  // namespace loadline::report
