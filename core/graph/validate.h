// The structural law that every MetaGraph obeys, whoever made it.
#pragma once

#include "core/graph/meta_graph.h"

namespace loadline {

// Throws Error{malformed} naming file, tensor and both numbers unless: ids are in range; storages
// lie inside their files; tensors (with their strides) lie inside their storages; tensor names are
// unique; sums of sizes fit in 63 bits. Importers call it last; tests call it on everything.
void validate(const MetaGraph& graph);

// Elements from a tensor's first to its last, those between them that are not its own included; 0 without
// any, nothing on overflow.
std::optional<std::uint64_t> spanned_elements(const Tensor& tensor);
// Bytes from a tensor's first element to the end of its last, gaps between them included; nothing for a type
// without a size and on overflow.
std::optional<std::uint64_t> spanned_bytes(const Tensor& tensor);

// Whether a tensor is stored in C order without gaps.
bool is_contiguous(const Tensor& tensor);

}  // namespace loadline
