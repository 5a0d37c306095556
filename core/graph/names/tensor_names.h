// What the names of tensors and operators tell: modules with subtotals, layers, roles, a filter ("dtype:bf16
// layer:0-7"), repeated groups of operators.
#pragma once

#include "core/graph/meta_graph.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace loadline::graph {

// --- The module tree with subtotals, built from dotted tensor names: "model.layers.0.mlp.up_proj.weight".

enum class NodeId : std::uint32_t {};
inline constexpr NodeId kRootNode{0};

struct ModuleNode {
  std::string name;  // one segment of the path; empty for the root
  NodeId parent = kRootNode;
  std::vector<NodeId> children;    // in natural order: "2" before "10"
  std::optional<TensorId> tensor;  // set on leaves (a module may also be a tensor of that name)
  // Totals of the node and everything below it. Bytes that several tensors view count once
  // (core/graph/meta_graph.h); tied tensors count at their first name.
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

// Where the number of the repeated layer stands that a name belongs to: its first wholly numeric segment,
// from `begin` to `end`; both at the end of a name without one.
struct LayerPart {
  std::size_t begin = 0, end = 0;
  bool empty() const { return begin == end; }
};
LayerPart layer_part(std::string_view name);
// The number there.
std::optional<std::uint64_t> layer_number(std::string_view name);

// --- What a tensor is for, guessed from its name, or where that tells nothing from the operator that reads
// it.

enum class Role : std::uint8_t { embedding, attention, mlp, convolution, norm, head, other };
inline constexpr std::size_t kRoleCount = 7;
std::string_view role_name(Role role);
Role tensor_role(std::string_view name);
// Role::other for kinds that many roles share.
Role operator_role(std::string_view kind);
// Per tensor.
std::vector<Role> tensor_roles(const MetaGraph& graph);
// Per node of the tree: the role that all but a hundredth of its bytes have; else Role::other.
std::vector<Role> module_roles(const MetaGraph& graph, const ModuleTree& tree, std::span<const Role> roles);

// --- Selects tensors by a typed text: "dtype:bf16 shape:*x4096 size:>100MiB layer:0-7".

// The text consists of terms separated by spaces; a tensor must satisfy all of them. A term is KEY:VALUE, or
// a word alone, which must occur in the name. "-" before a term negates it. VALUE may be in quotes.
//
//   name:GLOB    file:GLOB     * any run, ? one character; matches the whole name, case-sensitive
//   dtype:GLOB                 case-insensitive; several with commas: dtype:f32,bf16
//   shape:GLOB                 sizes with x between: *x4096, 32000x*
//   size:RANGE                 bytes: >100MiB, <=4KiB, 1MiB-2MiB, 4096
//   rank:  layer:  shard:RANGE numbers: 3, 0-7, >=2, 1,4,7; shard numbers the files with weights from 1
class TensorFilter {
 public:
  // Every tensor passes an empty text. Throws Error{usage} that quotes the faulty term.
  explicit TensorFilter(std::string_view text);

  bool empty() const { return terms_.empty(); }
  // The tensors that pass, in graph order.
  std::vector<TensorId> select(const MetaGraph& graph) const;

 private:
  struct Context;
  using Test = std::function<bool(const Context&, const Tensor&)>;
  static Test make_test(std::string_view key, const std::string& value, const std::string& term);
  void add_term(bool turned, std::string_view key, const std::string& value, const std::string& term);

  struct Term {
    bool turned = false;
    Test test;
  };
  std::vector<Term> terms_;
};

// Whether `pattern`, in which * stands for any run and ? for one character, matches all of `text`.
bool glob_matches(std::string_view pattern, std::string_view text);

// The grammar in one line, for --help and the window.
std::string_view filter_help();

// --- The module tree built from operator names: "model.layers.0.mlp.up_proj", "/encoder/layer.3/MatMul".

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

}  // namespace loadline::graph
