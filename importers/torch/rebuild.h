// Makes a tensor from the arguments of torch's rebuild functions.
#pragma once

#include "core/base/error.h"
#include "importers/torch/values.h"

#include <optional>
#include <string>
#include <string_view>

namespace loadline {

// The bytes of a storage that a tensor may use.
struct StorageWindow {
  StorageId storage{};
  std::uint64_t offset = 0;  // from the start of the storage
  std::uint64_t bytes = 0;
};

// Completes a tensor whose name, shape and strides are set, at element `offset` of the window: sets its
// dtype, storage and byte offset, and clears the strides if it is contiguous. Throws Error{malformed} naming
// the tensor if it needs more bytes than the window has.
Tensor place_tensor(Tensor tensor, TorchType type, std::uint64_t offset, const StorageWindow& window,
                    const std::string& file);

// Reads the arguments of rebuild functions and checks them against the storage. Every Error names the tensor.
class TorchRebuilder {
 public:
  TorchRebuilder(const Pickle& pickle, const TorchStorages& storages, const std::vector<StorageId>& placed,
                 std::string file)
      : pickle_(pickle), storages_(storages), placed_(placed), file_(std::move(file)) {}

  // Arguments (storage, offset, size, stride, ...). The elements have `type`, or by default the storage's
  // type.
  Tensor on_storage(const std::string& name, std::span<const PickleValue> arguments,
                    std::optional<TorchType> type) const;
  // A tensor without bytes; its storage is not set.
  Tensor without_storage(const std::string& name, PickleValue dtype, PickleValue size,
                         PickleValue stride) const;
  // A bare storage as a tensor: a vector of its elements.
  Tensor whole_storage(const std::string& name, PickleValue persistent) const;

  // The type that the global `value` names. Throws Error{malformed} if it names none.
  TorchType type_of(const std::string& name, PickleValue value) const;
  // The items of a tuple, a list, or a torch.Size.
  std::span<const PickleValue> sequence(PickleValue value) const;

 private:
  template <typename... Values>
  Error malformed(const std::string& name, fmt::format_string<Values...> detail,
                  const Values&... values) const {
    return Error(ErrorCode::malformed, {.file = file_, .tensor = name}, detail, values...);
  }
  std::uint64_t number(const std::string& name, PickleValue value, std::string_view what) const;
  std::vector<std::uint64_t> numbers(const std::string& name, PickleValue value, std::string_view what) const;

  const Pickle& pickle_;
  const TorchStorages& storages_;
  const std::vector<StorageId>& placed_;
  std::string file_;
};

}  // namespace loadline
