// Makes a unique, readable name for every tensor of an ONNX file.
#pragma once

#include "importers/onnx/model.h"

#include <string>
#include <string_view>
#include <vector>

namespace loadline {

// Parallel to model.tensors:
//   an initialiser of the graph    its own name; a sparse one NAME (values) and NAME/indices
//   in an operator's attribute     NODE/attribute, NODE/attribute/0 in a list
//   in an attribute's graph        NODE/then_branch/NAME, and so on inwards
//   in a function                  FUNCTION/NODE/attribute, FUNCTION/attribute for a default
//   for training                   training/initialization/NAME, training/algorithm/NAME
// NODE is the operator's name, else its first output, else its type and position. If two names are equal, the
// later one gets "#2". Throws Error{malformed} if two initialisers of one graph have the same name, and
// Error{limit} if all names together exceed kMostNameBytes.
inline constexpr std::uint64_t kMostNameBytes = 256 << 20;
std::vector<std::string> onnx_tensor_names(const OnnxModel& model, std::string_view file);

}  // namespace loadline
