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

  std::optional<TensorId> find(const std::string& name) const;
  const MetaGraph& graph() const { return graph_; }

  void claim(TensorId id) { claimed_[index(id)] = true; }
  bool claimed(TensorId id) const { return claimed_[index(id)]; }
  // Claims the tensors stored beside BASE.weight in quantised files: scales, zero points and the like.
  void claim_companions(const std::string& base);
  // Whether a quantised file holds another tensor in place of `name`, "BASE.weight".
  bool has_stand_in(const std::string& name) const;

 private:
  std::optional<TensorId> find_prefixed(const std::string& name) const;
  std::optional<TensorId> find_exact(std::string_view name) const;

  const MetaGraph& graph_;
  const Architecture& architecture_;
  NameIndex names_;
  std::vector<bool> claimed_;
};

}  // namespace loadline
