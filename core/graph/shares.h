// Sums over tensors that may view the same bytes: how much each tensor contributes to the sum.
#pragma once

#include "core/graph/meta_graph.h"

#include <cstdint>
#include <span>
#include <vector>

namespace loadline {

// The contribution of one tensor. `elements` is 0 for every tied tensor but the first, and for a tensor whose
// bytes lie wholly within another tensor's range of the same storage (a slice, a transposed view). `bytes`
// counts the bytes that no earlier tensor covers; tensors are ordered by offset, longer ranges first. Codes
// of a packed weight (MetaGraph::logical) have the elements of that weight, its other parts have none.
struct Share {
  std::uint64_t bytes = 0;
  std::uint64_t elements = 0;
};

// Parallel to `tensors`, which must be distinct. Bytes of a storage that no tensor of the graph covers belong
// to the storage's first tensor, so the bytes of all tensors add up to the storages they use. O(n log n).
std::vector<Share> shares(const MetaGraph& graph, std::span<const TensorId> tensors);
// The shares of all tensors, in graph order.
std::vector<Share> shares(const MetaGraph& graph);
Share sum(std::span<const Share> parts);

}  // namespace loadline
