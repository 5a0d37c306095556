// The module tree that the names of operators spell: "model.layers.0.mlp.up_proj", "/encoder/layer.3/MatMul".
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
  std::vector<std::uint32_t> ops = {};  // of this very name, by position in ForwardGraph::ops, in order
  // Of the node and all below; a tensor under two names, or used twice, counts once, and so does an operator
  // with what is_part_of_next() to it.
  std::uint64_t all_ops = 0;
  std::uint64_t weights = 0;
  std::uint64_t weight_bytes = 0;
  // Equal for nodes that compute the same, with weights and results of the same types and shapes, up to the
  // numbers in the names.
  std::uint32_t like = 0;
};

// nodes[0] is the root, which holds the operators without a name; a node comes before its children.
struct OpTree {
  std::vector<OpNode> nodes;
  char separator = '.';  // of the names it was made of

  const OpNode& node(OpNodeId id) const { return nodes[static_cast<std::size_t>(id)]; }
};

// Whether this is no operator of its own: without outputs, directly before one of the same kind and name, it
// stands for memory that that one takes before it makes its outputs.
bool is_part_of_next(const ForwardGraph& forward, std::size_t op);

// `forward` is of `graph`: its weights are that one's tensors. Names are split at slashes if most have
// any, else at dots; empty segments are left out, and of more than kMostDepth the rest stays in the last
// one.
OpTree op_tree(const MetaGraph& graph, const ForwardGraph& forward);

// Children of more than one operator that are alike and whose names differ in their last number alone: the
// layers of a model.
struct OpGroup {
  std::vector<OpNodeId> members;  // one for a child that is like no other
};
// Every child of a node once; a group stands where its first member does.
std::vector<OpGroup> folded_children(const OpTree& tree, OpNodeId node);

// With the separator of its names; "" for the root.
std::string op_path(const OpTree& tree, OpNodeId id);

// The names of a group: "0 - 31", "0 - 4, 6 - 10, 12 - 16 and 9 more", "block_0 - block_11"; its name for
// one.
std::string group_name(const OpTree& tree, const OpGroup& group);

}  // namespace loadline
