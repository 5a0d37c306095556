// A GGUF family applied to one model: which tensors and keys its file has, and what they come from.
#pragma once

#include "core/forward/gguf/gguf_family.h"
#include "core/graph/meta_graph.h"

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace loadline {

// Inputs are positions of earlier steps; the last step is the result.
struct NameStep {
  NameStepKind kind{};
  std::vector<std::uint32_t> inputs = {};
  std::string name = {};  // source: the tensor's, or packed weight's, in the model
  TensorId tensor{};      // source: of a packed weight, its codes
  std::vector<std::int64_t> numbers = {};
  std::vector<double> values = {};  // values; add: one
};

struct MappedTensor {
  std::string name;  // in the new file
  std::vector<NameStep> steps;
};

struct MappedKey {
  std::string name;
  GgufType type{};
  Datum value;
};

struct GgufMap {
  std::string architecture;
  std::vector<MappedKey> keys;
  std::vector<MappedTensor> tensors;
  std::vector<std::string> notes;    // what llama.cpp does in another way than the model
  std::vector<std::string> dropped;  // tensors of the model that have no place in the file
};

// Throws Error{unsupported} naming a tensor of the model that no rule takes, or what the asset refuses, and
// Error{malformed} for a configuration that does not fit the asset. Tensors on the same bytes count as taken
// together.
GgufMap map_to_gguf(const GgufFamily& family, const ModelConfig& config, const MetaGraph& graph);

}  // namespace loadline
