// Torch's names for element types and storage classes.
#pragma once

#include "core/graph/dtype_and_shape.h"

#include <cstdint>
#include <optional>
#include <string_view>

namespace loadline {

struct TorchType {
  DType dtype = DType::opaque;
  std::uint8_t item_bytes = 0;  // bytes of one element as torch counts elements; 0: unknown
};

// The type named "torch.float32", "torch.float8_e4m3fn" and so on; opaque if the dtype table has no row for
// it. Nothing if the name is not in the module torch.
std::optional<TorchType> torch_dtype(std::string_view global);
// The element type of "torch.FloatStorage", "torch.cuda.HalfStorage" and so on; UntypedStorage has elements
// of one byte. Nothing if the name is not a storage class.
std::optional<TorchType> torch_storage_class(std::string_view global);
bool is_untyped_storage(std::string_view global);

}  // namespace loadline
