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

LayerPart layer_part(std::string_view name) {
  for (std::size_t begin = 0; begin < name.size();) {
    const std::size_t end = std::min(name.find('.', begin), name.size());
    std::uint64_t number = 0;
    const auto parsed = std::from_chars(name.data() + begin, name.data() + end, number);
    if (end > begin && parsed.ec == std::errc{} && parsed.ptr == name.data() + end) return {begin, end};
    begin = end + 1;
  }
  return {name.size(), name.size()};
}

std::optional<std::uint64_t> layer_number(std::string_view name) {
  const LayerPart part = layer_part(name);
  std::uint64_t number = 0;
  if (part.empty()) return std::nullopt;
  std::from_chars(name.data() + part.begin, name.data() + part.end, number);
  return number;
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
  constexpr std::array<std::string_view, kRoleCount> kNames = {
      "embedding", "attention", "mlp", "convolution", "norm", "head", "other"};
  return kNames[static_cast<std::size_t>(role)];
}

namespace {

// Whether a segment of the name is the word, or the word and a number: "bn1". `low` is in lower case.
bool has_segment(std::string_view low, std::string_view word) {
  for (std::size_t at = low.find(word); at != std::string_view::npos; at = low.find(word, at + 1)) {
    if (at > 0 && low[at - 1] != '.' && low[at - 1] != '/' && low[at - 1] != '_') continue;
    const std::size_t end = low.find_first_not_of("0123456789", at + word.size());
    if (end == std::string_view::npos || low[end] == '.' || low[end] == '/' || low[end] == '_') return true;
  }
  return false;
}

}  // namespace

Role tensor_role(std::string_view name) {
  const std::string low = lower_case(name);
  // "attention.norm" and "embeddings.LayerNorm" are norms: the most specific part is tested first
  if (has_any(low, {"norm", "ln_", ".ln", "layer_norm", "running_mean", "running_var", "downsample.1."}) ||
      has_segment(low, "bn"))
    return Role::norm;
  if (has_any(low, {"lm_head", "out_head", "output.weight", "classifier", "pooler", "score.weight"}) &&
      !layer_number(name))
    return Role::head;
  if ((low.starts_with("fc.") || low.find(".fc.") != std::string::npos) && !layer_number(name))
    return Role::head;
  if (has_any(low, {"attn", "attention", ".att.", "q_proj", "k_proj", "v_proj", "o_proj"}))
    return Role::attention;
  if (has_any(low, {"mlp", "ffn", "feed_forward", ".ff.", "gate_proj", "up_proj", "down_proj", "expert",
                    "moe", "intermediate", "output.dense", ".fc1.", ".fc2."}))
    return Role::mlp;
  if (has_any(low, {"embed", "embd", "wte", "wpe", "tok_emb"})) return Role::embedding;
  if (has_any(low, {"conv", "downsample.0."})) return Role::convolution;
  return Role::other;
}

Role operator_role(std::string_view kind) {
  struct Row {
    std::string_view kind;
    Role role;
  };
  constexpr auto kRows = std::to_array<Row>({{"Conv", Role::convolution},
                                             {"ConvTranspose", Role::convolution},
                                             {"ConvInteger", Role::convolution},
                                             {"QLinearConv", Role::convolution},
                                             {"DeformConv", Role::convolution},
                                             {"FusedConv", Role::convolution},
                                             {"CONV_2D", Role::convolution},
                                             {"DEPTHWISE_CONV_2D", Role::convolution},
                                             {"TRANSPOSE_CONV", Role::convolution},
                                             {"BatchNormalization", Role::norm},
                                             {"InstanceNormalization", Role::norm},
                                             {"LayerNormalization", Role::norm},
                                             {"GroupNormalization", Role::norm},
                                             {"RMSNormalization", Role::norm},
                                             {"SimplifiedLayerNormalization", Role::norm},
                                             {"SkipLayerNormalization", Role::norm},
                                             {"SkipSimplifiedLayerNormalization", Role::norm},
                                             {"Attention", Role::attention},
                                             {"MultiHeadAttention", Role::attention},
                                             {"GroupQueryAttention", Role::attention},
                                             {"EmbedLayerNormalization", Role::embedding}});
  const std::string_view own = kind.substr(kind.rfind('.') + 1);  // "com.microsoft.FusedConv"
  const auto found = std::ranges::find(kRows, own, &Row::kind);
  return found == kRows.end() ? Role::other : found->role;
}

namespace {

// Names that differ in short numbers have one role: a model has few others, and each is looked at once.
class Roles {
 public:
  Role of(std::string_view name) {
    constexpr std::size_t kMostDigits = 18;  // of a number that can be a layer's
    pattern_.clear();
    std::size_t digits = 0;
    for (std::size_t i = 0; i < name.size(); ++i) {
      digits = is_digit(name[i]) ? digits + 1 : 0;
      if (digits > kMostDigits) return tensor_role(name);
      // "downsample.1" is not what "downsample.0" is, nor "fc3." what "fc2." is
      const bool counts = i + 1 < name.size() && digits == 1 && name[i] <= '3' && name[i + 1] == '.';
      if (digits <= 1) pattern_ += digits == 0 || counts ? name[i] : '0';
    }
    const auto known = roles_.find(std::string_view(pattern_));
    return known != roles_.end() ? known->second : roles_.emplace(pattern_, tensor_role(name)).first->second;
  }

 private:
  std::string pattern_;
  TextMap<Role> roles_;
};

}  // namespace

std::vector<Role> tensor_roles(const MetaGraph& graph) {
  Roles by_name;
  std::vector<Role> roles;
  roles.reserve(graph.tensors.size());
  for (const Tensor& tensor : graph.tensors) roles.push_back(by_name.of(tensor.name));
  if (!graph.forward) return roles;
  const auto take = [&](const std::vector<Op>& ops) {
    for (const Op& op : ops)
      for (const TensorId id : op.weights)
        if (Role& role = roles[index(id)]; role == Role::other) role = operator_role(op.kind);
  };
  take(graph.forward->ops);
  for (const Body& body : graph.forward->bodies) take(body.ops);
  return roles;
}

std::vector<Role> module_roles(const MetaGraph& graph, const ModuleTree& tree, std::span<const Role> roles) {
  std::vector<std::array<std::uint64_t, kRoleCount>> bytes(tree.nodes.size());
  std::vector<Role> found(tree.nodes.size(), Role::other);
  for (std::size_t i = tree.nodes.size(); i-- > 0;) {
    const ModuleNode& node = tree.nodes[i];
    if (node.tensor)
      bytes[i][index(roles[index(*node.tensor)])] += tensor_bytes(graph, graph.tensor(*node.tensor));
    std::uint64_t all = 0;
    for (const std::uint64_t part : bytes[i]) all += part;
    const auto most = std::ranges::max_element(bytes[i]);
    constexpr std::uint64_t kRest = 100;
    if (all > 0 && all - *most <= all / kRest) found[i] = static_cast<Role>(most - bytes[i].begin());
    if (i == index(kRootNode)) break;
    for (std::size_t role = 0; role < kRoleCount; ++role) bytes[index(node.parent)][role] += bytes[i][role];
  }
  return found;
}

}  // namespace loadline::graph
