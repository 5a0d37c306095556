// GGUF version 3, little-endian (ggml docs/gguf.md, src/gguf.cpp).
//
//   "GGUF" | u32 version | u64 tensors | u64 key-values
//   key-values  { string key; u32 type; value }            string = u64 length, bytes
//   tensors     { string name; u32 rank; u64 ne[rank]; u32 type; u64 offset }
//   zeros to the alignment | data: tensors in order, each padded to the alignment
//
// ne[0] is the fastest dimension: shapes are written in reverse, bytes are not transposed. A split set
// (llama.cpp tools/gguf-split) is several such files, whose keys split.* say which part each is.
#include "exporters/gguf/gguf.h"

#include "core/base/checked_arithmetic.h"
#include "core/base/error.h"
#include "core/base/text.h"
#include "exporters/exporter.h"
#include "exporters/formats/formats.h"

#include <algorithm>
#include <iterator>

#include <fmt/core.h>

namespace loadline::exporters {
namespace {

constexpr std::size_t kMostRank = 4;
constexpr std::size_t kMostName = 63;  // ggml keeps 64 bytes with the terminator
constexpr std::uint64_t kCounts = 4 + 4 + 8 + 8;
constexpr std::size_t kMostParts = 9'999;  // that importers open

void check_slot(Slot& slot) {
  const ErrorPlace place{.tensor = slot.name};
  if (!gguf_supports(slot.dtype)) refuse_dtype(slot, "GGUF", graph::DType::bf16);
  check_rank(slot, kMostRank, "GGUF");
  if (slot.name.size() > kMostName || slot.name.empty())
    throw Error(ErrorCode::unsupported, place, "its name has {} bytes, GGUF holds 1 to {}", slot.name.size(),
                kMostName);
  check_name(slot.name);
  for (const std::uint64_t dimension : slot.shape)
    if (dimension >> 63 != 0)
      throw Error(ErrorCode::unsupported, place, "has a dimension of {}, GGUF's are signed", dimension);
  if (slot.shape.empty()) slot.shape = {1};
  const std::uint32_t block = graph::dtype_info(slot.dtype).block_elements;
  if (slot.shape.back() % block != 0)
    throw Error(ErrorCode::unsupported, place, "has rows of {} elements, {} needs multiples of {}",
                slot.shape.back(), graph::dtype_info(slot.dtype).name, block);
}

std::uint64_t entry_bytes(const Slot& slot) {
  return 8 + slot.name.size() + 4 + 8 * slot.shape.size() + 4 + 8;
}

// Appends the next file of the layout.
void add_file(Layout& layout, const std::string& path, std::vector<Slot> slots, GgufMetadata metadata,
              std::uint64_t alignment) {
  const graph::FileId id{static_cast<std::uint32_t>(layout.files.size())};
  LayoutFile file;
  file.path = path;
  file.slots = std::move(slots);
  append_bytes(file.header, "GGUF");
  append_u32(file.header, 3);
  append_u64(file.header, file.slots.size());
  append_u64(file.header, metadata.keys);
  const std::uint64_t start = file.header.size();
  for (HeaderCopy& copy : metadata.copies) copy.at += start;
  for (graph::MetaEntry& entry : metadata.entries)
    if (auto* const array = std::get_if<graph::MetaArray>(&entry.value)) array->offset += start;
  file.header.insert(file.header.end(), metadata.bytes.begin(), metadata.bytes.end());
  file.copies = std::move(metadata.copies);
  std::uint64_t at = 0;
  for (Slot& slot : file.slots) {
    append_string(file.header, slot.name);
    append_u32(file.header, static_cast<std::uint32_t>(slot.shape.size()));
    for (auto dimension = slot.shape.rbegin(); dimension != slot.shape.rend(); ++dimension)
      append_u64(file.header, *dimension);
    append_u32(file.header, static_cast<std::uint32_t>(graph::dtype_info(slot.dtype).ggml));
    append_u64(file.header, at);
    slot.offset = at;
    at += align_up(slot.bytes, alignment);
  }
  const std::uint64_t header = header_bytes(file);
  const std::uint64_t data = align_up(header, alignment);
  file.header.resize(file.header.size() + static_cast<std::size_t>(data - header));
  for (Slot& slot : file.slots) {
    slot.offset += data;
    add_result(layout.result, id, slot);
  }
  file.bytes = data + at;
  layout.result.files.push_back({path, file.bytes});
  std::ranges::move(metadata.entries, std::back_inserter(layout.result.metadata));
  std::ranges::move(metadata.notes, std::back_inserter(layout.result.notes));
  layout.files.push_back(std::move(file));
}

Layout empty_layout() {
  Layout layout;
  layout.result.format = "gguf";
  return layout;
}

std::uint64_t encoded_bytes(const GgufMetadata& metadata) {
  std::uint64_t bytes = metadata.bytes.size();
  for (const HeaderCopy& copy : metadata.copies) bytes += copy.array.bytes;
  return bytes;
}

// How many tensors each part gets, in their order: as many as fit into a file of `most` bytes, at least one.
std::vector<std::size_t> part_sizes(const std::vector<Slot>& slots, std::uint64_t most, std::uint64_t first,
                                    std::uint64_t other, std::uint64_t alignment) {
  std::vector<std::size_t> sizes = {0};
  std::uint64_t header = kCounts + first, data = 0;
  for (const Slot& slot : slots) {
    header += entry_bytes(slot);
    data += align_up(slot.bytes, alignment);
    if (sizes.back() > 0 && align_up(header, alignment) + data > most) {
      sizes.push_back(0);
      header = kCounts + other + entry_bytes(slot);
      data = align_up(slot.bytes, alignment);
    }
    ++sizes.back();
  }
  return sizes;
}

// As llama.cpp's gguf-split names and numbers the parts. The first holds all metadata.
Layout split_layout(const graph::MetaGraph& graph, std::vector<Slot> slots, const GgufModelKeys& keys,
                    const ExportOptions& options, GgufShape shape, const std::string& out) {
  shape.part = GgufPart{0, 0, static_cast<std::int32_t>(slots.size())};
  GgufMetadata first = gguf_metadata(graph, slots, shape, keys);
  const std::vector<std::size_t> sizes =
      part_sizes(slots, options.max_shard_bytes, encoded_bytes(first),
                 encoded_bytes(gguf_part_metadata(*shape.part, shape.alignment)), shape.alignment);
  if (sizes.size() > kMostParts)
    throw Error(ErrorCode::limit, {.file = out}, "files of {} bytes would be {}, the limit is {}",
                options.max_shard_bytes, sizes.size(), kMostParts);
  shape.part->count = static_cast<std::uint16_t>(sizes.size());
  first = gguf_metadata(graph, slots, shape, keys);
  // readers take these keys for the set's, not for the model's
  std::erase_if(first.entries, [](const graph::MetaEntry& entry) { return entry.key.starts_with("split."); });

  const std::string prefix = out.ends_with(".gguf") ? out.substr(0, out.size() - 5) : out;
  Layout layout = empty_layout();
  auto next = std::make_move_iterator(slots.begin());
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    std::vector<Slot> part(next, next + static_cast<std::ptrdiff_t>(sizes[i]));
    next += static_cast<std::ptrdiff_t>(sizes[i]);
    shape.part->number = static_cast<std::uint16_t>(i);
    add_file(layout, fmt::format("{}-{:05}-of-{:05}.gguf", prefix, i + 1, sizes.size()), std::move(part),
             i == 0 ? std::move(first) : gguf_part_metadata(*shape.part, shape.alignment), shape.alignment);
  }
  return layout;
}

// Names of a Hugging Face model that were to become llama.cpp's, and cannot.
bool lacks_config(const graph::MetaGraph& graph, const ExportOptions& options) {
  return !options.keep_names.value_or(false) && graph.format != "gguf" && !graph.forward &&
         graph::find_text(graph, graph::kConfigKey) == nullptr;
}

}  // namespace

