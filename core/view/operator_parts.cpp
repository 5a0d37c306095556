// Which boxes a picture has: joined by edges once for each module, then those near one operator.
#include "core/view/operator_graph.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <set>
#include <string>
#include <utility>

namespace loadline::view {
namespace {

constexpr std::uint32_t kNone = GraphPart::kNoBox;

// --- Boxes.

// The node under which an operator of `node` is drawn: the first on the way down from `module` that is not
// split. `node` itself, or a split node, for an operator that is a box of its own; nothing outside of
// `module`.
std::optional<graph::OpNodeId> drawn_under(const graph::OpTree& tree, graph::OpNodeId module,
                                           graph::OpNodeId node, const std::set<graph::OpNodeId>& split) {
  std::vector<graph::OpNodeId> way = {node};  // up to a child of the module
  if (node == module) return module;
  while (tree.node(way.back()).parent != module) {
    if (way.back() == graph::kRootOpNode) return std::nullopt;
    way.push_back(tree.node(way.back()).parent);
  }
  while (way.size() > 1 && split.contains(way.back())) way.pop_back();
  return way.back();
}

// Per node: its operators and those of all below it, without what is folded.
std::vector<std::uint32_t> drawn_inside(const graph::ForwardGraph& forward, const graph::OpTree& tree,
                                        std::span<const graph::OpNodeId> nodes,
                                        const std::vector<bool>& folded) {
  std::vector<std::uint32_t> counts(tree.nodes.size(), 0);
  for (std::uint32_t i = 0; i < forward.ops.size(); ++i)
    if ((folded.empty() || !folded[i]) && !graph::is_part_of_next(forward, i))
      ++counts[static_cast<std::size_t>(nodes[i])];
  for (std::size_t i = tree.nodes.size(); i-- > 1;)
    counts[static_cast<std::size_t>(tree.nodes[i].parent)] += counts[i];
  return counts;
}

// The operators and modules directly inside, and the parts of those that are split, in the order of the pass.
// Operators that share a name are no module.
std::vector<GraphBox> all_boxes(const graph::ForwardGraph& forward, const graph::OpTree& tree,
                                std::span<const graph::OpNodeId> nodes, graph::OpNodeId module,
                                const std::set<graph::OpNodeId>& split, const std::vector<bool>& folded,
                                std::vector<std::uint32_t>& box_of_op) {
  std::vector<GraphBox> boxes;
  std::map<graph::OpNodeId, std::uint32_t> of_module;
  const std::vector<std::uint32_t> drawn = drawn_inside(forward, tree, nodes, folded);
  box_of_op.assign(forward.ops.size(), kNone);
  for (std::uint32_t i = 0; i < forward.ops.size(); ++i) {
    if (!folded.empty() && folded[i]) continue;
    const auto under = drawn_under(tree, module, nodes[i], split);
    if (!under || graph::is_part_of_next(forward, i)) continue;
    const bool alone = *under == module || split.contains(*under) || tree.node(*under).children.empty() ||
                       drawn[static_cast<std::size_t>(*under)] <= 1;
    if (!alone) {
      const auto [at, added] = of_module.try_emplace(*under, static_cast<std::uint32_t>(boxes.size()));
      box_of_op[i] = at->second;
      if (added) boxes.push_back({.kind = BoxKind::module, .op = i, .module = *under});
      continue;
    }
    box_of_op[i] = static_cast<std::uint32_t>(boxes.size());
    boxes.push_back({.kind = BoxKind::op, .op = i});
  }
  for (std::size_t i = forward.ops.size(); i-- > 1;)
    if (graph::is_part_of_next(forward, i - 1)) box_of_op[i - 1] = box_of_op[i];
  return boxes;
}

// The operator that makes each value; kNone for what is given to the model.
std::vector<std::uint32_t> makers(const graph::ForwardGraph& forward) {
  std::vector<std::uint32_t> made_by(forward.values.size(), kNone);
  for (std::uint32_t i = 0; i < forward.ops.size(); ++i)
    for (const graph::ValueId id : forward.ops[i].outputs) made_by[static_cast<std::size_t>(id)] = i;
  return made_by;
}

using Flow = std::map<std::pair<std::uint32_t, std::uint32_t>, std::vector<graph::ValueId>>;

void add_once(std::vector<graph::ValueId>& values, graph::ValueId id) {
  if (std::ranges::find(values, id) == values.end()) values.push_back(id);
}

struct Flows {
  Flow inside;  // from box to box
  // The boxes of the part that take a value from outside, and the box that gives one to the outside.
  std::map<graph::ValueId, std::set<std::uint32_t>> arrives;
  std::map<graph::ValueId, std::uint32_t> leaves;
};

Flows flows_of(const graph::ForwardGraph& forward, const std::vector<std::uint32_t>& made_by,
               const std::vector<bool>& folded, const std::vector<std::uint32_t>& box_of_op) {
  Flows flows;
  std::vector<bool> used(forward.values.size(), false);
  for (std::uint32_t i = 0; i < forward.ops.size(); ++i) {
    for (const graph::ValueId id : forward.ops[i].inputs) {
      used[static_cast<std::size_t>(id)] = true;
      const std::uint32_t maker = made_by[static_cast<std::size_t>(id)];
      const std::uint32_t from = maker == kNone ? kNone : box_of_op[maker];
      const std::uint32_t to = box_of_op[i];
      if (from == to || (maker != kNone && !folded.empty() && folded[maker])) continue;
      if (from == kNone)
        flows.arrives[id].insert(to);
      else if (to == kNone)
        flows.leaves[id] = from;
      else
        add_once(flows.inside[{from, to}], id);
    }
  }
  for (const graph::ValueId id : forward.outputs) used[static_cast<std::size_t>(id)] = false;
  for (std::uint32_t i = 0; i < forward.ops.size(); ++i)
    if (box_of_op[i] != kNone)
      for (const graph::ValueId id : forward.ops[i].outputs)
        if (!used[static_cast<std::size_t>(id)]) flows.leaves[id] = box_of_op[i];
  return flows;
}

// Whether each box gives to itself by way of others: what is left when all boxes that wait for none, and then
// all for which none waits, are taken away.
std::vector<bool> in_circles(std::size_t boxes, const Flow& flow) {
  std::vector<bool> left(boxes, true);
  for (const bool down : {true, false}) {
    std::vector<std::vector<std::uint32_t>> next(boxes);
    std::vector<std::size_t> waits(boxes, 0);
    for (const auto& [ends, values] : flow) {
      const auto [from, to] = down ? ends : std::pair(ends.second, ends.first);
      if (!left[from] || !left[to]) continue;
      next[from].push_back(to);
      ++waits[to];
    }
    std::vector<std::uint32_t> free;
    for (std::uint32_t i = 0; i < boxes; ++i)
      if (left[i] && waits[i] == 0) free.push_back(i);
    for (std::size_t i = 0; i < free.size(); ++i) {
      left[free[i]] = false;
      for (const std::uint32_t after : next[free[i]])
        if (--waits[after] == 0) free.push_back(after);
    }
  }
  return left;
}

}  // namespace

ModuleGraph::ModuleGraph(const graph::ForwardGraph& forward, const graph::OpTree& tree,
                         std::span<const graph::OpNodeId> nodes, graph::OpNodeId module,
                         const std::vector<bool>& folded) {
  const std::vector<std::uint32_t> made_by = makers(forward);
  Flows flows;
  std::set<graph::OpNodeId> split;
  for (bool again = true; again;) {
    boxes_ = all_boxes(forward, tree, nodes, module, split, folded, box_of_op_);
    flows = flows_of(forward, made_by, folded, box_of_op_);
    again = false;
    const std::vector<bool> circles = in_circles(boxes_.size(), flows.inside);
    for (std::size_t i = 0; i < boxes_.size(); ++i)
      if (circles[i] && boxes_[i].kind == BoxKind::module)
        again = split.insert(boxes_[i].module).second || again;
  }
  beside_.resize(boxes_.size());
  arrives_.resize(boxes_.size());
  leaves_.resize(boxes_.size());
  for (auto& [ends, values] : flows.inside) {
    const auto at = static_cast<std::uint32_t>(edges_.size());
    beside_[ends.first].push_back(at);
    beside_[ends.second].push_back(at);
    edges_.push_back({ends.first, ends.second, std::move(values)});
  }
  for (const auto& [id, boxes] : flows.arrives)
    for (const std::uint32_t box : boxes) arrives_[box].push_back(id);
  for (const auto& [id, box] : flows.leaves) leaves_[box].push_back(id);
}

// Up to `most` boxes, those the fewest edges from `start`, then those that come next in the pass. Sorted.
std::vector<std::uint32_t> ModuleGraph::nearest(std::uint32_t start, std::size_t most) const {
  std::vector<bool> taken(boxes_.size(), false);
  std::vector<std::uint32_t> queue = {start};
  taken[start] = true;
  const auto take = [&](std::size_t box) {
    if (taken[box] || queue.size() >= most) return;
    taken[box] = true;
    queue.push_back(static_cast<std::uint32_t>(box));
  };
  for (std::size_t i = 0; i < queue.size() && queue.size() < most; ++i)
    for (const std::uint32_t edge : beside_[queue[i]])
      take(edges_[edge].from == queue[i] ? edges_[edge].to : edges_[edge].from);
  for (std::size_t k = 0; k < boxes_.size() && queue.size() < most; ++k) take((start + k) % boxes_.size());
  std::ranges::sort(queue);
  return queue;
}

GraphPart ModuleGraph::part(std::optional<std::uint32_t> around, std::size_t most) const {
  GraphPart part;
  part.box_of_op = box_of_op_;
  std::vector<std::uint32_t> at(boxes_.size(), kNone), taken(boxes_.size());
  for (std::uint32_t i = 0; i < taken.size(); ++i) taken[i] = i;
  if (boxes_.size() > most) {
    const std::uint32_t start = around && *around < box_of_op_.size() ? box_of_op_[*around] : kNone;
    taken = nearest(start == kNone ? 0 : start, most);
    part.left_out = boxes_.size() - taken.size();
  }
  for (std::uint32_t i = 0; i < taken.size(); ++i) at[taken[i]] = i;
  if (part.left_out > 0)
    for (std::uint32_t& box : part.box_of_op)
      if (box != kNone) box = at[box];
  std::map<graph::ValueId, std::set<std::uint32_t>> arriving;
  for (std::uint32_t i = 0; i < taken.size(); ++i) {
    GraphBox& box = part.boxes.emplace_back(boxes_[taken[i]]);
    for (const std::uint32_t edge : beside_[taken[i]]) {
      const GraphEdge& flow = edges_[edge];
      if (at[flow.from] == kNone) ++box.hidden_before;
      if (at[flow.to] == kNone) ++box.hidden_after;
      if (flow.from == taken[i] && at[flow.to] != kNone) part.edges.push_back({i, at[flow.to], flow.values});
    }
    for (const graph::ValueId id : arrives_[taken[i]]) arriving[id].insert(i);
  }
  add_outer(part, arriving, taken);
  return part;
}

// Adds a box for the values that go to, or come from, the same boxes.
void ModuleGraph::add_outer(GraphPart& part,
                            const std::map<graph::ValueId, std::set<std::uint32_t>>& arriving,
                            std::span<const std::uint32_t> taken) const {
  std::map<std::set<std::uint32_t>, std::vector<graph::ValueId>> together;
  for (const auto& [id, boxes] : arriving) together[boxes].push_back(id);
  for (const auto& [boxes, values] : together) {
    for (const std::uint32_t to : boxes) part.edges.push_back({part.boxes.size(), to, values});
    part.boxes.push_back({.kind = BoxKind::arrives, .values = values});
  }
  for (std::size_t i = 0; i < taken.size(); ++i) {
    const std::vector<graph::ValueId>& values = leaves_[taken[i]];
    if (values.empty()) continue;
    part.edges.push_back({i, part.boxes.size(), values});
    part.boxes.push_back({.kind = BoxKind::leaves, .values = values});
  }
}

GraphPart graph_part(const graph::ForwardGraph& forward, const graph::OpTree& tree,
                     std::span<const graph::OpNodeId> nodes, graph::OpNodeId module,
                     std::optional<std::uint32_t> around, std::size_t most) {
  return ModuleGraph(forward, tree, nodes, module).part(around, most);
}

std::optional<std::size_t> GraphPart::box_of(std::uint32_t op) const {
  if (op >= box_of_op.size() || box_of_op[op] == kNoBox) return std::nullopt;
  return box_of_op[op];
}

std::vector<graph::OpNodeId> nodes_of_operators(const graph::ForwardGraph& forward,
                                                const graph::OpTree& tree) {
  std::vector<graph::OpNodeId> nodes(forward.ops.size(), graph::kRootOpNode);
  for (std::size_t i = 0; i < tree.nodes.size(); ++i)
    for (const std::uint32_t op : tree.nodes[i].ops)
      if (op < nodes.size()) nodes[op] = graph::OpNodeId{static_cast<std::uint32_t>(i)};
  for (std::size_t i = forward.ops.size(); i-- > 1;)
    if (graph::is_part_of_next(forward, i - 1)) nodes[i - 1] = nodes[i];
  return nodes;
}

std::vector<bool> constants_of(const graph::ForwardGraph& forward) {
  std::vector<bool> used(forward.values.size(), false), leaves(forward.values.size(), false);
  for (const graph::Op& op : forward.ops)
    for (const graph::ValueId id : op.inputs) used[static_cast<std::size_t>(id)] = true;
  for (const graph::ValueId id : forward.outputs) leaves[static_cast<std::size_t>(id)] = true;
  std::vector<bool> constants(forward.ops.size(), false);
  for (std::size_t i = 0; i < forward.ops.size(); ++i) {
    const graph::Op& op = forward.ops[i];
    if ((op.kind != "Constant" && op.kind != "Identity") || !op.inputs.empty() || op.outputs.size() != 1)
      continue;
    const auto made = static_cast<std::size_t>(op.outputs.front());
    constants[i] = used[made] && !leaves[made];
  }
  return constants;
}

graph::OpNodeId first_that_divides(const graph::OpTree& tree, graph::OpNodeId node) {
  while (tree.node(node).ops.empty() && tree.node(node).children.size() == 1 &&
         tree.node(tree.node(node).children.front()).all_ops > 1)
    node = tree.node(node).children.front();
  return node;
}

bool is_inside(const graph::OpTree& tree, graph::OpNodeId node, graph::OpNodeId module) {
  while (node != module && node != graph::kRootOpNode) node = tree.node(node).parent;
  return node == module;
}

std::optional<graph::OpNodeId> module_called(const graph::OpTree& tree, std::string_view path) {
  graph::OpNodeId at = graph::kRootOpNode;
  while (!path.empty()) {
    // a segment at the limit of depth holds separators
    const auto is_next = [&](graph::OpNodeId child) {
      const std::string& name = tree.node(child).name;
      return path.starts_with(name) && (path.size() == name.size() || path[name.size()] == tree.separator);
    };
    const auto next = std::ranges::find_if(tree.node(at).children, is_next);
    if (next == tree.node(at).children.end()) return std::nullopt;
    at = *next;
    path.remove_prefix(std::min(path.size(), tree.node(at).name.size() + 1));
  }
  return tree.node(at).all_ops > 1 ? std::optional(at) : std::nullopt;
}

std::optional<graph::OpPlace> operator_called(const graph::ForwardGraph& forward, std::string_view name) {
  std::optional<graph::OpPlace> by_name, by_value;
  if (name.empty()) return by_name;
  const auto look = [&](std::uint32_t body, const std::vector<graph::Op>& ops) {
    for (std::uint32_t i = 0; i < ops.size() && !by_name; ++i) {
      if (ops[i].name == name) by_name = graph::OpPlace{body, i};
      const auto makes = [&](graph::ValueId id) { return forward.value(id).name == name; };
      if (!by_value && std::ranges::any_of(ops[i].outputs, makes)) by_value = graph::OpPlace{body, i};
    }
  };
  look(graph::OpPlace::kMain, forward.ops);
  for (std::uint32_t i = 0; i < forward.bodies.size(); ++i) look(i, forward.bodies[i].ops);
  return by_name ? by_name : by_value;
}

// --- What is inside an operator.

std::vector<graph::OpPlace> holders_of_bodies(const graph::ForwardGraph& forward) {
  std::vector<graph::OpPlace> holders(forward.bodies.size());
  const auto note = [&](std::uint32_t body, const std::vector<graph::Op>& ops) {
    for (std::uint32_t i = 0; i < ops.size(); ++i)
      for (const std::uint32_t inner : ops[i].bodies) holders[inner] = {body, i};
  };
  note(graph::OpPlace::kMain, forward.ops);
  for (std::uint32_t i = 0; i < forward.bodies.size(); ++i) note(i, forward.bodies[i].ops);
  return holders;
}

namespace {

// What the bodies of an operator use and do not make.
std::vector<graph::ValueId> captured(const graph::ForwardGraph& forward, const graph::Op& op) {
  std::vector<graph::ValueId> used;
  std::set<graph::ValueId> made;
  std::vector<std::uint32_t> bodies = op.bodies;
  for (std::size_t i = 0; i < bodies.size(); ++i) {  // grows while it is walked
    const graph::Body& body = forward.bodies[bodies[i]];
    made.insert(body.inputs.begin(), body.inputs.end());
    used.insert(used.end(), body.outputs.begin(), body.outputs.end());
    for (const graph::Op& each : body.ops) {
      made.insert(each.outputs.begin(), each.outputs.end());
      used.insert(used.end(), each.inputs.begin(), each.inputs.end());
      bodies.insert(bodies.end(), each.bodies.begin(), each.bodies.end());
    }
  }
  std::erase_if(used, [&](graph::ValueId id) { return !made.insert(id).second; });
  return used;
}

}  // namespace

InnerGraph graph_inside(const graph::ForwardGraph& forward, const graph::Op& op) {
  InnerGraph inner;
  graph::ForwardGraph& to = inner.forward;
  to.symbols = forward.symbols;
  to.chosen = forward.chosen;
  to.sizes = forward.sizes;
  to.values = forward.values;
  std::size_t named = 0, with_slash = 0;
  for (const std::uint32_t at : op.bodies)
    for (const graph::Op& each : forward.bodies[at].ops) {
      named += !each.name.empty();
      with_slash += each.name.find('/') != std::string::npos;
    }
  const char separator = 2 * with_slash > named ? '/' : '.';
  for (std::size_t number = 0; number < op.bodies.size(); ++number) {
    const std::uint32_t at = op.bodies[number];
    const graph::Body& body = forward.bodies[at];
    const std::string title = graph::body_name(op, number);
    std::set<graph::ValueId> made;
    const auto add = [&](graph::Op each, std::uint32_t position) {
      each.name = title + separator + each.name;
      to.ops.push_back(std::move(each));
      inner.places.push_back({at, position});
    };
    for (std::uint32_t i = 0; i < body.ops.size(); ++i) {
      made.insert(body.ops[i].outputs.begin(), body.ops[i].outputs.end());
      graph::Op each = body.ops[i];
      const std::set<graph::ValueId> own(each.inputs.begin(), each.inputs.end());
      for (const graph::ValueId id : captured(forward, each))  // none twice
        if (!own.contains(id)) each.inputs.push_back(id);
      add(std::move(each), i);
    }
    for (const graph::ValueId id : body.outputs)
      if (!made.contains(id)) {
        graph::Op passed{std::string(kPassesOn), "", {id}, {}, {}};
        add(std::move(passed), InnerGraph::kNoPosition);
      }
    to.inputs.insert(to.inputs.end(), body.inputs.begin(), body.inputs.end());
    std::ranges::copy_if(body.outputs, std::back_inserter(to.outputs),
                         [&](graph::ValueId id) { return made.contains(id); });
  }
  return inner;
}

}  // namespace loadline::view
