// Checks ids, ranges, names and sums.
#include "core/graph/validate.h"

#include "core/base/checked.h"
#include "core/base/error.h"

#include <unordered_set>

#include <fmt/format.h>

namespace loadline {
namespace {

[[noreturn]] void fail(const MetaGraph& graph, const Tensor& tensor, const std::string& detail) {
  const bool known = index(tensor.storage) < graph.storages.size();
  const FileId file = known ? graph.storage(tensor.storage).file : kNoFile;
  throw Error(
      ErrorCode::malformed,
      {.file = index(file) < graph.files.size() ? graph.files[index(file)].path : "", .tensor = tensor.name},
      detail);
}

// Bytes from the tensor's first element to the end of its last, or nothing on overflow.
std::optional<std::uint64_t> extent(const Tensor& tensor) {
  const auto count = element_count(tensor.shape);
  if (!count) return std::nullopt;
  if (*count == 0 || tensor.strides.empty()) return byte_size(tensor.dtype, *count);
  std::uint64_t last = 0;
  for (std::size_t i = 0; i < tensor.shape.size(); ++i) {
    const auto step = checked_mul(tensor.shape[i] - 1, tensor.strides[i]);
    const auto sum = step ? checked_add(last, *step) : std::nullopt;
    if (!sum) return std::nullopt;
    last = *sum;
  }
  const auto span = checked_add(last, 1);
  return span ? byte_size(tensor.dtype, *span) : std::nullopt;
}

void check_tensor(const MetaGraph& graph, const Tensor& tensor) {
  if (index(tensor.storage) >= graph.storages.size())
    fail(
        graph, tensor,
        fmt::format("storage {} does not exist, there are {}", index(tensor.storage), graph.storages.size()));
  if (!tensor.strides.empty() && tensor.strides.size() != tensor.shape.size())
    fail(graph, tensor, fmt::format("{} strides for rank {}", tensor.strides.size(), tensor.shape.size()));
  const Storage& storage = graph.storage(tensor.storage);
  if (dtype_info(tensor.dtype).block_elements == 0) {
    if (tensor.offset > storage.bytes)
      fail(graph, tensor,
           fmt::format("starts at byte {} of a {} byte storage", tensor.offset, storage.bytes));
    return;
  }
  const auto bytes = extent(tensor);
  if (!bytes) fail(graph, tensor, "its size does not fit in 64 bits or in whole blocks");
  if (!range_fits(tensor.offset, *bytes, storage.bytes))
    fail(graph, tensor,
         fmt::format("needs {} bytes at {}, its storage has {}", *bytes, tensor.offset, storage.bytes));
}

}  // namespace

bool is_contiguous(const Tensor& tensor) {
  if (tensor.strides.empty()) return true;
  std::uint64_t expected = 1;
  for (std::size_t i = tensor.shape.size(); i-- > 0;) {
    if (tensor.shape[i] != 1 && tensor.strides[i] != expected) return false;
    expected *= tensor.shape[i];
  }
  return true;
}

void validate(const MetaGraph& graph) {
  constexpr std::uint64_t kMost = std::uint64_t{1} << 63;
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i < graph.storages.size(); ++i) {
    const Storage& storage = graph.storages[i];
    const auto total = checked_add(sum, storage.bytes);
    if (!total || *total >= kMost)
      throw Error(ErrorCode::malformed, fmt::format("storage {}: sizes add up to more than 2^63 bytes", i));
    sum = *total;
    if (storage.file == kNoFile) continue;
    if (index(storage.file) >= graph.files.size())
      throw Error(ErrorCode::malformed,
                  fmt::format("storage {}: file {} does not exist", i, index(storage.file)));
    const ModelFile& file = graph.files[index(storage.file)];
    if (!range_fits(storage.offset, storage.bytes, file.bytes))
      throw Error(ErrorCode::malformed, {.file = file.path, .byte = storage.offset},
                  fmt::format("storage {} has {} bytes, the file ends at {}", i, storage.bytes, file.bytes));
  }

  std::unordered_set<std::string_view> names;
  names.reserve(graph.tensors.size());
  for (const Tensor& tensor : graph.tensors) {
    check_tensor(graph, tensor);
    if (!names.insert(tensor.name).second) fail(graph, tensor, "the name occurs twice");
  }
}

}  // namespace loadline
