// Passes over the finished list of operators, each linear in its length.
#include "core/forward/pass/execution_order.h"
#include "core/forward/pass/op_order.h"

#include <algorithm>
#include <map>
#include <string_view>

namespace loadline {
namespace {

std::size_t position(ValueId id) { return static_cast<std::size_t>(id); }

}  // namespace

// Op::held of one operator keeps a value alive up to that operator: the last one before the reference ends.
void hold(ForwardGraph& graph, std::span<const std::uint32_t> turns, const std::vector<Until>& until) {
  std::map<std::string_view, std::vector<std::size_t>> places;
  for (std::size_t i = 0; i < graph.ops.size(); ++i) places[graph.ops[i].kind].push_back(i);
  std::vector<std::size_t> turn_end(graph.ops.size(), graph.ops.size());
  for (std::size_t i = graph.ops.size(); i-- > 1;)
    turn_end[i - 1] = turns[i] == turns[i - 1] ? turn_end[i] : i;
  for (const auto& [at, kind, values] : until) {
    std::size_t next = graph.ops.size();
    if (kind == "loop") {
      next = at + 1;
      while (next < graph.ops.size() && turns[next] == 0) ++next;
      while (next < graph.ops.size() && turns[next] != 0) next = turn_end[next];
    } else if (kind == "turn" || kind == "next") {
      next = turn_end[at];
      // operators between two loops belong to no turn and do not count as the next one
      while (kind == "next" && next < graph.ops.size() && turns[next] == 0) next = turn_end[next];
      if (kind == "next" && next < graph.ops.size()) next = turn_end[next];
    } else if (const auto found = places.find(kind); found != places.end()) {
      const auto later = std::upper_bound(found->second.begin(), found->second.end(), at);
      if (later != found->second.end()) next = *later;
    }
    std::vector<ValueId>& held = graph.ops[next - 1].held;
    if (next - 1 > at) held.insert(held.end(), values.begin(), values.end());
  }
}

void hold_block_inputs(ForwardGraph& graph, std::span<const std::uint32_t> turns) {
  std::vector<std::uint32_t> known_in(graph.values.size(), 0);  // the last turn that made or received it
  for (std::size_t first = 0, end = 0; first < graph.ops.size(); first = end) {
    const std::uint32_t turn = turns[first];
    std::vector<ValueId> entering;
    for (end = first; end < graph.ops.size() && turns[end] == turn; ++end) {
      if (turn == 0) continue;
      for (const ValueId id : graph.ops[end].inputs) {
        if (known_in[position(id)] == turn) continue;
        known_in[position(id)] = turn;
        entering.push_back(id);
      }
      for (const ValueId id : graph.ops[end].outputs) known_in[position(id)] = turn;
    }
    std::vector<ValueId>& held = graph.ops[end - 1].held;
    held.insert(held.end(), entering.begin(), entering.end());
  }
}

void put_inputs_first(ForwardGraph& graph, std::span<const std::uint32_t> early,
                      std::vector<InPlace>& in_place) {
  std::vector<Op> ops;
  std::vector<std::size_t> place(graph.ops.size());
  for (const std::uint32_t at : op_order(graph.ops, graph.outputs, OpOrder::inputs_first, early)) {
    place[at] = ops.size();
    ops.push_back(std::move(graph.ops[at]));
  }
  graph.ops = std::move(ops);
  for (InPlace& one : in_place) one.op = place[one.op];
  std::ranges::sort(in_place, [](const InPlace& a, const InPlace& b) { return a.op < b.op; });
}

void merge_in_place(ForwardGraph& graph, const std::vector<InPlace>& in_place) {
  std::vector<std::size_t> last_use(graph.values.size(), 0);
  const auto root = [&](ValueId id) {
    while (graph.value(id).memory_of) id = *graph.value(id).memory_of;
    return position(id);
  };
  for (std::size_t i = 0; i < graph.ops.size(); ++i) {
    for (const ValueId id : graph.ops[i].inputs) last_use[root(id)] = i;
    for (const ValueId id : graph.ops[i].held) last_use[root(id)] = i;
  }
  for (const ValueId id : graph.outputs) last_use[root(id)] = graph.ops.size();
  for (const auto [at, preferred] : in_place) {
    const Op& op = graph.ops[at];
    if (op.outputs.empty()) continue;
    Value& to = graph.values[position(op.outputs[0])];
    for (std::size_t i = 0; i < op.inputs.size(); ++i) {
      const std::size_t from = root(op.inputs[(i + preferred) % op.inputs.size()]);
      const ValueId id{static_cast<std::uint32_t>(from)};
      const bool given = std::ranges::find(graph.inputs, id) != graph.inputs.end();
      if (last_use[from] != at || graph.value(id).lane != Lane::activation || given ||
          value_bytes(graph.value(id)) != value_bytes(to))
        continue;
      to.memory_of = id;
      last_use[from] = last_use[position(op.outputs[0])];
      break;
    }
  }
}

}  // namespace loadline
