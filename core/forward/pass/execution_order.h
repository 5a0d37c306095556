// Applies a profile to the complete list of operators: values held longer than used, operator order, in-place
// results. For lower.cpp only.
#pragma once

#include "core/graph/forward_graph.h"

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace loadline {

// Values that a caller still references after their last use, and how long.
struct Until {
  std::size_t op = 0;     // the operator that made the values
  std::string kind = {};  // ended by the next op of this kind; "turn", "loop", "next": by a loop; else never
  std::vector<ValueId> values = {};
};
// Adds the values to Op::held of the last operator that runs while they are referenced. `turns` gives for
// each operator the turn of an outermost loop in which it runs; 0 outside of loops.
void hold(ForwardGraph& graph, std::span<const std::uint32_t> turns, const std::vector<Until>& until);
// Holds every value that a turn of an outermost loop uses and did not make until the end of the turn.
void hold_block_inputs(ForwardGraph& graph, std::span<const std::uint32_t> turns);

// An operator whose first output may reuse the memory of an input, preferably of input number `input`.
struct InPlace {
  std::size_t op = 0;
  std::size_t input = 0;
};
// Sorts the operators as OpOrder::inputs_first says, those at the positions `early` and what they need first.
// Updates the positions in `in_place`.
void put_inputs_first(ForwardGraph& graph, std::span<const std::uint32_t> early,
                      std::vector<InPlace>& in_place);
// Lets outputs reuse the memory of an input that nothing needs any more. `in_place` is sorted by operator.
void merge_in_place(ForwardGraph& graph, const std::vector<InPlace>& in_place);

}  // namespace loadline
