// Finds metadata that says that weights are not stored as the model uses them.
#pragma once

#include "core/graph/meta_graph.h"

namespace loadline {

// The first key that declares rotated weights, such as prism.hadamard.version: a runtime must apply the same
// rotation to what it multiplies with them. A part of the key, between dots or underscores, says it. Null if
// there is none.
const MetaEntry* declared_transform(const MetaGraph& graph);

}  // namespace loadline
