// A conversion and its target path.
#pragma once

#include "exporters/convert_options.h"

#include <string>

namespace loadline::gui {

struct ConvertTask {
  ConvertRequest request = {};  // `to` names an exporter
  std::string out = {};
};

}  // namespace loadline::gui
