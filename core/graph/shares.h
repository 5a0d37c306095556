// Sums over tensors that may view the same bytes: what each of them adds to the others.
#pragma once

#include "core/graph/meta_graph.h"

#include <cstdint>
#include <span>
#include <vector>

namespace loadline {

// `elements` is 0 for every name of a tie but the first and for a tensor whose bytes lie wholly within
// another's range of the same storage (a slice, a transposed view). `bytes` are those that no tensor before
// it covers, by offset, longer ranges first.
struct Share {
  std::uint64_t bytes = 0;
  std::uint64_t elements = 0;
};

// Parallel to `tensors`, which are distinct. Bytes of a storage that no tensor of the graph covers belong to
// its first tensor: over all tensors the bytes add up to the storages they use. O(n log n).
std::vector<Share> shares(const MetaGraph& graph, std::span<const TensorId> tensors);
// Of all tensors, in graph order.
std::vector<Share> shares(const MetaGraph& graph);
Share sum(std::span<const Share> parts);

}  // namespace loadline
