// What a conversion is asked to do.
#pragma once

#include "exporters/exporter.h"

#include <string>

namespace loadline::gui {

struct ConvertRequest {
  std::string exporter;
  std::string out;
  ExportOptions options = {};
  bool verify = true;
  bool overwrite = false;
};

}  // namespace loadline::gui
