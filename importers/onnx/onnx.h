// What can be chosen about reading ONNX models.
#pragma once

#include "importers/formats.h"

namespace loadline {

struct OnnxOptions {
  // Without it no process is started: values have the shapes that the file itself gives.
  bool infer_shapes = true;
};
MetaGraph read_onnx(const Source& source, const OnnxOptions& options);

}  // namespace loadline
