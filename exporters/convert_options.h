// A conversion request, and the table of its options for every front end.
#pragma once

#include "core/base/option.h"
#include "exporters/exporter.h"
#include "exporters/writer/write_layout.h"

#include <span>
#include <string>
#include <string_view>

namespace loadline {

struct ConvertRequest {
  std::string to = {};       // an exporter's id; empty: chosen by the output's extension
  std::string order = {};    // a word for core/load's written_order(), which gives ExportOptions::order
  std::string imatrix = {};  // a path for read_importance_matrix(), which gives ExportOptions::importance
  ExportOptions layout = {};
  WriteOptions write = {};
};

std::span<const Option<ConvertRequest>> convert_options();

// Whether a conversion to that format takes the option. Options that no exporter lists apply to all formats.
bool takes_option(const Exporter& exporter, std::string_view id);
// Throws Error{usage} naming the first option that is set and that the format does not take.
void check_options_taken(const Exporter& exporter, const ExportOptions& options);

}  // namespace loadline
