// GGUF version 3, little-endian (ggml docs/gguf.md, src/gguf.cpp).
//
//   "GGUF" | u32 version | u64 tensors | u64 key-values
//   key-values  { string key; u32 type; value }            string = u64 length, bytes
//   tensors     { string name; u32 rank; u64 ne[rank]; u32 type; u64 offset }
//   zeros to the alignment | data: tensors in order, each padded to the alignment
//
// ne[0] is the fastest dimension: shapes are written in reverse, bytes are not transposed.
#include "core/base/checked.h"
#include "core/base/error.h"
#include "core/base/text.h"
#include "exporters/common.h"
#include "exporters/formats.h"
#include "exporters/gguf_metadata.h"

namespace loadline {
namespace {

constexpr std::size_t kMostRank = 4;
constexpr std::size_t kMostName = 63;  // ggml keeps 64 bytes with the terminator

void check_slot(Slot& slot) {
  const ErrorPlace place{.tensor = slot.name};
  if (!gguf_supports(slot.dtype))
    throw Error(ErrorCode::unsupported, place, "GGUF has no dtype {}", dtype_info(slot.dtype).name);
  if (slot.shape.size() > kMostRank)
    throw Error(ErrorCode::unsupported, place, "has rank {}, GGUF holds at most {}", slot.shape.size(),
                kMostRank);
  if (slot.name.size() > kMostName || slot.name.empty())
    throw Error(ErrorCode::unsupported, place, "its name has {} bytes, GGUF holds 1 to {}", slot.name.size(),
                kMostName);
  if (!is_valid_utf8(slot.name) || slot.name.view().find('\0') != std::string::npos)
    throw Error(ErrorCode::unsupported, place, "its name is not UTF-8 text without NUL");
  for (const std::uint64_t dimension : slot.shape)
    if (dimension >> 63 != 0)
      throw Error(ErrorCode::unsupported, place, "has a dimension of {}, GGUF's are signed", dimension);
  if (slot.shape.empty()) slot.shape = {1};
  const std::uint32_t block = dtype_info(slot.dtype).block_elements;
  if (slot.shape.back() % block != 0)
    throw Error(ErrorCode::unsupported, place, "has rows of {} elements, {} needs multiples of {}",
                slot.shape.back(), dtype_info(slot.dtype).name, block);
}

}  // namespace

bool gguf_supports(DType dtype) { return dtype_info(dtype).ggml >= 0; }

Layout gguf_layout(const MetaGraph& graph, const ExportOptions& options, const std::string& out) {
  check_alignment(options.alignment);
  if (options.alignment != 0 && options.alignment < 8)
    throw Error(ErrorCode::usage, "an alignment of {} is not one of GGUF: they are multiples of 8",
                options.alignment);
  if (options.max_shard_bytes != 0)
    throw Error(ErrorCode::usage, "the gguf exporter writes one file: it has no shards");
  const std::uint64_t alignment = options.alignment == 0 ? gguf_alignment(graph) : options.alignment;

  LayoutFile file;
  file.path = out;
  file.slots = output_slots(graph, options);
  for (Slot& slot : file.slots) check_slot(slot);

  GgufMetadata metadata = gguf_metadata(graph, file.slots, alignment);
  append_bytes(file.header, "GGUF");
  append_u32(file.header, 3);
  append_u64(file.header, file.slots.size());
  append_u64(file.header, metadata.entries.size());
  const std::uint64_t start = file.header.size();
  for (HeaderCopy& copy : metadata.copies) copy.at += start;
  for (MetaEntry& entry : metadata.entries)
    if (auto* const array = std::get_if<MetaArray>(&entry.value)) array->offset += start;
  file.header.insert(file.header.end(), metadata.bytes.begin(), metadata.bytes.end());
  file.copies = std::move(metadata.copies);
  std::uint64_t at = 0;
  for (Slot& slot : file.slots) {
    append_string(file.header, slot.name);
    append_u32(file.header, static_cast<std::uint32_t>(slot.shape.size()));
    for (auto dimension = slot.shape.rbegin(); dimension != slot.shape.rend(); ++dimension)
      append_u64(file.header, *dimension);
    append_u32(file.header, static_cast<std::uint32_t>(dtype_info(slot.dtype).ggml));
    append_u64(file.header, at);
    slot.offset = at;
    at += align_up(slot.bytes, alignment);
  }
  const std::uint64_t header = header_bytes(file);
  const std::uint64_t data = align_up(header, alignment);
  file.header.resize(file.header.size() + static_cast<std::size_t>(data - header));

  Layout layout;
  layout.result.format = "gguf";
  layout.result.metadata = std::move(metadata.entries);
  layout.result.notes = std::move(metadata.notes);
  for (Slot& slot : file.slots) {
    slot.offset += data;
    add_result(layout.result, FileId{0}, slot);
  }
  add_logical(graph, layout.result);
  file.bytes = data + at;
  layout.result.files.push_back({out, file.bytes});
  layout.files.push_back(std::move(file));
  return layout;
}

}  // namespace loadline
