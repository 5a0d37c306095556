// A conversion request, and the table of its options for every front end.
#pragma once

#include "core/base/option.h"
#include "exporters/exporter.h"
#include "exporters/write_layout.h"

#include <span>
#include <string>

namespace loadline {

struct ConvertRequest {
  std::string to = {};  // an exporter's id; empty: chosen by the output's extension
  ExportOptions layout = {};
  WriteOptions write = {};
};

std::span<const Option<ConvertRequest>> convert_options();

}  // namespace loadline
