// An importance matrix together with where it comes from.
#pragma once

#include "core/graph/packed/importance.h"

#include <string>

namespace loadline {

struct ImportanceFile {
  std::string path;
  ImportanceMatrix matrix;
};

}  // namespace loadline
