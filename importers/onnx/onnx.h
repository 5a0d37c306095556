// Options for reading ONNX models.
#pragma once

#include "importers/formats.h"

namespace loadline {

struct OnnxOptions {
  // If false, no process is started, and values have only the shapes that the file gives.
  bool infer_shapes = true;
};
MetaGraph read_onnx(const Source& source, const OnnxOptions& options);

}  // namespace loadline
