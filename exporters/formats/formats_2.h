// The layouts of each format, for the table of exporters.
#pragma once

#include "exporters/exporter.h"

namespace loadline {

bool gguf_supports(DType dtype);
// One file, or with `max_shard_bytes` a split set where one file would be larger: PREFIX-00001-of-00003.gguf
// and so on, each of at most so many bytes or with one tensor. Names stay as they are; a scalar becomes one
// element of rank 1. Ranks above 4, names over 63 bytes and dtypes unknown to ggml give an Error naming the
// tensor.
Layout gguf_layout(const MetaGraph& graph, const ExportOptions& options, const std::string& out);

// A folder, one array for each tensor. Arrays of other models there are an Error, because readers of the
// folder would take them for this model's.
Layout npy_layout(const MetaGraph& graph, const ExportOptions& options, const std::string& out);

bool npz_supports(DType dtype);
bool npz_carries(const MetaGraph& graph, const MetaEntry& entry);
Layout npz_layout(const MetaGraph& graph, const ExportOptions& options, const std::string& out);

bool onnx_supports(DType dtype);
bool onnx_carries(const MetaGraph& graph, const MetaEntry& entry);
// OUT with its weights in OUT.data, or with `inline_weights` one file. Only a source that is ONNX has the
// graph that such a file needs. Weights keep their types, which are types of the graph's values.
Layout onnx_layout(const MetaGraph& graph, const ExportOptions& options, const std::string& out);

bool ptd_supports(DType dtype);
bool ptd_carries(const MetaGraph& graph, const MetaEntry& entry);
// One file. Tied tensors keep all their names, on one segment. A tensor of unknown type becomes a blob.
Layout ptd_layout(const MetaGraph& graph, const ExportOptions& options, const std::string& out);

bool torch_supports(DType dtype);
bool torch_carries(const MetaGraph& graph, const MetaEntry& entry);
// A state_dict in one archive.
Layout torch_layout(const MetaGraph& graph, const ExportOptions& options, const std::string& out);

bool safetensors_supports(DType dtype);
// True for entries whose key and value are UTF-8 text. config.json becomes a file of a model folder, the
// others become __metadata__.
bool safetensors_carries(const MetaGraph& graph, const MetaEntry& entry);
// If `out` ends in ".safetensors", the output is one file. Otherwise it is a model folder: config.json if the
// model has one, and one model.safetensors or shards with their index.
Layout safetensors_layout(const MetaGraph& graph, const ExportOptions& options, const std::string& out);

}  // namespace loadline
