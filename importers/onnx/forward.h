// Builds a ForwardGraph from the operators of an ONNX graph.
#pragma once

#include "core/graph/meta_graph.h"
#include "importers/onnx/model.h"
#include "importers/onnx/skeleton.h"

#include <optional>
#include <vector>

namespace loadline {

// Whether shape inference can add information: some operator's output has no shape in the file, or some
// operator contains a graph.
bool needs_inference(const OnnxModel& model);

// Sets graph.forward. `tensor_of` gives the graph's tensor for each OnnxTensorId. `inferred` is the result of
// shape inference: types of values, with stand-in element types, and only those nodes that contain graphs.
// Types in the file take precedence. A nested graph becomes a body of the operator that contains it, down to
// kMostBodyDepth levels. If nodes are not in topological order, use unknown names or define a value twice,
// graph.forward stays empty and a Note says so.
void add_forward(const OnnxModel& model, const std::vector<std::optional<TensorId>>& tensor_of,
                 const OnnxModel& inferred, const OnnxStandIns& stand_ins, MetaGraph& graph);

}  // namespace loadline
