// What the tests of importers share: errors as text, golden files, hostile tables, prefixes.
#pragma once

#include "core/graph/meta_graph.h"
#include "importers/importer.h"

#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace loadline::testing {

// A file and a part of the Error that reading it gives.
struct Hostile {
  const char* name;
  std::string bytes;
  const char* expected;
};

// Reads bytes as a file of that name, with the importer that its content asks for.
MetaGraph import_bytes(std::string_view name, std::string_view bytes);
// The text of the Error that reading gives, or "" if it gives none. Any other exception fails.
std::string import_error(std::string_view name, std::string_view bytes);
// The same for any call.
std::string error_of(const std::function<void()>& call);

// LOADLINE_UPDATE_GOLDEN=1 rewrites the file.
void expect_golden(const std::string& name, const std::string& text);
void expect_hostile(std::string_view file, const std::vector<Hostile>& table);
// Every row gives an Error that holds its text; `read` takes the bytes.
void expect_errors(const std::vector<Hostile>& table, const std::function<void(std::string_view)>& read);
// Every prefix of `sample` gives an Error that names the file, but for the whole.
void expect_prefixes_refused(std::string_view file, std::string_view sample);
// Every byte of [0, end) changed in several ways gives a valid graph or an Error that names the file; some
// changes are refused and others are not. `read` takes the bytes.
void expect_flips_survived(std::string_view file, std::string_view sample, std::size_t end,
                           const std::function<void(std::string_view)>& read);
// The same for the importer that the content asks for.
void expect_flips_survived(std::string_view file, std::string_view sample, std::size_t end);

bool has_note(const MetaGraph& graph, Severity severity, std::string_view part);
// Throws std::out_of_range.
const Tensor& tensor_named(const MetaGraph& graph, std::string_view name);

std::string repeat(std::string_view text, std::size_t times);

}  // namespace loadline::testing
