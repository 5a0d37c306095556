// The operators of an ONNX graph as a ForwardGraph.
#pragma once

#include "core/graph/meta_graph.h"
#include "importers/onnx/model.h"
#include "importers/onnx/skeleton.h"

#include <optional>
#include <vector>

namespace loadline {

// Whether shape inference could tell something that the file does not: an operator's output without a shape,
// or anything inside a graph of an operator.
bool needs_inference(const OnnxModel& model);

// Sets graph.forward. `tensor_of` gives the graph's tensor for each OnnxTensorId. `inferred` holds what
// shape inference found about values, in terms of the stand-ins, and of nodes only those that hold graphs;
// the file's own word counts first. Nodes of nested graphs belong to the operator that holds them, as its
// bodies, kMostBodyDepth deep. Where the nodes are not in topological order, use unknown names or make a
// value twice, forward stays empty and a Note says so.
void add_forward(const OnnxModel& model, const std::vector<std::optional<TensorId>>& tensor_of,
                 const OnnxModel& inferred, const OnnxStandIns& stand_ins, MetaGraph& graph);

}  // namespace loadline
