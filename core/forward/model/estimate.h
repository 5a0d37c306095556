// Estimates of a forward pass without an architecture, from config.json and the shapes of the weights.
#pragma once

#include "core/forward/family/model_config.h"
#include "core/graph/meta_graph.h"

#include <cstdint>
#include <optional>

namespace loadline {

// What a sequence leaves in the cache, by the usual keys of a configuration.
struct CacheEstimate {
  std::uint64_t per_token = 0;           // bytes that each token adds
  std::uint64_t windowed_per_token = 0;  // further bytes, until a window is full
  std::uint64_t window = 0;              // tokens that a window holds
  std::uint64_t state = 0;               // bytes of recurrent states, which do not grow

  // Bytes after so many tokens of one sequence; nothing beyond 64 bits.
  std::optional<std::uint64_t> bytes(std::uint64_t tokens) const;

  bool operator==(const CacheEstimate&) const = default;
};

// Keys and values in the usual layout of decoders, of elements of `element`, else of the model's own type.
// Layers may differ: lists of head counts (0: no attention), `layer_types`, `full_attention_interval`,
// `num_kv_shared_layers`, and windows where the keys tell which layers have them. An estimate: families have
// rules of their own. Nothing if the usual keys are missing.
std::optional<CacheEstimate> estimated_cache(const ModelConfig& config, std::optional<DType> element = {});

// A lower bound of the activation peak in bytes for each new token, if every linear layer sees all tokens:
// the widest output among the two-dimensional weights NAME.weight. It leaves out embeddings (gathered from),
// heads, poolers and classifiers (may apply to one row), and the weights of single experts (apply to some
// rows). A heuristic; nothing if no weight qualifies.
std::optional<std::uint64_t> activation_bound_per_token(const MetaGraph& graph, const ModelConfig& config);

}  // namespace loadline
