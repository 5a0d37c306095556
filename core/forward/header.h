// The tensors of a model under the names that an architecture has for them; for bind.cpp only.
#pragma once

#include "core/forward/architecture.h"
#include "core/graph/meta_graph.h"
#include "core/graph/name_index.h"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace loadline {

// Finds tensors as the asset spells them, with or without its prefixes, and with the endings of older files;
// remembers what was claimed. Graph and architecture must outlive it.
class Header {
 public:
  Header(const MetaGraph& graph, const Architecture& architecture);

  std::optional<TensorId> find(const std::string& name) const;
  const MetaGraph& graph() const { return graph_; }

  void claim(TensorId id) { claimed_[index(id)] = true; }
  bool claimed(TensorId id) const { return claimed_[index(id)]; }
  // What stands beside BASE.weight in files whose linear weights are quantised.
  void claim_companions(const std::string& base);
  // Whether something stands in the stead of "BASE.weight".
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