bool gguf_supports(graph::DType dtype) { return graph::dtype_info(dtype).ggml >= 0; }

Layout gguf_layout(const graph::MetaGraph& graph, const ExportOptions& options, const std::string& out) {
  check_alignment(options.alignment);
  if (options.alignment != 0 && options.alignment < 8)
    throw Error(ErrorCode::usage, "an alignment of {} is not one of GGUF: they are multiples of 8",
                options.alignment);
  const GgufShape shape = {.alignment = options.alignment == 0 ? gguf_alignment(graph) : options.alignment,
                           .slack = options.metadata_slack,
                           .part = {}};
  const bool maps = maps_names(graph, options);
  if (!maps) check_ignored({}, options);  // nothing is compared: none can match
  GgufModel model =
      maps ? gguf_model(graph, options) : GgufModel{.drafts = slot_drafts(graph, options, true)};
  TypedSlots typed = typed_slots(graph, std::move(model.drafts), model.keys.model, options);
  model.keys.types = std::move(typed.keys);
  if (lacks_config(graph, options))
    typed.notes.push_back(graph::make_note(
        graph::Severity::info, {},
        "there is no config.json beside the weights: tensors keep the model's own names, and "
        "llama.cpp cannot run the file"));
  std::vector<Slot> slots = std::move(typed.slots);
  for (Slot& slot : slots) check_slot(slot);
  Layout layout = empty_layout();
  add_file(layout, out, slots, gguf_metadata(graph, slots, shape, model.keys), shape.alignment);
  if (options.max_shard_bytes != 0 && slots.size() > 1 && layout.files[0].bytes > options.max_shard_bytes)
    layout = split_layout(graph, std::move(slots), model.keys, options, shape, out);
  add_logical(graph, layout.result);
  if (!model.dropped.empty())
    layout.left_out = {fmt::format("{} {} not written, llama.cpp has no use for {}: {}",
                                   counted(model.dropped.size(), "tensor"),
                                   model.dropped.size() == 1 ? "is" : "are",
                                   model.dropped.size() == 1 ? "it" : "them", join_names(model.dropped, 3))};
  layout.held_files = std::move(model.files_read);
  layout.notes = std::move(typed.notes);
  for (std::string& note : model.notes)
    layout.notes.push_back({graph::Severity::info, {}, "llama.cpp: " + std::move(note)});
  return layout;
}

}  // namespace loadline::exporters
