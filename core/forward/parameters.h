// How many parameters a model has, as people count them.
#pragma once

#include "core/forward/bind.h"

#include <cstdint>

namespace loadline {

// The numbers that the computation uses, each once: without buffers, tied names, layers that are only stored,
// and the scales beside quantised weights; two for each byte of 4-bit blocks.
std::uint64_t parameters(const BoundModel& model);

}  // namespace loadline
