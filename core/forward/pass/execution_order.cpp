// Depth-first search from the results to the inputs, without recursion: graphs from files may be deep.
#include "core/forward/pass/op_order.h"

#include <algorithm>
#include <numeric>
#include <utility>

namespace loadline {
namespace {

constexpr std::uint32_t kNone = UINT32_MAX;

// Finds the operator that makes a value. A sorted list, since a graph may have many bodies with few values
// each.
class Makers {
 public:
  explicit Makers(std::span<const Op> ops) {
    for (std::uint32_t i = 0; i < ops.size(); ++i)
      for (const ValueId id : ops[i].outputs) makers_.emplace_back(id, i);
    std::ranges::sort(makers_);
  }
  // kNone for a value from outside.
  std::uint32_t of(ValueId id) const {
    const auto found = std::lower_bound(makers_.begin(), makers_.end(), std::pair(id, 0U));
    return found == makers_.end() || found->first != id ? kNone : found->second;
  }

 private:
  std::vector<std::pair<ValueId, std::uint32_t>> makers_;
};

// The operators at which the walks begin; the last one is taken first.
std::vector<std::uint32_t> roots(std::span<const Op> ops, std::span<const ValueId> outputs,
                                 const Makers& makers, OpOrder order, std::span<const std::uint32_t> early) {
  std::vector<std::uint32_t> found;
  if (order == OpOrder::inputs_first) {
    found.assign(early.begin(), early.end());
    for (const ValueId id : outputs)
      if (const std::uint32_t op = makers.of(id); op != kNone) found.push_back(op);
    for (std::uint32_t i = 0; i < ops.size(); ++i) found.push_back(i);  // operators that no output needs
    std::ranges::reverse(found);
    return found;
  }
  std::vector<bool> used(ops.size(), false);
  for (const Op& op : ops)
    for (const ValueId id : op.inputs)
      if (const std::uint32_t from = makers.of(id); from != kNone) used[from] = true;
  for (std::uint32_t i = 0; i < ops.size(); ++i)
    if (!used[i]) found.push_back(i);
  return found;
}

}  // namespace

std::vector<std::uint32_t> op_order(const ForwardGraph& graph, OpOrder order) {
  return op_order(graph.ops, graph.outputs, order);
}

std::vector<std::uint32_t> op_order(std::span<const Op> ops, std::span<const ValueId> outputs, OpOrder order,
                                    std::span<const std::uint32_t> early) {
  std::vector<std::uint32_t> placed;
  if (order == OpOrder::listed) {
    placed.resize(ops.size());
    std::iota(placed.begin(), placed.end(), 0U);
    return placed;
  }
  const Makers makers(ops);
  struct Entry {
    std::uint32_t op;
    bool inputs_are_placed;
  };
  std::vector<Entry> stack;
  for (const std::uint32_t op : roots(ops, outputs, makers, order, early)) stack.push_back({op, false});
  std::vector<bool> met(ops.size(), false);
  std::vector<bool> is_placed(ops.size(), false);
  const auto place = [&](std::uint32_t op) {
    met[op] = is_placed[op] = true;
    placed.push_back(op);
  };
  const auto can_run = [&](const Op& op) {
    return std::ranges::all_of(op.inputs, [&](ValueId id) {
      const std::uint32_t from = makers.of(id);
      return from == kNone || is_placed[from];
    });
  };
  std::vector<std::uint32_t> next;
  while (!stack.empty()) {
    const Entry entry = stack.back();
    stack.pop_back();
    if (entry.inputs_are_placed) {
      // memory that an operator takes before it makes its outputs is an operator without outputs, listed
      // before it
      if (entry.op > 0 && order == OpOrder::inputs_first) {
        const Op& before = ops[entry.op - 1];
        if (before.outputs.empty() && !met[entry.op - 1] && can_run(before)) place(entry.op - 1);
      }
      place(entry.op);
      continue;
    }
    if (met[entry.op]) continue;
    met[entry.op] = true;
    stack.push_back({entry.op, true});
    next.clear();
    for (const ValueId id : ops[entry.op].inputs)
      if (const std::uint32_t from = makers.of(id); from != kNone && !met[from]) next.push_back(from);
    if (order == OpOrder::inputs_first)
      std::ranges::reverse(next);
    else
      std::ranges::sort(next);
    for (const std::uint32_t op : next) stack.push_back({op, false});
  }
  return placed;
}

}  // namespace loadline
