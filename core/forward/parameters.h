// How many parameters a model has, as people count them.
#pragma once

#include "core/forward/bind.h"

#include <cstdint>

namespace loadline {

// The numbers that the computation uses, each once: without buffers, ties, layers that are only stored, and
// the scales beside quantised weights; two for each byte of 4-bit blocks. Tensors of parts that the
// architecture does not describe count as they lie in the file. `graph` is what `model` was bound to.
std::uint64_t parameters(const BoundModel& model, const MetaGraph& graph);

}  // namespace loadline
