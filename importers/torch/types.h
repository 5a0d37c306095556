// The names torch gives to element types and to classes of storages.
#pragma once

#include "core/graph/dtype.h"

#include <cstdint>
#include <optional>
#include <string_view>

namespace loadline {

struct TorchType {
  DType dtype = DType::opaque;
  std::uint8_t item_bytes = 0;  // of one element as torch counts them; 0: not known
};

// "torch.float32", "torch.float8_e4m3fn"; opaque for a type without a row in the dtype table. Nothing for
// what is no name in the module torch.
std::optional<TorchType> torch_dtype(std::string_view global);
// "torch.FloatStorage", "torch.cuda.HalfStorage"; UntypedStorage has elements of one byte. Nothing for what
// is no storage.
std::optional<TorchType> torch_storage_class(std::string_view global);
bool is_untyped_storage(std::string_view global);

}  // namespace loadline
