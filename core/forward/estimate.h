// What config.json and the shapes of the weights say of a forward pass that no architecture describes.
#pragma once

#include "core/forward/model_config.h"
#include "core/graph/meta_graph.h"

#include <cstdint>
#include <optional>

namespace loadline {

// Bytes of keys and values that one token adds in every layer, as most decoders keep them, from the usual
// keys. Wrong for latent attention, for windows and for models without a cache: an estimate. Nothing without
// the keys.
std::optional<std::uint64_t> estimated_cache_per_token(const ModelConfig& config);

// The least that a pass holds at its worst for each new token, if every linear layer sees all of them: the
// widest output among the weights NAME.weight of two dimensions. Left out are embeddings, heads, poolers and
// classifiers (gathered from, or applied to one row) and the weights of single experts (applied to some
// rows). A heuristic; nothing where no weight qualifies.
std::optional<std::uint64_t> activation_bound_per_token(const MetaGraph& graph, const ModelConfig& config);

}  // namespace loadline
