// The layouts of each format, for the table of exporters.
#pragma once

#include "exporters/exporter.h"

namespace loadline {

bool gguf_supports(DType dtype);
// One file. Names stay as they are; ranks above 4, names over 63 bytes and dtypes that ggml does not
// have are refused with the tensor named; a scalar becomes one element of rank 1.
Layout gguf_layout(const MetaGraph& graph, const ExportOptions& options, const std::string& out);

bool safetensors_supports(DType dtype);
// Of the metadata, config.json for a folder, else texts: __metadata__ holds nothing else.
bool safetensors_carries(const MetaGraph& graph, const MetaEntry& entry);
// `out` ending in ".safetensors" is one file; anything else is a model folder (config.json if the
// model has one; one model.safetensors, or shards and their index).
Layout safetensors_layout(const MetaGraph& graph, const ExportOptions& options, const std::string& out);

}  // namespace loadline
