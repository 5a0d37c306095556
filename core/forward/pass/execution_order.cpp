// Depth-first order without recursion; passes over the finished list of operators.
#include "core/forward/pass/execution_order.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <string_view>
#include <utility>

namespace loadline::forward {

// --- Depth-first search from the results to the inputs, without recursion: graphs from files may be deep.

namespace {

constexpr std::uint32_t kNone = UINT32_MAX;

// Finds the operator that makes a value. A sorted list, since a graph may have many bodies with few values
// each.
class Makers {
 public:
  explicit Makers(std::span<const graph::Op> ops) {
    for (std::uint32_t i = 0; i < ops.size(); ++i)
      for (const graph::ValueId id : ops[i].outputs) makers_.emplace_back(id, i);
    std::ranges::sort(makers_);
  }
  // kNone for a value from outside.
  std::uint32_t of(graph::ValueId id) const {
    const auto found = std::lower_bound(makers_.begin(), makers_.end(), std::pair(id, 0U));
    return found == makers_.end() || found->first != id ? kNone : found->second;
  }

 private:
  std::vector<std::pair<graph::ValueId, std::uint32_t>> makers_;
};

// The operators at which the walks begin; the last one is taken first.
std::vector<std::uint32_t> roots(std::span<const graph::Op> ops, std::span<const graph::ValueId> outputs,
                                 const Makers& makers, OpOrder order, std::span<const std::uint32_t> early) {
  std::vector<std::uint32_t> found;
  if (order == OpOrder::inputs_first) {
    found.assign(early.begin(), early.end());
    for (const graph::ValueId id : outputs)
      if (const std::uint32_t op = makers.of(id); op != kNone) found.push_back(op);
    for (std::uint32_t i = 0; i < ops.size(); ++i) found.push_back(i);  // operators that no output needs
    std::ranges::reverse(found);
    return found;
  }
  std::vector<bool> used(ops.size(), false);
  for (const graph::Op& op : ops)
    for (const graph::ValueId id : op.inputs)
      if (const std::uint32_t from = makers.of(id); from != kNone) used[from] = true;
  for (std::uint32_t i = 0; i < ops.size(); ++i)
    if (!used[i]) found.push_back(i);
  return found;
}

}  // namespace

std::vector<std::uint32_t> op_order(const graph::ForwardGraph& graph, OpOrder order) {
  return op_order(graph.ops, graph.outputs, order);
}

std::vector<std::uint32_t> op_order(std::span<const graph::Op> ops, std::span<const graph::ValueId> outputs,
                                    OpOrder order, std::span<const std::uint32_t> early) {
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
  const auto can_run = [&](const graph::Op& op) {
    return std::ranges::all_of(op.inputs, [&](graph::ValueId id) {
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
        const graph::Op& before = ops[entry.op - 1];
        if (before.outputs.empty() && !met[entry.op - 1] && can_run(before)) place(entry.op - 1);
      }
      place(entry.op);
      continue;
    }
    if (met[entry.op]) continue;
    met[entry.op] = true;
    stack.push_back({entry.op, true});
    next.clear();
    for (const graph::ValueId id : ops[entry.op].inputs)
      if (const std::uint32_t from = makers.of(id); from != kNone && !met[from]) next.push_back(from);
    if (order == OpOrder::inputs_first)
      std::ranges::reverse(next);
    else
      std::ranges::sort(next);
    for (const std::uint32_t op : next) stack.push_back({op, false});
  }
  return placed;
}

// --- Passes over the finished list of operators, each linear in its length.

namespace {

std::size_t position(graph::ValueId id) { return static_cast<std::size_t>(id); }

}  // namespace

// Op::held of one operator keeps a value alive up to that operator: the last one before the reference ends.
void hold(graph::ForwardGraph& graph, std::span<const std::uint32_t> turns, const std::vector<Until>& until) {
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
    } else if (kind == "turn" || kind == "next" || kind == "again") {
      next = turn_end[at];
      // operators between two loops belong to no turn and do not count as the next one
      while (kind == "next" && next < graph.ops.size() && turns[next] == 0) next = turn_end[next];
      if (kind == "next" && next < graph.ops.size()) next = turn_end[next];
      for (std::size_t i = at + 1; kind == "again" && i < next; ++i)
        if (graph.ops[i].kind == graph.ops[at].kind && !graph.ops[i].outputs.empty()) next = i + 1;
    } else if (const auto found = places.find(kind); found != places.end()) {
      const auto later = std::upper_bound(found->second.begin(), found->second.end(), at);
      if (later != found->second.end()) next = *later;
    }
    std::vector<graph::ValueId>& held = graph.ops[next - 1].held;
    if (next - 1 > at) held.insert(held.end(), values.begin(), values.end());
  }
}

