// Layouts in the safetensors format.
#pragma once

#include "exporters/exporter.h"

namespace loadline {

bool safetensors_supports(DType dtype);
// config.json in a folder, else texts: __metadata__ holds nothing else.
bool safetensors_carries(const MetaGraph& graph, const MetaEntry& entry);
// `out` ending in ".safetensors" is one file; anything else is a model folder (config.json if the
// model has one; one model.safetensors, or shards and their index).
Layout safetensors_layout(const MetaGraph& graph, const ExportOptions& options, const std::string& out);

}  // namespace loadline
