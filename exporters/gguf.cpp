// GGUF version 3, little-endian (ggml docs/gguf.md, src/gguf.cpp).
//
//   "GGUF" | u32 version | u64 tensors | u64 key-values
//   key-values  { string key; u32 type; value }            string = u64 length, bytes
//   tensors     { string name; u32 rank; u64 ne[rank]; u32 type; u64 offset }
//   zeros to the alignment | data: tensors in order, each padded to the alignment
//
// ne[0] is the fastest dimension: shapes are written in reverse, bytes are not transposed.
#include "exporters/gguf.h"

#include "core/base/checked.h"
#include "core/base/error.h"
#include "core/base/text.h"
#include "core/graph/config_text.h"
#include "exporters/common.h"

#include <algorithm>
#include <map>

#include <fmt/format.h>
namespace loadline {
namespace {

constexpr std::uint64_t kDefaultAlignment = 32;
constexpr std::size_t kMostRank = 4;
constexpr std::size_t kMostName = 63;  // ggml keeps 64 bytes with the terminator
constexpr std::uint32_t kTypeU32 = 4;
constexpr std::uint32_t kTypeString = 8;

void append_string(std::vector<std::byte>& out, std::string_view text) {
  append_u64(out, text.size());
  append_bytes(out, text);
}

// Readers require an architecture, so a model without one says so.
std::string architecture(const MetaGraph& graph) {
  const auto model_type = model_family(graph);
  return model_type && !model_type->empty() ? *model_type : "unknown";
}

// general.file_type of the dtype that most bytes have, where ggml numbers it.
std::optional<std::uint32_t> file_type(const std::vector<TensorSlot>& slots) {
  std::map<DType, std::uint64_t> bytes;
  for (const TensorSlot& slot : slots) bytes[slot.to] += slot.bytes;
  const auto most = std::max_element(bytes.begin(), bytes.end(),
                                     [](const auto& a, const auto& b) { return a.second < b.second; });
  if (most == bytes.end()) return std::nullopt;
  switch (most->first) {
    case DType::f32:
      return 0;
    case DType::f16:
      return 1;
    case DType::bf16:
      return 32;
    default:
      return std::nullopt;
  }
}

Shape gguf_shape(const Tensor& tensor) { return tensor.shape.empty() ? Shape{1} : tensor.shape; }

TensorSlot make_slot(const MetaGraph& graph, TensorId id, const ExportOptions& options) {
  const Tensor& tensor = graph.tensor(id);
  const auto refuse = [&](std::string detail) {
    return Error(ErrorCode::unsupported, {.tensor = tensor.name}, detail);
  };
  const DType to = output_dtype(tensor, options);
  if (!gguf_supports(to)) throw refuse(fmt::format("GGUF has no dtype {}", dtype_info(to).name));
  if (tensor.shape.size() > kMostRank)
    throw refuse(fmt::format("has rank {}, GGUF holds at most {}", tensor.shape.size(), kMostRank));
  if (tensor.name.size() > kMostName || tensor.name.empty())
    throw refuse(fmt::format("its name has {} bytes, GGUF holds 1 to {}", tensor.name.size(), kMostName));
  if (!is_valid_utf8(tensor.name) || tensor.name.view().find('\0') != std::string::npos)
    throw refuse("its name is not UTF-8 text without NUL");
  for (const std::uint64_t dimension : tensor.shape)
    if (dimension >> 63 != 0)
      throw refuse(fmt::format("has a dimension of {}, GGUF's are signed", dimension));
  const std::uint32_t block = dtype_info(to).block_elements;
  const std::uint64_t row = gguf_shape(tensor).back();
  if (row % block != 0)
    throw refuse(
        fmt::format("has rows of {} elements, {} needs multiples of {}", row, dtype_info(to).name, block));
  const auto bytes = byte_size(to, elements(tensor));
  if (!bytes) throw Error(ErrorCode::limit, {.tensor = tensor.name}, "its size overflows 64 bits");
  return {id, to, 0, *bytes};
}

// Key-values, counted as they are added.
class KeyValues {
 public:
  void add(std::string key, std::string value) {
    append_string(bytes_, key);
    append_u32(bytes_, kTypeString);
    append_string(bytes_, value);
    entries_.push_back({std::move(key), std::move(value)});
  }
  void add(std::string key, std::uint32_t value) {
    append_string(bytes_, key);
    append_u32(bytes_, kTypeU32);
    append_u32(bytes_, value);
    entries_.push_back({std::move(key), value});
  }
  const std::vector<std::byte>& bytes() const { return bytes_; }
  std::vector<MetaEntry>& entries() { return entries_; }

 private:
  std::vector<std::byte> bytes_;
  std::vector<MetaEntry> entries_;
};

}  // namespace

bool gguf_supports(DType dtype) { return dtype_info(dtype).ggml >= 0; }

Layout gguf_layout(const MetaGraph& graph, const ExportOptions& options, const std::string& out) {
  check_alignment(options.alignment);
  if (options.alignment != 0 && options.alignment < 8)
    throw Error(ErrorCode::usage,
                fmt::format("--align {}: GGUF alignments are multiples of 8", options.alignment));
  if (options.max_shard_bytes != 0)
    throw Error(ErrorCode::usage, "the gguf exporter writes one file: --max-shard-size does not apply");
  const std::uint64_t alignment = options.alignment == 0 ? kDefaultAlignment : options.alignment;

  LayoutFile file;
  file.path = out;
  for (const TensorId id : select_tensors(graph)) file.slots.push_back(make_slot(graph, id, options));

  KeyValues pairs;
  pairs.add("general.architecture", architecture(graph));
  if (const std::string name = model_name(graph); is_valid_utf8(name)) pairs.add("general.name", name);
  pairs.add("general.alignment", static_cast<std::uint32_t>(alignment));
  if (const auto type = file_type(file.slots)) pairs.add("general.file_type", *type);

  append_bytes(file.header, "GGUF");
  append_u32(file.header, 3);
  append_u64(file.header, file.slots.size());
  append_u64(file.header, pairs.entries().size());
  file.header.insert(file.header.end(), pairs.bytes().begin(), pairs.bytes().end());
  std::uint64_t at = 0;
  for (TensorSlot& slot : file.slots) {
    const Tensor& tensor = graph.tensor(slot.tensor);
    append_string(file.header, tensor.name);
    const Shape shape = gguf_shape(tensor);
    append_u32(file.header, static_cast<std::uint32_t>(shape.size()));
    for (auto dimension = shape.rbegin(); dimension != shape.rend(); ++dimension)
      append_u64(file.header, *dimension);
    append_u32(file.header, static_cast<std::uint32_t>(dtype_info(slot.to).ggml));
    append_u64(file.header, at);
    slot.offset = at;
    at += align_up(slot.bytes, alignment);
  }
  file.header.resize(align_up(file.header.size(), alignment));

  Layout layout;
  layout.result.format = "gguf";
  layout.result.metadata = std::move(pairs.entries());
  for (TensorSlot& slot : file.slots) {
    slot.offset += file.header.size();
    const Tensor& source = graph.tensor(slot.tensor);
    const StorageId storage{static_cast<std::uint32_t>(layout.result.storages.size())};
    layout.result.storages.push_back(plain_storage(FileId{0}, slot.offset, slot.bytes));
    layout.result.tensors.push_back({source.name, slot.to, gguf_shape(source), {}, storage, 0});
  }
  file.bytes = file.header.size() + at;
  layout.result.files.push_back({out, file.bytes});
  layout.files.push_back(std::move(file));
  return layout;
}

}  // namespace loadline
