// One tensor out of the arguments of torch's rebuild functions.
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

// A tensor whose name, shape and strides are set, at element `offset` of the window: its dtype, storage and
// byte offset, no strides where it is contiguous. Throws Error{malformed} naming the tensor if it needs more
// than the window has.
Tensor place_tensor(Tensor tensor, TorchType type, std::uint64_t offset, const StorageWindow& window,
                    const std::string& file);

// What a rebuild function's arguments say, checked against the storage. Every Error names the tensor.
class TorchRebuilder {
 public:
  TorchRebuilder(const Pickle& pickle, const TorchStorages& storages, const std::vector<StorageId>& placed,
                 std::string file)
      : pickle_(pickle), storages_(storages), placed_(placed), file_(std::move(file)) {}

  // (storage, offset, size, stride, ...): elements of `type`, or of the storage's class without one.
  Tensor on_storage(const std::string& name, std::span<const PickleValue> arguments,
                    std::optional<TorchType> type) const;
  // A tensor without bytes; its storage is not set. `bytes` takes what it would need.
  Tensor without_storage(const std::string& name, PickleValue dtype, PickleValue size,
                         PickleValue stride) const;
  // A storage that stands for itself: a vector of its elements.
  Tensor whole_storage(const std::string& name, PickleValue persistent) const;

  // The type that the global `value` names. Throws Error{malformed}.
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
