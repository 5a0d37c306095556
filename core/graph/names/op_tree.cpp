// Builds the nodes in one pass over the names. Nodes are alike if the texts that describe them are equal.
#include "core/graph/names/tensor_names.h"

#include <algorithm>
#include <map>
#include <string_view>
#include <utility>

#include <fmt/core.h>

namespace loadline::graph {
namespace {

bool digit(char c) { return c >= '0' && c <= '9'; }

// Begin and end of the last number in a name; both are the name's end if it has no number.
std::pair<std::size_t, std::size_t> last_number(std::string_view name) {
  std::size_t end = name.size();
  while (end > 0 && !digit(name[end - 1])) --end;
  if (end == 0) return {name.size(), name.size()};
  std::size_t begin = end;
  while (begin > 0 && digit(name[begin - 1])) --begin;
  return {begin, end};
}

// Replaces each number by "#": "layers.12" and "layers.3" give the same text.
std::string without_numbers(std::string_view name) {
  std::string text;
  for (const char c : name)
    if (!digit(c))
      text += c;
    else if (text.empty() || text.back() != '#')
      text += '#';
  return text;
}

// Equal texts get equal numbers. Not hashed: the names come from a file.
using Numbers = std::map<std::string, std::uint32_t>;
std::uint32_t number_of(Numbers& known, std::string text) {
  return known.emplace(std::move(text), static_cast<std::uint32_t>(known.size())).first->second;
}

class Builder {
 public:
  Builder(const MetaGraph& graph, const ForwardGraph& forward) : graph_(graph), forward_(forward) {
    tree_.nodes.emplace_back();
    std::size_t named = 0, with_slash = 0;
    for (const Op& op : forward.ops) {
      named += !op.name.empty();
      with_slash += op.name.find('/') != std::string::npos;
    }
    if (2 * with_slash > named) tree_.separator = '/';
  }

  OpTree build() {
    for (std::uint32_t i = 0; i < forward_.ops.size(); ++i) {
      const OpNodeId at = node_of(forward_.ops[i].name);
      tree_.nodes[index(at)].ops.push_back(i);
    }
    for (std::size_t i = tree_.nodes.size(); i-- > 0;) {
      OpNode& node = tree_.nodes[i];
      for (const std::uint32_t op : node.ops) node.all_ops += !is_part_of_next(forward_, op);
      if (i > 0) tree_.nodes[index(node.parent)].all_ops += node.all_ops;
    }
    add_weights();
    compare();
    return std::move(tree_);
  }

 private:
  OpNodeId node_of(std::string_view name) {
    OpNodeId at = kRootOpNode;
    for (std::size_t depth = 1; !name.empty(); ++depth) {
      const std::size_t end =
          depth < kMostDepth ? std::min(name.find(tree_.separator), name.size()) : name.size();
      if (end > 0) at = child(at, name.substr(0, end));
      name.remove_prefix(std::min(end + 1, name.size()));
    }
    return at;
  }

  OpNodeId child(OpNodeId parent, std::string_view name) {
    const auto next = OpNodeId{static_cast<std::uint32_t>(tree_.nodes.size())};
    const auto [found, fresh] = children_.emplace(std::pair(parent, std::string(name)), next);
    if (!fresh) return found->second;
    tree_.nodes.push_back({.name = std::string(name), .parent = parent});
    tree_.nodes[index(parent)].children.push_back(next);
    return next;
  }

  // Each tensor counts once in every node above it, however many names and users it has.
  void add_weights() {
    std::vector<std::uint32_t> first_name(graph_.tensors.size());
    for (std::uint32_t i = 0; i < first_name.size(); ++i) first_name[i] = i;
    for (const std::vector<TensorId>& group : tied_groups(graph_))
      for (const TensorId id : group) first_name[index(id)] = static_cast<std::uint32_t>(group.front());
    std::vector<std::pair<std::uint32_t, OpNodeId>> users;
    for (std::uint32_t i = 0; i < tree_.nodes.size(); ++i)
      for (const std::uint32_t op : tree_.nodes[i].ops)
        for (const TensorId id : forward_.ops[op].weights)
          users.emplace_back(first_name[index(id)], OpNodeId{i});
    std::ranges::sort(users);
    constexpr std::uint32_t kNone = UINT32_MAX;
    std::vector<std::uint32_t> counted(tree_.nodes.size(), kNone);  // per node: the tensor counted last
    for (const auto& [tensor, user] : users) {
      const std::uint64_t bytes = tensor_bytes(graph_, graph_.tensors[tensor]);
      for (OpNodeId at = user; counted[index(at)] != tensor; at = tree_.nodes[index(at)].parent) {
        counted[index(at)] = tensor;
        OpNode& node = tree_.nodes[index(at)];
        ++node.weights;
        node.weight_bytes += bytes;
        if (at == kRootOpNode) break;
      }
    }
  }

