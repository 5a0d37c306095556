// The names that an asset uses: expressions in them, and the tensors of a model that they mean.
#pragma once

#include "core/assets/expression.h"
#include "core/graph/meta_graph.h"
#include "core/graph/name.h"

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace loadline::forward {

// Replaces each "{expr}" in a name by its value. Throws Error{malformed} for a value that is no whole number.
std::string expand_name(std::string_view name, const assets::AssetPlace& place, const assets::Scope& scope);

// How names in files may differ from those in an asset.
struct NameVariants {
  std::vector<std::string> prefixes = {};                           // that some files omit, change or add
  std::vector<std::pair<std::string, std::string>> spellings = {};  // endings, and those of older files
};

// The prefixes, and those that stand before a language model's names where another model holds it.
std::vector<std::string> prefixes_in(const graph::MetaGraph& graph, std::vector<std::string> prefixes);

// Finds tensors by the asset's names, with or without its prefixes, and with the endings of older files.
// Remembers which tensors were claimed. The graph must outlive it.
class Header {
 public:
  Header(const graph::MetaGraph& graph, NameVariants variants);

  // For a packed weight's name its codes.
  std::optional<graph::TensorId> find(const std::string& name) const;
  const graph::MetaGraph& graph() const { return graph_; }

  // Claims the companions of codes as well.
  void claim(graph::TensorId id);
  bool claimed(graph::TensorId id) const { return claimed_[graph::index(id)]; }
  // The packed weight whose codes or whose unpacked name find() gave; null for an ordinary tensor.
  const graph::LogicalTensor* packed(graph::TensorId id) const;

 private:
  std::optional<graph::TensorId> find_prefixed(const std::string& name) const;
  std::optional<graph::TensorId> find_exact(std::string_view name) const;
  // Of a tensor, or after all tensors of a packed weight.
  std::string_view name_at(std::uint32_t at) const;

  const graph::MetaGraph& graph_;
  NameVariants variants_;
  graph::NameIndex names_;
  std::vector<bool> claimed_;
  std::vector<std::optional<std::uint32_t>> packed_;  // by codes: positions in the graph's logical tensors
};

}  // namespace loadline::forward
