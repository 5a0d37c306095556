// A Hugging Face model as the tensors and keys that llama.cpp runs: core/forward/gguf_map, made into recipes.
#pragma once

#include "exporters/exporter.h"

#include <vector>

namespace loadline {

struct GgufModel {
  std::vector<Slot> slots;      // without offsets
  std::vector<MetaEntry> keys;  // general.architecture first
};

// Throws Error{unsupported} for a model without config.json, of a family that no asset describes, or with
// tensors that have no place in the file.
GgufModel gguf_model(const MetaGraph& graph, const ExportOptions& options);

}  // namespace loadline
