// Reads ONNX models, with their external data.
#pragma once

#include "importers/importer.h"

namespace loadline {

Match sniff_onnx(std::span<const std::byte> head, std::string_view path);
// Tensors wherever the file has them (importers/onnx/names.h names them), the operators, and metadata.
MetaGraph read_onnx(const Source& source);

struct OnnxOptions {
  // Without it no process is started: values have the shapes that the file itself gives.
  bool infer_shapes = true;
};
MetaGraph read_onnx(const Source& source, const OnnxOptions& options);

}  // namespace loadline
