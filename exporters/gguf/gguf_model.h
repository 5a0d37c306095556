// A Hugging Face model as the tensors and keys that llama.cpp runs: core/forward/gguf_map, made into recipes.
#pragma once

#include "core/forward/gguf/gguf_map.h"
#include "exporters/exporter.h"
#include "exporters/gguf/gguf.h"

#include <string>
#include <vector>

namespace loadline {

struct GgufModel {
  std::vector<Slot> slots = {};  // without offsets
  GgufModelKeys keys = {};
  std::vector<Slot> numbers = {};            // the same in F32, where chooses_types()
  std::vector<std::string> notes = {};       // what llama.cpp does in another way than the model
  std::vector<std::string> dropped = {};     // tensors of the model that are not written
  std::vector<std::string> files_read = {};  // files of the model's folder that `keys` come from
};

// Whether a GGUF file of this model has llama.cpp's names: not if they are to be kept, and not for a model
// without config.json, or whose file lists operators or is a GGUF file itself.
bool maps_names(const MetaGraph& graph, const ExportOptions& options);
// A model without a tokenizer gets the vocabulary "none", which llama.cpp runs on token ids. Throws
// Error{unsupported} for a model of a family that no asset describes, or with tensors that have no place in
// the file, and Error{malformed} for one that does not fit its configuration.
GgufModel gguf_model(const MetaGraph& graph, const ExportOptions& options);
// The value of a key as the file has it. Throws Error{malformed} for a value that its type cannot hold.
MetaValue key_value(const MappedKey& key);
// The slots alone, without looking for a tokenizer.
std::vector<Slot> gguf_slots(const MetaGraph& graph, const ExportOptions& options);

}  // namespace loadline
