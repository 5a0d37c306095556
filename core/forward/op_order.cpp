// Depth first from the results to the inputs, on a stack of its own: graphs out of files are deep.
#include "core/forward/op_order.h"

#include <algorithm>
#include <numeric>

namespace loadline {
namespace {

constexpr std::uint32_t kNone = UINT32_MAX;

// By value.
std::vector<std::uint32_t> makers(const ForwardGraph& graph) {
  std::vector<std::uint32_t> maker(graph.values.size(), kNone);
  for (std::uint32_t i = 0; i < graph.ops.size(); ++i)
    for (const ValueId id : graph.ops[i].outputs) maker[static_cast<std::size_t>(id)] = i;
  return maker;
}

// Where the walks begin; the last one is taken first.
std::vector<std::uint32_t> roots(const ForwardGraph& graph, const std::vector<std::uint32_t>& maker,
                                 OpOrder order) {
  std::vector<std::uint32_t> found;
  if (order == OpOrder::inputs_first) {
    for (const ValueId id : graph.outputs)
      if (const std::uint32_t op = maker[static_cast<std::size_t>(id)]; op != kNone) found.push_back(op);
    for (std::uint32_t i = 0; i < graph.ops.size(); ++i) found.push_back(i);  // what no output needs
    std::reverse(found.begin(), found.end());
    return found;
  }
  std::vector<bool> used(graph.ops.size(), false);
  for (const Op& op : graph.ops)
    for (const ValueId id : op.inputs)
      if (const std::uint32_t from = maker[static_cast<std::size_t>(id)]; from != kNone) used[from] = true;
  for (std::uint32_t i = 0; i < graph.ops.size(); ++i)
    if (!used[i]) found.push_back(i);
  return found;
}

}  // namespace

std::vector<std::uint32_t> op_order(const ForwardGraph& graph, OpOrder order) {
  std::vector<std::uint32_t> placed;
  if (order == OpOrder::listed) {
    placed.resize(graph.ops.size());
    std::iota(placed.begin(), placed.end(), 0U);
    return placed;
  }
  const std::vector<std::uint32_t> maker = makers(graph);
  struct Entry {
    std::uint32_t op;
    bool inputs_are_placed;
  };
  std::vector<Entry> stack;
  for (const std::uint32_t op : roots(graph, maker, order)) stack.push_back({op, false});
  std::vector<bool> met(graph.ops.size(), false);
  std::vector<bool> is_placed(graph.ops.size(), false);
  const auto place = [&](std::uint32_t op) {
    met[op] = is_placed[op] = true;
    placed.push_back(op);
  };
  const auto can_run = [&](const Op& op) {
    return std::all_of(op.inputs.begin(), op.inputs.end(), [&](ValueId id) {
      const std::uint32_t from = maker[static_cast<std::size_t>(id)];
      return from == kNone || is_placed[from];
    });
  };
  std::vector<std::uint32_t> next;
  while (!stack.empty()) {
    const Entry entry = stack.back();
    stack.pop_back();
    if (entry.inputs_are_placed) {
      // what is there before an operator makes its outputs has none of its own, and the same inputs
      if (entry.op > 0 && order == OpOrder::inputs_first) {
        const Op& before = graph.ops[entry.op - 1];
        if (before.outputs.empty() && !met[entry.op - 1] && can_run(before)) place(entry.op - 1);
      }
      place(entry.op);
      continue;
    }
    if (met[entry.op]) continue;
    met[entry.op] = true;
    stack.push_back({entry.op, true});
    next.clear();
    for (const ValueId id : graph.ops[entry.op].inputs)
      if (const std::uint32_t from = maker[static_cast<std::size_t>(id)]; from != kNone && !met[from])
        next.push_back(from);
    if (order == OpOrder::inputs_first)
      std::reverse(next.begin(), next.end());
    else
      std::sort(next.begin(), next.end());
    for (const std::uint32_t op : next) stack.push_back({op, false});
  }
  return placed;
}

}  // namespace loadline
