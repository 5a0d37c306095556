// The embedding that doubles as the head: one weight with two uses.
#pragma once

#include "core/graph/meta_graph.h"

#include <optional>

namespace loadline {

// The storage of such an embedding; absent if the model has a head of its own, or none at all. A model counts
// as one with a shared embedding if the names of embedding and head share a storage, or if it stores an
// embedding and no head. Encoders with "bert" in model_type or general.architecture need no head; neither
// does a model whose configuration says tie_word_embeddings: false.
std::optional<StorageId> shared_embedding(const MetaGraph& graph);

}  // namespace loadline
