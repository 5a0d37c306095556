// The module tree built from operator names: "model.layers.0.mlp.up_proj", "/encoder/layer.3/MatMul".
#pragma once

#include "core/graph/meta_graph.h"

#include <cstdint>
#include <string>
#include <vector>

namespace loadline {

enum class OpNodeId : std::uint32_t {};
inline constexpr OpNodeId kRootOpNode{0};

struct OpNode {
  std::string name = {};  // one segment of the path; empty for the root
  OpNodeId parent = kRootOpNode;
  std::vector<OpNodeId> children = {};  // in the order in which the pass first enters them
  std::vector<std::uint32_t> ops = {};  // operators of exactly this name: positions in ForwardGraph::ops
  // Totals of the node and everything below it. A tensor under two names, or used twice, counts once. An
  // operator that is_part_of_next() is not counted.
  std::uint64_t all_ops = 0;
  std::uint64_t weights = 0;
  std::uint64_t weight_bytes = 0;
  // Equal for nodes with the same computation: same operators, same types and shapes of weights and results,
  // same names up to the numbers in them.
  std::uint32_t like = 0;
};

// nodes[0] is the root, which holds the unnamed operators. A node comes before its children.
struct OpTree {
  std::vector<OpNode> nodes;
  char separator = '.';  // between the segments of operator names

  const OpNode& node(OpNodeId id) const { return nodes[static_cast<std::size_t>(id)]; }
};

// Whether `op` is only a part of the next operator: `op` has no outputs, and the next operator has its kind
// and name. `op` then stands for memory that the next operator takes before it makes its outputs.
bool is_part_of_next(const ForwardGraph& forward, std::size_t op);

// `forward` belongs to `graph`: its weights are tensors of `graph`. Names are split at slashes if most names
// have one, else at dots. Empty segments are left out. In a name of more than kMostDepth segments, the last
// segment holds the rest.
OpTree op_tree(const MetaGraph& graph, const ForwardGraph& forward);

// Repeated children of a node, such as the layers of a model: equal `like`, more than one operator each, and
// names that differ only in their last number.
struct OpGroup {
  std::vector<OpNodeId> members;  // a single one for a child that is not repeated
};
// The children of a node in groups, each child once. A group has the position of its first member.
std::vector<OpGroup> folded_children(const OpTree& tree, OpNodeId node);

// The path of a node, with the separator of the names; "" for the root.
std::string op_path(const OpTree& tree, OpNodeId id);

// The names of a group's members: "0 - 31", "0 - 4, 6 - 10, 12 - 16 and 9 more", "block_0 - block_11". The
// name itself for a group of one.
std::string group_name(const OpTree& tree, const OpGroup& group);

}  // namespace loadline
