// Layouts in the GGUF format.
#pragma once

#include "exporters/exporter.h"

namespace loadline {

bool gguf_supports(DType dtype);
// One file. Names stay as they are; ranks above 4, names over 63 bytes and dtypes that ggml does not
// have are refused with the tensor named; a scalar becomes one element of rank 1.
Layout gguf_layout(const MetaGraph& graph, const ExportOptions& options, const std::string& out);

}  // namespace loadline
