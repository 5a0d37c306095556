// Tensor layouts of ExecuTorch's two formats: shapes with an order of dimensions.
#pragma once

#include "core/base/error.h"
#include "core/graph/meta_graph.h"

#include <cstdint>
#include <span>

namespace loadline {

// Dtype, shape and strides of a tensor in an ExecuTorch file.
struct ExecutorchLayout {
  DType dtype = DType::opaque;
  Shape shape;
  Strides strides;                     // empty when contiguous
  std::optional<std::uint64_t> bytes;  // of all elements; nothing for an opaque dtype
};

// An empty `dim_order` means contiguous. Throws Error{malformed} for negative sizes, a dim_order that is not
// a permutation, a rank above 16, or a size that overflows.
ExecutorchLayout executorch_layout(const ErrorPlace& place, int scalar_type,
                                   std::span<const std::int32_t> sizes,
                                   std::span<const std::uint8_t> dim_order);

}  // namespace loadline
