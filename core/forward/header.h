// Finds a model's tensors by the names that an architecture uses; for bind.cpp only.
#pragma once

#include "core/forward/architecture.h"
#include "core/graph/meta_graph.h"
#include "core/graph/name_index.h"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace loadline {

// Finds tensors by the asset's names, with or without its prefixes, and with the endings of older files.
// Remembers which tensors were claimed. Graph and architecture must outlive it.
class Header {
 public:
  Header(const MetaGraph& graph, const Architecture& architecture);

  // For a packed weight's name its codes.
  std::optional<TensorId> find(const std::string& name) const;
  const MetaGraph& graph() const { return graph_; }

  // Claims the companions of codes as well.
  void claim(TensorId id);
  bool claimed(TensorId id) const { return claimed_[index(id)]; }
  // The packed weight whose codes or whose unpacked name find() gave; null for an ordinary tensor.
  const LogicalTensor* packed(TensorId id) const;

 private:
  std::optional<TensorId> find_prefixed(const std::string& name) const;
  std::optional<TensorId> find_exact(std::string_view name) const;
  // Of a tensor, or after all tensors of a packed weight.
  std::string_view name_at(std::uint32_t at) const;

  const MetaGraph& graph_;
  const Architecture& architecture_;
  NameIndex names_;
  std::vector<bool> claimed_;
  std::vector<std::optional<std::uint32_t>> packed_;  // by codes: positions in the graph's logical tensors
};

}  // namespace loadline
