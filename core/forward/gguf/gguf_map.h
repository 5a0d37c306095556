// The map both ways: from a model to the tensors and keys of its file, from a file's keys to config.json.
#pragma once

#include "core/forward/gguf/gguf_family.h"
#include "core/graph/meta_graph.h"

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace loadline::forward {

// --- A GGUF family applied to one model: which tensors and keys its file has, and what they come from.

// Inputs are positions of earlier steps; the last step is the result.
struct NameStep {
  NameStepKind kind{};
  std::vector<std::uint32_t> inputs = {};
  std::string name = {};     // source: the tensor's, or packed weight's, in the model
  graph::TensorId tensor{};  // source: of a packed weight, its codes
  std::vector<std::int64_t> arguments = {};
  std::vector<double> values = {};  // values; add: one
};

struct MappedTensor {
  std::string name;  // in the new file
  std::vector<NameStep> steps;
};

struct MappedKey {
  std::string name;
  GgufType type{};
  assets::Datum value;
  std::vector<std::string> settings = {};  // of config.json, that the value depends on
};

struct GgufMap {
  std::string architecture;
  std::vector<MappedKey> keys;
  std::vector<MappedTensor> tensors;
  std::vector<std::string> notes;    // what llama.cpp does in another way than the model
  std::vector<Setting> unaccounted;  // of config.json: llama.cpp would compute something else, or may
  std::vector<std::string> dropped;  // tensors of the model that have no place in the file
};

// Throws Error{unsupported} naming a tensor of the model that no rule takes, and Error{malformed} for a
// configuration that does not fit the asset. Tensors on the same bytes count as taken together.
GgufMap map_to_gguf(const GgufFamily& family, const ModelConfig& config, const graph::MetaGraph& graph);

// --- The configuration that a GGUF file's own keys and tensors describe, as the config.json of its family.

struct GgufConfig {
  const GgufFamily* family = nullptr;
  std::string json = {};               // an object, as a config.json that transformers reads
  std::vector<std::string> keys = {};  // of the file's metadata, that it was made from
  // Keys of the architecture that it was not made from, and that sizes may depend on: "llama.of_nobody".
  std::vector<Setting> unread = {};
  // Settings that the file cannot say: what they are taken to be, in words.
  std::vector<std::string> remarks = {};
  // Names for the conditions of architectures that depend on how the file stores its weights ("latent": 0).
  std::vector<std::pair<std::string, assets::Datum>> flags = {};
};

// Nothing if the graph is no GGUF file, if no family reads its general.architecture, or if the file has no
// keys of that architecture. Arrays of metadata are read from the file if the family asks for them. Throws
// Error{malformed | limit} naming the file and the key that does not fit, and Error{io}.
std::optional<GgufConfig> gguf_config(const graph::MetaGraph& graph);
// The same with this family, whatever it reads.
std::optional<GgufConfig> gguf_config(const graph::MetaGraph& graph, const GgufFamily& family);
// The keys that most architectures have, for an estimate; for a GGUF file of any architecture. Throws as
// gguf_config() does.
std::optional<GgufConfig> usual_gguf_config(const graph::MetaGraph& graph);

}  // namespace loadline::forward
