// ExecuTorch FlatTensor, .ptd (executorch 1.5: extension/flat_tensor/serialize/serialize.py).
//
//   [0, 4)    u32 root offset, counted from byte 0    [4, 8)   "FT01"
//   [8, 12)   "FH01"      [12, 16)  u32 40, the bytes of this header without its padding
//   [16, 48)  u64 48, flatbuffer bytes, segment base, bytes of all segments
//   [48, 56)  padding     then the flatbuffer (flat_tensor.fbs) from its byte 8 on
//   segments, each aligned, from the segment base on
#include "core/base/checked_arithmetic.h"
#include "core/base/error.h"
#include "core/base/text.h"
#include "exporters/exporter.h"
#include "exporters/formats/formats.h"

#include <algorithm>
#include <cstring>

#include <flat_tensor_generated.h>

namespace loadline::exporters {
namespace {

constexpr std::uint64_t kDefaultAlignment = 128;
constexpr std::size_t kMostRank = 16;
constexpr std::uint64_t kFront = 8;  // of the flatbuffer, before the header
constexpr std::uint32_t kHeader = 40, kPaddedHeader = 48;
// Flatbuffers hold less than 2 GiB. A tensor takes its name, its sizes and some tables of fixed size.
constexpr std::uint64_t kMostTables = 1 << 30, kTables = 128;

void check_slot(const Slot& slot) {
  const ErrorPlace place{.tensor = slot.name};
  if (!ptd_supports(slot.dtype)) refuse_dtype(slot, "ExecuTorch", graph::DType::f32);
  check_rank(slot, kMostRank, "ExecuTorch");
  for (const std::uint64_t side : slot.shape)
    if (side > INT32_MAX)
      throw Error(ErrorCode::unsupported, place, "has a dimension of {}, ExecuTorch's are at most {}", side,
                  INT32_MAX);
}

// Offsets of slots count from the first segment.
std::vector<std::byte> tables(const std::vector<Slot>& slots,
                              const std::vector<std::vector<graph::Name>>& names) {
  std::uint64_t estimate = 0;
  for (const auto& own : names)
    for (const graph::Name& name : own) estimate += name.size() + 5 * kMostRank + kTables;
  if (estimate > kMostTables)
    throw Error(ErrorCode::limit, "names and shapes of about {} bytes, the limit is {}", estimate,
                kMostTables);
  flatbuffers::FlatBufferBuilder builder;
  std::vector<flatbuffers::Offset<ptd::Segment>> segments;
  std::vector<flatbuffers::Offset<ptd::NamedData>> named;
  for (std::size_t i = 0; i < slots.size(); ++i) {
    const Slot& slot = slots[i];
    segments.push_back(ptd::CreateSegment(builder, slot.offset, slot.bytes));
    for (const graph::Name& name : names[i]) {
      flatbuffers::Offset<ptd::TensorLayout> layout;
      if (slot.dtype != graph::DType::opaque) {
        std::vector<std::int32_t> sizes;
        std::vector<std::uint8_t> order;
        for (const std::uint64_t side : slot.shape) {
          order.push_back(static_cast<std::uint8_t>(sizes.size()));
          sizes.push_back(static_cast<std::int32_t>(side));
        }
        const auto type = static_cast<std::int8_t>(graph::dtype_info(slot.dtype).executorch);
        layout = ptd::CreateTensorLayoutDirect(builder, type, &sizes, &order);
      }
      named.push_back(ptd::CreateNamedData(builder, builder.CreateString(std::string(name.view())),
                                           static_cast<std::uint32_t>(i), layout));
    }
  }
  builder.Finish(ptd::CreateFlatTensorDirect(builder, 0, &segments, &named), "FT01");
  const auto bytes = std::as_bytes(std::span(builder.GetBufferPointer(), builder.GetSize()));
  return {bytes.begin(), bytes.end()};
}

// Puts the header behind the flatbuffer's identifier; its root moves by that.
std::vector<std::byte> with_header(std::vector<std::byte> tables, std::uint64_t base,
                                   std::uint64_t segments) {
  std::uint32_t root = 0;
  std::memcpy(&root, tables.data(), sizeof root);
  root += kPaddedHeader;
  std::vector<std::byte> bytes;
  append_u32(bytes, root);
  bytes.insert(bytes.end(), tables.begin() + 4, tables.begin() + kFront);
  append_bytes(bytes, "FH01");
  append_u32(bytes, kHeader);
  for (const std::uint64_t value :
       {std::uint64_t{kPaddedHeader}, std::uint64_t{tables.size()}, base, segments})
    append_u64(bytes, value);
  bytes.resize(kFront + kPaddedHeader);
  bytes.insert(bytes.end(), tables.begin() + kFront, tables.end());
  return bytes;
}

}  // namespace

bool ptd_supports(graph::DType dtype) {
  return dtype == graph::DType::opaque || graph::dtype_info(dtype).executorch >= 0;
}

bool ptd_carries(const graph::MetaGraph& graph, const graph::MetaEntry& entry) {
  return graph.format == "ptd" && entry.key == "version";
}

Layout ptd_layout(const graph::MetaGraph& graph, const ExportOptions& options, const std::string& out) {
  check_alignment(options.alignment);
  const std::uint64_t alignment = options.alignment == 0 ? kDefaultAlignment : options.alignment;
  LayoutFile file;
  file.path = out;
  file.slots = output_slots(graph, options);
  std::vector<graph::Note> notes = packing_notes(graph, file.slots, options);
  std::uint64_t end = 0;
  for (Slot& slot : file.slots) {
    check_slot(slot);
    if (slot.dtype == graph::DType::opaque) slot.shape = {};
    slot.offset = align_up(end, alignment);
    end = slot.offset + slot.bytes;
  }
  const std::vector<std::vector<graph::Name>> names = all_names(graph, file.slots);
  for (const auto& own : names) std::ranges::for_each(own, check_name);
  std::vector<std::byte> flat = tables(file.slots, names);
  const std::uint64_t base = align_up(kPaddedHeader + flat.size(), alignment);
  file.header = with_header(std::move(flat), base, end);
  file.bytes = base + end;

  Layout layout;
  layout.notes = std::move(notes);
  layout.result.format = "ptd";
  layout.result.metadata.push_back({"version", std::uint32_t{0}});
  layout.result.files.push_back({out, file.bytes});
  for (std::size_t i = 0; i < file.slots.size(); ++i) {
    Slot& slot = file.slots[i];
    slot.offset += base;
    add_result(layout.result, graph::FileId{0}, slot, names[i]);
  }
  add_logical(graph, layout.result);
  layout.files.push_back(std::move(file));
  return layout;
}

}  // namespace loadline::exporters
