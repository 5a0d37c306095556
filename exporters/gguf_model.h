// A Hugging Face model as the tensors and keys that llama.cpp runs: core/forward/gguf_map, made into recipes.
#pragma once

#include "exporters/exporter.h"
#include "exporters/gguf_metadata.h"

#include <string>
#include <vector>

namespace loadline {

struct GgufModel {
  std::vector<Slot> slots;  // without offsets
  GgufModelKeys keys;
};

// A model without a tokenizer gets the vocabulary "none", which llama.cpp runs on token ids. Throws
// Error{unsupported} for a model without config.json, of a family that no asset describes, or with
// tensors that have no place in the file.
GgufModel gguf_model(const MetaGraph& graph, const ExportOptions& options);
// Tensors of the model that such a file has no place for: they are not written. Throws as gguf_model() does.
std::vector<std::string> tensors_without_place(const MetaGraph& graph);

}  // namespace loadline
