// What ExecuTorch's two formats have in common: shapes with an order of dimensions, segments.
#pragma once

#include "core/base/error.h"
#include "core/graph/meta_graph.h"

#include <cstdint>
#include <span>

namespace loadline {

// Shape, strides and dtype of a tensor as ExecuTorch writes them.
struct ExecutorchLayout {
  DType dtype = DType::opaque;
  Shape shape;
  Strides strides;                     // empty when contiguous
  std::optional<std::uint64_t> bytes;  // of all elements; nothing for an opaque dtype
};

// Throws Error{malformed} for negative sizes, a dim_order that is no permutation, a rank above 16, or a
// size that overflows. An empty dim_order means contiguous.
ExecutorchLayout executorch_layout(const ErrorPlace& place, int scalar_type,
                                   std::span<const std::int32_t> sizes,
                                   std::span<const std::uint8_t> dim_order);

}  // namespace loadline
