// Scans an ONNX file in one lazy pass: keeps the structure and skips the payloads.
#pragma once

#include "core/io/source_file.h"
#include "importers/onnx/model.h"
#include "importers/onnx/skeleton.h"

namespace loadline {

struct OnnxScan {
  OnnxModel model;
  // The model for shape inference. It contains the payloads of small integer tensors and of the smallest
  // floating ones (Resize's scales), because shapes depend on them. It has no other payloads and no training
  // graphs.
  OnnxSkeleton::Result skeleton;
};

// Repeated singular messages are merged as protobuf merges them; unknown fields are skipped. Throws
// Error{malformed | limit} as WireReader does, and for negative dimensions or more than kMostDimensions of
// them.
inline constexpr std::size_t kMostDimensions = 1024;
OnnxScan scan_onnx(const SourceFile& file);

}  // namespace loadline
