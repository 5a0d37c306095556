// Estimates of a forward pass without an architecture, from config.json and the shapes of the weights.
#pragma once

#include "core/forward/model_config.h"
#include "core/graph/meta_graph.h"

#include <cstdint>
#include <optional>

namespace loadline {

// Bytes of keys and values that one token adds over all layers, in the usual layout of decoders. An estimate:
// it is wrong for latent attention, for windows and for models without a cache. Nothing if config.json lacks
// the usual keys.
std::optional<std::uint64_t> estimated_cache_per_token(const ModelConfig& config);

// A lower bound of the activation peak in bytes for each new token, if every linear layer sees all tokens:
// the widest output among the two-dimensional weights NAME.weight. It leaves out embeddings (gathered from),
// heads, poolers and classifiers (may apply to one row), and the weights of single experts (apply to some
// rows). A heuristic; nothing if no weight qualifies.
std::optional<std::uint64_t> activation_bound_per_token(const MetaGraph& graph, const ModelConfig& config);

}  // namespace loadline
