// What a profile does to operators once all are there: what stays, their order, and who writes over what; for
// lower.cpp only.
#pragma once

#include "core/graph/forward_graph.h"

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace loadline {

// Values that somebody refers to beyond their last use.
struct Until {
  std::size_t op = 0;     // that made them
  std::string kind = {};  // of the operator before which it ends; "turn", "next": of the loop; else the last
  std::vector<ValueId> values = {};
};
// `turns` says of each operator in which turn of an outermost loop it runs, 0: in none.
void hold(ForwardGraph& graph, std::span<const std::uint32_t> turns, const std::vector<Until>& until);
// Every value that a turn of an outermost loop uses and did not make stays until the turn is over.
void hold_block_inputs(ForwardGraph& graph, std::span<const std::uint32_t> turns);

// An operator whose first output may take over the memory of an input, rather that of `input`.
struct InPlace {
  std::size_t op = 0;
  std::size_t input = 0;
};
// OpOrder::inputs_first. `in_place` follows its operators.
void put_inputs_first(ForwardGraph& graph, std::vector<InPlace>& in_place);
// Only of an input that nothing needs any more. In the order of the operators.
void merge_in_place(ForwardGraph& graph, const std::vector<InPlace>& in_place);

}  // namespace loadline
