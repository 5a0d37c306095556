// ExecuTorch's tensor layouts (runtime/core/exec_aten/util/dim_order_util.h).
#include "importers/flatbuffers/tensor.h"

#include <bitset>

#include <fmt/format.h>

namespace loadline {
namespace {

constexpr std::size_t kMostRank = 16;  // kTensorDimensionLimit

}  // namespace

ExecutorchLayout executorch_layout(const ErrorPlace& place, int scalar_type,
                                   std::span<const std::int32_t> sizes,
                                   std::span<const std::uint8_t> dim_order) {
  if (sizes.size() > kMostRank)
    throw Error(ErrorCode::malformed, place, "has rank {}, at most {}", sizes.size(), kMostRank);
  std::vector<std::uint64_t> shape;
  for (const std::int32_t size : sizes) {
    if (size < 0) throw Error(ErrorCode::malformed, place, "has a dimension of {}", size);
    shape.push_back(static_cast<std::uint64_t>(size));
  }
  ExecutorchLayout layout;
  layout.dtype = dtype_from(&DTypeInfo::executorch, scalar_type).value_or(DType::opaque);
  layout.shape = shape;
  const auto count = element_count(shape);
  if (!count)
    throw Error(ErrorCode::malformed, place, "the shape [{}] overflows 64 bits", fmt::join(shape, ","));
  if (layout.dtype != DType::opaque) {
    layout.bytes = byte_size(layout.dtype, *count);
    if (!layout.bytes)
      throw Error(ErrorCode::malformed, place, "[{}] overflows 64 bits", fmt::join(shape, ","));
  }
  if (dim_order.empty()) return layout;

  if (dim_order.size() != shape.size())
    throw Error(ErrorCode::malformed, place, "dim_order has {} entries for rank {}", dim_order.size(),
                shape.size());
  std::bitset<kMostRank> seen;
  bool in_order = true;
  std::vector<std::uint64_t> strides(shape.size(), 0);
  std::uint64_t stride = 1;
  for (std::size_t i = dim_order.size(); i-- > 0;) {
    const std::size_t dimension = dim_order[i];
    if (dimension >= shape.size() || seen[dimension])
      throw Error(ErrorCode::malformed, place, "dim_order [{}] is no order of {} dimensions",
                  fmt::join(dim_order.begin(), dim_order.end(), ","), shape.size());
    seen[dimension] = true;
    in_order = in_order && dimension == i;
    strides[dimension] = stride;
    stride *= std::max<std::uint64_t>(shape[dimension], 1);  // no overflow where the element count fits
  }
  if (!in_order && *count > 0) layout.strides = strides;
  return layout;
}

}  // namespace loadline
