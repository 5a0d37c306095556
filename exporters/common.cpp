// Steps shared by all exporters.
#include "exporters/common.h"

#include "core/base/checked.h"
#include "core/base/error.h"
#include "core/convert/cast.h"

#include <bit>

namespace loadline {
namespace {

// Limit for all tensors together. Views of a few stored bytes can have any number of elements.
constexpr std::uint64_t kMostBytes = std::uint64_t{1} << 62;

template <typename T>
void append_little_endian(std::vector<std::byte>& out, T value) {
  for (std::size_t i = 0; i < sizeof(T); ++i)
    out.push_back(static_cast<std::byte>((value >> (8 * i)) & 0xFF));
}

}  // namespace

DType output_dtype(const Tensor& tensor, const ExportOptions& options) {
  return options.outtype && can_cast(tensor.dtype, *options.outtype) ? *options.outtype : tensor.dtype;
}

std::vector<TensorId> select_tensors(const MetaGraph& graph) {
  std::vector<TensorId> selected;
  std::vector<bool> tied(graph.tensors.size(), false);
  for (const auto& group : tied_groups(graph))
    for (std::size_t i = 1; i < group.size(); ++i) tied[index(group[i])] = true;
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i < graph.tensors.size(); ++i) {
    if (tied[i]) continue;
    const Tensor& tensor = graph.tensors[i];
    const auto total = checked_add(sum, tensor_bytes(graph, tensor));
    if (!total || *total >= kMostBytes)
      throw Error(ErrorCode::limit, {.tensor = tensor.name}, "the tensors add up to more than 2^62 bytes");
    sum = *total;
    selected.push_back(TensorId{static_cast<std::uint32_t>(i)});
  }
  return selected;
}

std::uint64_t output_bytes(const Tensor& tensor, DType to) {
  const auto bytes = byte_size(to, elements(tensor));
  if (!bytes) throw Error(ErrorCode::limit, {.tensor = tensor.name}, "its size overflows 64 bits");
  return *bytes;
}

void add_result(MetaGraph& result, FileId file, const TensorSlot& slot, const Name& name,
                const Shape& shape) {
  const StorageId storage = result.add_storage(plain_storage(file, slot.offset, slot.bytes));
  result.tensors.push_back({name, slot.to, shape, {}, storage, 0});
}

std::uint64_t header_bytes(const LayoutFile& file) {
  std::uint64_t bytes = file.header.size();
  for (const HeaderCopy& copy : file.copies) bytes += copy.array.bytes;
  return bytes;
}

void append_bytes(std::vector<std::byte>& out, std::string_view text) {
  const auto bytes = std::as_bytes(std::span(text));
  out.insert(out.end(), bytes.begin(), bytes.end());
}

void append_u32(std::vector<std::byte>& out, std::uint32_t value) { append_little_endian(out, value); }
void append_u64(std::vector<std::byte>& out, std::uint64_t value) { append_little_endian(out, value); }

void append_string(std::vector<std::byte>& out, std::string_view text) {
  append_u64(out, text.size());
  append_bytes(out, text);
}

void check_alignment(std::uint64_t alignment) {
  if (alignment != 0 && (!std::has_single_bit(alignment) || alignment > std::uint64_t{2} << 20))
    throw Error(ErrorCode::usage, "an alignment of {} is not a power of two up to 2097152", alignment);
}

}  // namespace loadline
