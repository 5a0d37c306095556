// Finds the weights that a checkpoint stores as codes and companions.
#pragma once

#include "core/graph/meta_graph.h"

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace loadline {

// The bytes of a small stored tensor; nothing if they cannot be read.
using ReadSmallTensor = std::function<std::optional<std::string>(TensorId tensor)>;
inline constexpr std::uint64_t kMostSmallTensor = 4 << 10;

struct LogicalTensors {
  std::vector<LogicalTensor> tensors;  // in the order of their codes
  std::vector<Note> notes;             // weights that look packed, but whose parts do not fit together
};

// Goes by the names, types and shapes of a graph's tensors and by its config.json. `read` is called for
// companions that hold a shape: at most kMostSmallTensor bytes each.
LogicalTensors find_logical_tensors(const MetaGraph& graph, const ReadSmallTensor& read);

// By tensor: the position in graph.logical of the weight that it is a part of.
std::vector<std::optional<std::uint32_t>> logical_positions(const MetaGraph& graph);

std::uint64_t elements(const LogicalTensor& weight);
// Bytes of the codes and all companions.
std::uint64_t packed_bytes(const MetaGraph& graph, const LogicalTensor& weight);
// Bits of those bytes for each element; 0 for an empty weight.
double bits_per_weight(const MetaGraph& graph, const LogicalTensor& weight);

}  // namespace loadline
