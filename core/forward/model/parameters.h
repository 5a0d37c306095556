// The number of parameters of a model, as publications count them.
#pragma once

#include "core/forward/family/bind.h"

#include <cstdint>

namespace loadline {

// Counts the weights that the computation uses, each once. It leaves out buffers, tied copies, layers that
// are only stored, and the scales of quantised weights. A byte of 4-bit blocks counts as two. Tensors in
// parts that the architecture does not describe count with their shape in the file. `model` must be bound to
// `graph`.
std::uint64_t parameters(const BoundModel& model, const MetaGraph& graph);

}  // namespace loadline
