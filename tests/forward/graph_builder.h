// Graphs for tests, as a file might list them.
#pragma once

#include "core/graph/forward_graph.h"

#include <map>
#include <optional>
#include <string>
#include <vector>

namespace loadline::testing {

// Values by name: an operator's unknown inputs become inputs of the graph.
class Builder {
 public:
  using Sizes = std::vector<graph::SizePoly>;

  Builder& op(const std::string& kind, const std::vector<std::string>& inputs, const std::string& output,
              const std::optional<Sizes>& shape = Sizes{graph::SizePoly(1000)},
              graph::DType dtype = graph::DType::f32) {
    graph::Op op = {.kind = kind, .name = output, .inputs = {}, .weights = {}, .outputs = {}};
    for (const std::string& name : inputs) {
      const bool fresh = ids_.count(name) == 0;
      op.inputs.push_back(value(name, Sizes{graph::SizePoly(1000)}, graph::DType::f32));
      if (fresh) graph_.inputs.push_back(op.inputs.back());
    }
    op.outputs.push_back(value(output, shape, dtype));
    graph_.ops.push_back(std::move(op));
    return *this;
  }
  Builder& weight(std::uint32_t tensor) {
    graph_.ops.back().weights.push_back(graph::TensorId{tensor});
    return *this;
  }
  Builder& half_declared() {
    graph_.values.back().half_declared = true;
    return *this;
  }
  Builder& returns(const std::vector<std::string>& names) {
    for (const std::string& name : names) graph_.outputs.push_back(ids_.at(name));
    return *this;
  }
  const graph::ForwardGraph& graph() const { return graph_; }

 private:
  graph::ValueId value(const std::string& name, const std::optional<Sizes>& shape, graph::DType dtype) {
    const auto [at, fresh] =
        ids_.try_emplace(name, graph::ValueId{static_cast<std::uint32_t>(graph_.values.size())});
    if (fresh) graph_.values.push_back({.name = name, .dtype = dtype, .shape = shape});
    return at->second;
  }
  graph::ForwardGraph graph_;
  std::map<std::string, graph::ValueId> ids_;
};

}  // namespace loadline::testing