void begin_in_their_parts(graph::ForwardGraph& graph, std::span<const std::uint32_t> turns,
                          std::span<const std::optional<graph::ValueId>> inputs) {
  for (const std::optional<graph::ValueId>& id : inputs) {
    const auto uses = [&](const graph::Op& op) { return id && std::ranges::count(op.inputs, *id) > 0; };
    const auto user = std::ranges::find_if(graph.ops, uses);
    if (user == graph.ops.end()) continue;
    auto first = static_cast<std::size_t>(user - graph.ops.begin());
    while (first > 0 && turns[first] != 0) --first;      // the loop of its first user
    while (first > 0 && turns[first - 1] == 0) --first;  // what stands before that loop
    if (first == 0) continue;
    std::erase(graph.inputs, *id);
    graph.ops[first].held.push_back(*id);
  }
}

void hold_block_inputs(graph::ForwardGraph& graph, std::span<const std::uint32_t> turns) {
  std::vector<std::uint32_t> known_in(graph.values.size(), 0);  // the last turn that made or received it
  for (std::size_t first = 0, end = 0; first < graph.ops.size(); first = end) {
    const std::uint32_t turn = turns[first];
    std::vector<graph::ValueId> entering;
    for (end = first; end < graph.ops.size() && turns[end] == turn; ++end) {
      if (turn == 0) continue;
      for (const graph::ValueId id : graph.ops[end].inputs) {
        if (known_in[position(id)] == turn) continue;
        known_in[position(id)] = turn;
        entering.push_back(id);
      }
      for (const graph::ValueId id : graph.ops[end].outputs) known_in[position(id)] = turn;
    }
    std::vector<graph::ValueId>& held = graph.ops[end - 1].held;
    held.insert(held.end(), entering.begin(), entering.end());
  }
}

void put_inputs_first(graph::ForwardGraph& graph, std::span<const std::uint32_t> early,
                      std::vector<InPlace>& in_place) {
  std::vector<graph::Op> ops;
  std::vector<std::size_t> place(graph.ops.size());
  for (const std::uint32_t at : op_order(graph.ops, graph.outputs, OpOrder::inputs_first, early)) {
    place[at] = ops.size();
    ops.push_back(std::move(graph.ops[at]));
  }
  graph.ops = std::move(ops);
  for (InPlace& one : in_place) one.op = place[one.op];
  std::ranges::sort(in_place, [](const InPlace& a, const InPlace& b) { return a.op < b.op; });
}

void merge_in_place(graph::ForwardGraph& graph, const std::vector<InPlace>& in_place) {
  std::vector<std::size_t> last_use(graph.values.size(), 0);
  const auto root = [&](graph::ValueId id) {
    while (graph.value(id).memory_of) id = *graph.value(id).memory_of;
    return position(id);
  };
  for (std::size_t i = 0; i < graph.ops.size(); ++i) {
    for (const graph::ValueId id : graph.ops[i].inputs) last_use[root(id)] = i;
    for (const graph::ValueId id : graph.ops[i].held) last_use[root(id)] = i;
  }
  for (const graph::ValueId id : graph.outputs) last_use[root(id)] = graph.ops.size();
  for (const auto [at, preferred] : in_place) {
    const graph::Op& op = graph.ops[at];
    if (op.outputs.empty()) continue;
    graph::Value& to = graph.values[position(op.outputs[0])];
    for (std::size_t i = 0; i < op.inputs.size(); ++i) {
      const std::size_t from = root(op.inputs[(i + preferred) % op.inputs.size()]);
      const graph::ValueId id{static_cast<std::uint32_t>(from)};
      const bool given = std::ranges::find(graph.inputs, id) != graph.inputs.end();
      if (last_use[from] != at || graph.value(id).lane != graph::Lane::activation || given ||
          graph::value_bytes(graph.value(id)) != graph::value_bytes(to))
        continue;
      to.memory_of = id;
      last_use[from] = last_use[position(op.outputs[0])];
      break;
    }
  }
}

}  // namespace loadline::forward
