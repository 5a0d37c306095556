// The order in which a framework runs operators; values held longer than used, results in place.
#pragma once

#include "core/graph/forward_graph.h"

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace loadline::forward {

// --- The order in which a framework runs the operators of a graph.

enum class OpOrder : std::uint8_t {
  listed,        // as the graph lists them
  inputs_first,  // depth first from the outputs, inputs first to last, as ggml builds its graphs; an operator
                 // without outputs runs directly before the operator listed after it, if its inputs are made
  last_first,    // depth first from the operators whose results no other operator uses, as onnxruntime does;
                 // of several candidates, the one listed last comes first
};

// Positions in graph.ops, each once. Every operator comes after those that make its inputs, if they are
// listed in such an order.
std::vector<std::uint32_t> op_order(const graph::ForwardGraph& graph, OpOrder order);
// The same for a list of operators that make `outputs`, such as those of a body. inputs_first begins with the
// operators at the positions `early`, in this order, and what they need.
std::vector<std::uint32_t> op_order(std::span<const graph::Op> ops, std::span<const graph::ValueId> outputs,
                                    OpOrder order, std::span<const std::uint32_t> early = {});

// --- Applies a profile to the complete list of operators: values held longer than used, operator order,
// in-place results. For lowering.cpp only.

// Values that a caller still references after their last use, and how long.
struct Until {
  std::size_t op = 0;  // the operator that made the values
  // Ended by the next op of this kind; "turn", "loop", "next": by a loop; "again": by the next result of its
  // own kind, or by the turn; else never.
  std::string kind = {};
  std::vector<graph::ValueId> values = {};
};
// Adds the values to Op::held of the last operator that runs while they are referenced. `turns` gives for
// each operator the turn of an outermost loop in which it runs; 0 outside of loops.
void hold(graph::ForwardGraph& graph, std::span<const std::uint32_t> turns, const std::vector<Until>& until);
// Inputs that the first part of the model does not use, such as the mask of a decoder behind an encoder, are
// made behind the last loop before their first user.
void begin_in_their_parts(graph::ForwardGraph& graph, std::span<const std::uint32_t> turns,
                          std::span<const std::optional<graph::ValueId>> inputs);
// Holds every value that a turn of an outermost loop uses and did not make until the end of the turn.
void hold_block_inputs(graph::ForwardGraph& graph, std::span<const std::uint32_t> turns);

// An operator whose first output may reuse the memory of an input, preferably of input number `input`.
struct InPlace {
  std::size_t op = 0;
  std::size_t input = 0;
};
// Sorts the operators as OpOrder::inputs_first says, those at the positions `early` and what they need first.
// Updates the positions in `in_place`.
void put_inputs_first(graph::ForwardGraph& graph, std::span<const std::uint32_t> early,
                      std::vector<InPlace>& in_place);
// Lets outputs reuse the memory of an input that nothing needs any more. `in_place` is sorted by operator.
void merge_in_place(graph::ForwardGraph& graph, const std::vector<InPlace>& in_place);

}  // namespace loadline::forward
