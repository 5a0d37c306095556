// The configuration that a GGUF file's own keys and tensors describe, as the config.json of its family.
#pragma once

#include "core/forward/gguf/gguf_family.h"
#include "core/graph/meta_graph.h"

#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace loadline {

struct GgufConfig {
  const GgufFamily* family = nullptr;
  std::string json = {};               // an object, as a config.json that transformers reads
  std::vector<std::string> keys = {};  // of the file's metadata, that it was made from
  // Settings that the file cannot say: what they are taken to be, in words.
  std::vector<std::string> remarks = {};
  // Names for the conditions of architectures that depend on how the file stores its weights ("latent": 0).
  std::vector<std::pair<std::string, Datum>> flags = {};
};

// Nothing if the graph is no GGUF file, if no family reads its general.architecture, or if the file has no
// keys of that architecture. Arrays of metadata are read from the file if the family asks for them. Throws
// Error{malformed | limit} naming the file and the key that does not fit, and Error{io}.
std::optional<GgufConfig> gguf_config(const MetaGraph& graph);
// The same with this family, whatever it reads.
std::optional<GgufConfig> gguf_config(const MetaGraph& graph, const GgufFamily& family);
// The keys that most architectures have, for an estimate; for a GGUF file of any architecture. Throws as
// gguf_config() does.
std::optional<GgufConfig> usual_gguf_config(const MetaGraph& graph);

}  // namespace loadline
