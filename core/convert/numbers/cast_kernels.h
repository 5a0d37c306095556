// The vectorised loops of cast() among 16-bit and 32-bit floats.
#pragma once

#include "core/graph/dtype_and_shape.h"

#include <cstddef>
#include <span>

namespace loadline {

// As cast(), bit by bit, on every instruction set. Both are one of F32, F16 and BF16 and they differ.
void cast_floats(DType from, std::span<const std::byte> source, DType to, std::span<std::byte> out);

}  // namespace loadline