  std::string text_of(const Op& op) const {
    std::string text = op.kind;
    const auto shape = [&](const Shape& sides) {
      for (const auto side : sides) text += fmt::format(",{}", side);
    };
    text += fmt::format("({}", op.inputs.size());
    for (const TensorId id : op.weights) {
      const Tensor& tensor = graph_.tensor(id);
      text += fmt::format("@{}", static_cast<int>(tensor.dtype));
      shape(tensor.shape);
    }
    for (const ValueId id : op.outputs) {
      const Value& value = forward_.value(id);
      text += value.dtype ? fmt::format(">{}", static_cast<int>(*value.dtype)) : ">?";
      if (!value.shape)
        text += '?';
      else
        for (const SizePoly& side : *value.shape) text += "," + side.text(forward_.symbols);
    }
    return text;
  }

  void compare() {
    Numbers ops, nodes;
    for (std::size_t i = tree_.nodes.size(); i-- > 0;) {
      OpNode& node = tree_.nodes[i];
      std::string text;
      for (const std::uint32_t op : node.ops)
        text += fmt::format("{};", number_of(ops, text_of(forward_.ops[op])));
      for (const OpNodeId id : node.children) {
        const OpNode& below = tree_.nodes[index(id)];
        text += fmt::format("{}:{}:{};", below.name.size(), without_numbers(below.name), below.like);
      }
      node.like = number_of(nodes, std::move(text));
    }
  }

  const MetaGraph& graph_;
  const ForwardGraph& forward_;
  OpTree tree_;
  std::map<std::pair<OpNodeId, std::string>, OpNodeId> children_;
};

}  // namespace

bool is_part_of_next(const ForwardGraph& forward, std::size_t op) {
  if (op + 1 >= forward.ops.size() || !forward.ops[op].outputs.empty()) return false;
  const Op& next = forward.ops[op + 1];
  return forward.ops[op].kind == next.kind && forward.ops[op].name == next.name && !next.outputs.empty();
}

OpTree op_tree(const MetaGraph& graph, const ForwardGraph& forward) {
  return Builder(graph, forward).build();
}

std::vector<OpGroup> folded_children(const OpTree& tree, OpNodeId node) {
  std::vector<OpGroup> groups;
  std::map<std::pair<std::string, std::uint32_t>, std::size_t> of;
  for (const OpNodeId id : tree.node(node).children) {
    const OpNode& child = tree.node(id);
    const auto [begin, end] = last_number(child.name);
    // operators that a file numbers consecutively ("Constant_12") are not layers
    const bool module = child.all_ops > 1;
    if (begin == end || !module) {
      groups.push_back({{id}});
      continue;
    }
    const std::string key = child.name.substr(0, begin) + "#" + child.name.substr(end);
    const auto [found, fresh] = of.emplace(std::pair(key, child.like), groups.size());
    if (fresh) groups.emplace_back();
    groups[found->second].members.push_back(id);
  }
  return groups;
}

std::string op_path(const OpTree& tree, OpNodeId id) {
  std::string path;
  for (; id != kRootOpNode; id = tree.node(id).parent) {
    const std::string& name = tree.node(id).name;
    path = path.empty() ? name : name + tree.separator + path;
  }
  return path;
}

std::string group_name(const OpTree& tree, const OpGroup& group) {
  const std::string& first = tree.node(group.members.front()).name;
  if (group.members.size() == 1) return first;
  const auto number_at = last_number(first);
  const std::size_t begin = number_at.first;
  const std::string head = first.substr(0, begin), tail = first.substr(number_at.second);
  const auto number = [&](std::size_t i) -> std::string_view {
    const std::string_view name = tree.node(group.members[i]).name;
    return name.substr(begin, name.size() - begin - tail.size());
  };
  const auto follows = [&](std::size_t i) {  // the member's number is one more than the previous member's
    const std::string_view a = number(i - 1), b = number(i);
    constexpr std::size_t kMostDigits = 9;
    if (a.size() > kMostDigits || b.size() > kMostDigits) return false;
    return std::stoul(std::string(a)) + 1 == std::stoul(std::string(b));
  };
  constexpr std::size_t kMostRuns = 3;
  std::string text;
  std::size_t runs = 0;
  for (std::size_t i = 0; i < group.members.size();) {
    std::size_t last = i;
    while (last + 1 < group.members.size() && follows(last + 1)) ++last;
    if (runs == kMostRuns) return text + fmt::format(" and {} more", group.members.size() - i);
    if (runs > 0) text += ", ";
    text += fmt::format("{}{}{}", head, number(i), tail);
    if (last > i) text += fmt::format(" - {}{}{}", head, number(last), tail);
    ++runs;
    i = last + 1;
  }
  return text;
}

}  // namespace loadline::graph
