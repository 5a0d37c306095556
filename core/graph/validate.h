// The structural rules that every MetaGraph obeys, whichever importer made it.
#pragma once

#include "core/graph/meta_graph.h"

namespace loadline {

// Throws Error{malformed} naming file, tensor and both numbers unless: ids are in range; storages
// lie inside their files; tensors (with their strides) lie inside their storages; tensor names are
// unique; sums of sizes fit in 63 bits. Importers call it as their last step; tests call it on every graph.
void validate(const MetaGraph& graph);

// Elements from a tensor's first to its last, gaps between them included; 0 for an empty tensor, nothing on
// overflow.
std::optional<std::uint64_t> spanned_elements(const Tensor& tensor);
// Bytes from a tensor's first element to the end of its last, gaps between them included. Nothing for a type
// without a fixed size, and on overflow.
std::optional<std::uint64_t> spanned_bytes(const Tensor& tensor);

// Whether a tensor is stored in C order without gaps.
bool is_contiguous(const Tensor& tensor);

}  // namespace loadline
