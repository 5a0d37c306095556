// Builds the module tree in one pass over the names; the words that tell a role.

#include "core/base/text.h"
#include "core/graph/meta_graph.h"
#include "core/graph/names/tensor_names.h"

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <functional>
#include <initializer_list>
#include <string>
#include <utility>

namespace loadline::graph {

// --- Builds the tree in one pass over the names, then sums from the leaves up.

namespace {

// Takes the first segment off `path` and returns it; at the depth limit, takes the whole path.
std::string_view take_segment(std::string_view& path, bool last) {
  const std::size_t dot = last ? std::string_view::npos : path.find('.');
  const std::string_view segment = path.substr(0, dot);
  path = dot == std::string_view::npos ? std::string_view() : path.substr(dot + 1);
  return segment;
}

// The children of all nodes by parent and name: a table of node ids, half full at most, searched onwards from
// where the hash points. A node of its own for each entry, as std::unordered_map has, takes twice the time.
class Children {
 public:
  explicit Children(std::size_t expected) : slots_(std::bit_ceil(2 * expected + 2), kRootNode) {}

  // The child's slot: its id, or the root's if there is no such child yet.
  NodeId& slot(const std::vector<ModuleNode>& nodes, NodeId parent, std::string_view name) {
    std::size_t at = hash(parent, name) & (slots_.size() - 1);
    while (slots_[at] != kRootNode) {
      const ModuleNode& node = nodes[index(slots_[at])];
      if (node.parent == parent && node.name == name) break;
      at = (at + 1) & (slots_.size() - 1);
    }
    return slots_[at];
  }
  // Makes room for another node; slots move.
  void reserve(const std::vector<ModuleNode>& nodes) {
    if (2 * (nodes.size() + 1) < slots_.size()) return;
    slots_.assign(2 * slots_.size(), kRootNode);
    for (std::uint32_t i = 1; i < nodes.size(); ++i) slot(nodes, nodes[i].parent, nodes[i].name) = NodeId{i};
  }

 private:
  static std::size_t hash(NodeId parent, std::string_view name) {
    std::size_t mixed = std::hash<std::string_view>()(name) ^ (index(parent) * 0x9e3779b97f4a7c15u);
    mixed *= 0xff51afd7ed558ccdu;  // neighbors must not lie side by side
    return mixed ^ (mixed >> 32);
  }

  std::vector<NodeId> slots_;
};

}  // namespace

ModuleTree module_tree(const MetaGraph& graph, std::span<const TensorId> tensors) {
  ModuleTree tree;
  tree.nodes.emplace_back();
  tree.nodes.reserve(tensors.size() + tensors.size() / 4 + 1);
  Children children(tree.nodes.capacity());
  const auto child_of = [&](NodeId parent, std::string_view name) {
    children.reserve(tree.nodes);
    NodeId& known = children.slot(tree.nodes, parent, name);
    if (known != kRootNode) return known;
    const NodeId id{static_cast<std::uint32_t>(tree.nodes.size())};
    known = id;
    ModuleNode& node = tree.nodes.emplace_back();
    node.name = std::string(name);
    node.parent = parent;
    tree.nodes[index(parent)].children.push_back(id);
    return id;
  };

  const std::vector<Share> parts = shares(graph, tensors);
  // neighbors share most of their path: it is looked up only from where it differs
  std::vector<std::pair<std::string_view, NodeId>> path_before;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const Tensor& tensor = graph.tensor(tensors[i]);
    std::string_view rest = tensor.name;
    NodeId at = kRootNode;
    bool more = true;
    bool same = true;
    for (std::size_t depth = 1; more; ++depth) {
      more = depth < kMostDepth && rest.find('.') != std::string_view::npos;
      const std::string_view segment = take_segment(rest, !more);
      same = same && depth <= path_before.size() && path_before[depth - 1].first == segment;
      if (same) {
        at = path_before[depth - 1].second;
        continue;
      }
      path_before.resize(depth - 1);
      at = child_of(at, segment);
      path_before.emplace_back(segment, at);
    }
    ModuleNode& leaf = tree.nodes[index(at)];
    leaf.tensor = tensors[i];
    leaf.tensors += 1;
    leaf.bytes += parts[i].bytes;
    leaf.parameters += parts[i].elements;
  }

  // children come after their parents, so one backward pass sums everything
  for (std::size_t i = tree.nodes.size(); i-- > 1;) {
    const ModuleNode& node = tree.nodes[i];
    ModuleNode& parent = tree.nodes[index(node.parent)];
    parent.bytes += node.bytes;
    parent.parameters += node.parameters;
    parent.tensors += node.tensors;
  }
  for (ModuleNode& node : tree.nodes)
    std::ranges::sort(node.children,
                      [&](NodeId a, NodeId b) { return natural_less(tree.node(a).name, tree.node(b).name); });
  return tree;
}

ModuleTree module_tree(const MetaGraph& graph) { return module_tree(graph, all_tensors(graph)); }

std::string module_path(const ModuleTree& tree, NodeId id) {
  std::string path;
  for (; id != kRootNode; id = tree.node(id).parent)
    path = path.empty() ? tree.node(id).name : tree.node(id).name + "." + path;
  return path;
}

std::optional<std::uint64_t> layer_number(std::string_view name) {
  while (!name.empty()) {
    const std::string_view segment = take_segment(name, false);
    std::uint64_t number = 0;
    const char* const end = segment.data() + segment.size();
    const auto parsed = std::from_chars(segment.data(), end, number);
    if (!segment.empty() && parsed.ec == std::errc{} && parsed.ptr == end) return number;
  }
  return std::nullopt;
}

// --- The words by which names tell.

namespace {

// `low` is in lower case.
bool has_any(std::string_view low, std::initializer_list<std::string_view> parts) {
  return std::ranges::any_of(parts,
                             [&](std::string_view part) { return low.find(part) != std::string_view::npos; });
}

}  // namespace

std::string_view role_name(Role role) {
  constexpr std::array<std::string_view, kRoleCount> kNames = {"embedding", "attention", "mlp",
                                                               "norm",      "head",      "other"};
  return kNames[static_cast<std::size_t>(role)];
}

Role tensor_role(std::string_view name) {
  const std::string low = lower_case(name);
  // "attention.norm" and "embeddings.LayerNorm" are norms: the most specific part is tested first
  if (has_any(low, {"norm", "ln_", ".ln", "layer_norm"})) return Role::norm;
  if (has_any(low, {"lm_head", "out_head", "output.weight", "classifier", "pooler", "score.weight"}) &&
      !layer_number(name))
    return Role::head;
  if (has_any(low, {"attn", "attention", ".att.", "q_proj", "k_proj", "v_proj", "o_proj"}))
    return Role::attention;
  if (has_any(low, {"mlp", "ffn", "feed_forward", ".ff.", "gate_proj", "up_proj", "down_proj", "expert",
                    "intermediate", "output.dense"}))
    return Role::mlp;
  if (has_any(low, {"embed", "embd", "wte", "wpe", "tok_emb"})) return Role::embedding;
  return Role::other;
}

}  // namespace loadline::graph
