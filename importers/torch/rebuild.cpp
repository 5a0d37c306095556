// torch/_utils.py, _rebuild_tensor*: offset and strides count elements.
#include "importers/torch/rebuild.h"

#include "core/base/checked_arithmetic.h"
#include "core/base/text.h"
#include "core/graph/validate.h"

#include <algorithm>

#include <fmt/format.h>

namespace loadline {
namespace {

using Kind = PickleValue::Kind;
constexpr std::size_t kMostRank = 64;  // torch's own limit

std::string numbers_text(std::span<const std::uint64_t> numbers) {
  return fmt::format("[{}]", fmt::join(numbers, ","));
}

void check_extent(const Tensor& tensor, TorchType type, std::uint64_t offset, std::uint64_t bytes,
                  const std::string& file) {
  const ErrorPlace place{.file = file, .tensor = tensor.name};
  const auto count = element_count(tensor.shape);
  if (!count || !checked_mul(*count, std::max<std::uint64_t>(type.item_bytes, 1)))
    throw Error(ErrorCode::malformed, place, "the shape {} overflows 64 bits", numbers_text(tensor.shape));
  if (tensor.strides.size() != tensor.shape.size())
    throw Error(ErrorCode::malformed, place, "{} strides for rank {}", tensor.strides.size(),
                tensor.shape.size());
  if (*count == 0 || type.item_bytes == 0) return;  // no elements, or elements of unknown size
  const auto length = spanned_elements(tensor);
  const auto end = length ? checked_add(*length, offset) : std::nullopt;
  const auto needed = end ? checked_mul(*end, type.item_bytes) : std::nullopt;
  if (!needed || *needed > bytes)
    throw Error(ErrorCode::malformed, place,
                "needs {} bytes for {} with strides {} from element {}, its storage "
                "has {}",
                needed ? fmt::format("{}", *needed) : "more than 2^64", numbers_text(tensor.shape),
                numbers_text(tensor.strides), offset, bytes);
}

// Clears the strides of a contiguous tensor. torch packs two numbers into an element of float4_e2m1fn_x2; the
// shape here counts numbers.
Tensor settled(Tensor tensor, TorchType type, const std::string& file) {
  if (element_count(tensor.shape) == 0 || is_contiguous(tensor)) tensor.strides = {};
  if (dtype_info(type.dtype).block_elements != 2) return tensor;
  if (!tensor.strides.empty())
    throw Error(ErrorCode::unsupported, {.file = file, .tensor = tensor.name},
                "a strided view of packed 4-bit numbers");
  if (tensor.shape.empty()) tensor.shape.push_back(1);
  const auto doubled = checked_mul(tensor.shape.back(), 2);
  tensor.shape[tensor.shape.size() - 1] = doubled.value_or(0);
  if (!doubled || !element_count(tensor.shape))
    throw Error(ErrorCode::malformed, {.file = file, .tensor = tensor.name}, "its shape overflows 64 bits");
  return tensor;
}

}  // namespace

Tensor place_tensor(Tensor tensor, TorchType type, std::uint64_t offset, const StorageWindow& window,
                    const std::string& file) {
  check_extent(tensor, type, offset, window.bytes, file);
  tensor.dtype = type.dtype;
  tensor.storage = window.storage;
  // an empty tensor may begin anywhere, one of unknown type only at the beginning
  const std::uint64_t skipped = checked_mul(offset, type.item_bytes).value_or(window.bytes);
  tensor.offset = window.offset + std::min(skipped, window.bytes);
  return settled(std::move(tensor), type, file);
}

std::uint64_t TorchRebuilder::number(const std::string& name, PickleValue value,
                                     std::string_view what) const {
  if (!value.is(Kind::integer) || pickle_.integer(value) < 0)
    throw malformed(name, "{} is no whole number from 0 on", what);
  return static_cast<std::uint64_t>(pickle_.integer(value));
}

std::span<const PickleValue> TorchRebuilder::sequence(PickleValue value) const {
  const PickleObject* object = pickle_.object(value);
  if (object == nullptr || !pickle_.is_global(object->callee, "torch.Size")) return pickle_.items(value);
  const std::span<const PickleValue> arguments = pickle_.items(object->arguments);
  return arguments.empty() ? arguments : pickle_.items(arguments[0]);
}

std::vector<std::uint64_t> TorchRebuilder::numbers(const std::string& name, PickleValue value,
                                                   std::string_view what) const {
  const PickleObject* const object = pickle_.object(value);
  const bool is_size = object != nullptr && pickle_.is_global(object->callee, "torch.Size");
  const bool is_list = value.is(Kind::tuple) || value.is(Kind::list) || is_size;
  if (!is_list) throw malformed(name, "its {} is no tuple", what);
  const std::span<const PickleValue> items = sequence(value);
  if (items.size() > kMostRank)
    throw malformed(name, "its {} has {} dimensions, torch allows {}", what, items.size(), kMostRank);
  std::vector<std::uint64_t> result;
  result.reserve(items.size());
  for (const PickleValue item : items) result.push_back(number(name, item, fmt::format("its {}", what)));
  return result;
}

TorchType TorchRebuilder::type_of(const std::string& name, PickleValue value) const {
  const auto type = value.is(Kind::global) ? torch_dtype(pickle_.text(value)) : std::nullopt;
  if (!type) throw malformed(name, "'{}' is no dtype of torch", safe_display(pickle_.text(value), 60));
  return *type;
}

Tensor TorchRebuilder::on_storage(const std::string& name, std::span<const PickleValue> arguments,
                                  std::optional<TorchType> type) const {
  if (arguments.size() < 4) throw malformed(name, "is rebuilt from {} values", arguments.size());
  if (!arguments[0].is(Kind::persistent)) throw malformed(name, "is rebuilt from what is no storage");
  const std::uint32_t storage = storages_.storage_of(arguments[0].number());
  const TorchWindow window = storages_.window_of(arguments[0].number());
  if (!type) type = storages_.storages()[storage].type;
  Tensor tensor;
  tensor.name = name;
  const std::uint64_t offset = number(name, arguments[1], "its storage offset");
  tensor.shape = numbers(name, arguments[2], "size");
  tensor.strides = numbers(name, arguments[3], "stride");
  return place_tensor(std::move(tensor), *type, offset, {placed_[storage], window.offset, window.bytes},
                      file_);
}

Tensor TorchRebuilder::without_storage(const std::string& name, PickleValue dtype, PickleValue size,
                                       PickleValue stride) const {
  const TorchType type = type_of(name, dtype);
  Tensor tensor;
  tensor.name = name;
  tensor.shape = numbers(name, size, "size");
  tensor.strides = numbers(name, stride, "stride");
  return place_tensor(std::move(tensor), type, 0, {StorageId{}, 0, ~std::uint64_t{0}}, file_);
}

Tensor TorchRebuilder::whole_storage(const std::string& name, PickleValue persistent) const {
  const std::uint32_t storage = storages_.storage_of(persistent.number());
  const TorchWindow window = storages_.window_of(persistent.number());
  const TorchType type = storages_.storages()[storage].type;
  Tensor tensor;
  tensor.name = name;
  tensor.dtype = type.dtype;
  tensor.shape = {window.bytes / type.item_bytes};
  tensor.storage = placed_[storage];
  tensor.offset = window.offset;
  return tensor;
}

}  // namespace loadline
