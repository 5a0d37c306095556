// One lazy pass over an ONNX file: structure is kept, payloads are stepped over.
#pragma once

#include "core/io/source_file.h"
#include "importers/onnx/model.h"
#include "importers/onnx/skeleton.h"

namespace loadline {

struct OnnxScan {
  OnnxModel model;
  // The model for shape inference: the payloads of small whole-number tensors and of the smallest
  // floating ones (Resize's scales) are in it, because shapes depend on them; no others, no training graphs.
  OnnxSkeleton::Result skeleton;
};

// Repeated singular messages are merged as protobuf merges them; unknown fields are skipped. Throws
// Error{malformed | limit}: see WireReader, and dimensions that are negative or more than kMostDimensions.
inline constexpr std::size_t kMostDimensions = 1024;
OnnxScan scan_onnx(const SourceFile& file);

}  // namespace loadline
