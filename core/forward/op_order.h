// In which order a framework runs the operators of a graph.
#pragma once

#include "core/graph/forward_graph.h"

#include <cstdint>
#include <span>
#include <vector>

namespace loadline {

enum class OpOrder : std::uint8_t {
  listed,        // as the graph lists them
  inputs_first,  // each directly behind its inputs, first to last, as ggml builds its graphs; one without
                 // outputs directly before the one that is listed behind it, if its inputs are made by then
  last_first,    // back from the operators whose results no other uses, as onnxruntime does: each directly
                 // behind its inputs, and whatever is listed last comes first
};

// Positions in graph.ops, each once and every operator behind those that make its inputs, if they are listed
// like that.
std::vector<std::uint32_t> op_order(const ForwardGraph& graph, OpOrder order);
// The same of operators that lead to `outputs`: a body's.
std::vector<std::uint32_t> op_order(std::span<const Op> ops, std::span<const ValueId> outputs, OpOrder order);

}  // namespace loadline
