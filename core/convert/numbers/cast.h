// Conversions between floating-point types, element by element, with correct rounding.
#pragma once

#include "core/graph/dtype_and_shape.h"

#include <cstddef>
#include <span>

namespace loadline {

// Whether cast() handles the pair: any two of F32, F16, BF16, F64 (F64 only as a source), or equal.
bool can_cast(DType from, DType to);

// Converts whole elements; both spans hold the same number of them and need not be aligned. Narrowing rounds
// to nearest, ties to even. Too large values become infinity. NaN stays NaN and keeps its sign. The pair must
// satisfy can_cast.
void cast(DType from, std::span<const std::byte> source, DType to, std::span<std::byte> out);

}  // namespace loadline
