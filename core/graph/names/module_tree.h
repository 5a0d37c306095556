// The module tree with subtotals, built from dotted tensor names: "model.layers.0.mlp.up_proj.weight".
#pragma once

#include "core/graph/meta_graph.h"

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace loadline {

enum class NodeId : std::uint32_t {};
inline constexpr NodeId kRootNode{0};

struct ModuleNode {
  std::string name;  // one segment of the path; empty for the root
  NodeId parent = kRootNode;
  std::vector<NodeId> children;    // in natural order: "2" before "10"
  std::optional<TensorId> tensor;  // set on leaves (a module may also be a tensor of that name)
  // Totals of the node and everything below it. Bytes that several tensors view count once
  // (core/graph/shares.h); tied tensors count at their first name.
  std::uint64_t bytes = 0;
  std::uint64_t parameters = 0;
  std::uint64_t tensors = 0;
};

// nodes[0] is the root; a node comes before its children.
struct ModuleTree {
  std::vector<ModuleNode> nodes;

  const ModuleNode& node(NodeId id) const { return nodes[index(id)]; }
  const ModuleNode& root() const { return nodes.front(); }
};

// Splits names at dots. Empty segments are kept, so that every tensor has a node of its own. In a name of
// more than kMostDepth segments, the last segment holds the rest.
inline constexpr std::size_t kMostDepth = 64;
ModuleTree module_tree(const MetaGraph& graph);
// The tree of `tensors` alone, which must be distinct.
ModuleTree module_tree(const MetaGraph& graph, std::span<const TensorId> tensors);

// The dotted path of a node, "" for the root.
std::string module_path(const ModuleTree& tree, NodeId id);

// The index of the repeated layer a name belongs to: its first wholly numeric segment.
std::optional<std::uint64_t> layer_number(std::string_view name);

}  // namespace loadline
