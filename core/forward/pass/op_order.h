// The order in which a framework runs the operators of a graph.
#pragma once

#include "core/graph/forward_graph.h"

#include <cstdint>
#include <span>
#include <vector>

namespace loadline {

enum class OpOrder : std::uint8_t {
  listed,        // as the graph lists them
  inputs_first,  // depth first from the outputs, inputs first to last, as ggml builds its graphs; an operator
                 // without outputs runs directly before the operator listed after it, if its inputs are made
  last_first,    // depth first from the operators whose results no other operator uses, as onnxruntime does;
                 // of several candidates, the one listed last comes first
};

// Positions in graph.ops, each once. Every operator comes after those that make its inputs, if they are
// listed in such an order.
std::vector<std::uint32_t> op_order(const ForwardGraph& graph, OpOrder order);
// The same for a list of operators that make `outputs`, such as those of a body. inputs_first begins with the
// operators at the positions `early`, in this order, and what they need.
std::vector<std::uint32_t> op_order(std::span<const Op> ops, std::span<const ValueId> outputs, OpOrder order,
                                    std::span<const std::uint32_t> early = {});

}  // namespace loadline
