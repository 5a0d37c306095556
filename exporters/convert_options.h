// What is asked of a conversion, and its options as a table for every front end.
#pragma once

#include "core/base/option.h"
#include "exporters/exporter.h"
#include "exporters/write_layout.h"

#include <span>
#include <string>

namespace loadline {

struct ConvertRequest {
  std::string to = {};  // an exporter's id; empty: what the output's name says
  ExportOptions layout = {};
  WriteOptions write = {};
};

std::span<const Option<ConvertRequest>> convert_options();

}  // namespace loadline
