// ExecuTorch FlatTensor, .ptd (executorch 1.5: docs/source/ptd-file-format.md, flat_tensor_header.cpp).
//
//   [0, 4)    u32 root offset, counted from byte 0    [4, 8)   "FT01"
//   [8, 12)   "FH01"      [12, 16)  u32 bytes of this header, at least 40
//   [16, 48)  u64 flatbuffer offset, flatbuffer bytes, segment base, bytes of all segments
//   ...       the flatbuffer (flat_tensor.fbs), then the segments
#include "core/base/checked_arithmetic.h"
#include "core/io/cursor.h"
#include "importers/file_graph.h"
#include "importers/flatbuffers/flat_values.h"
#include "importers/flatbuffers/flatbuffer.h"
#include "importers/flatbuffers/tensor.h"
#include "importers/formats.h"

#include <algorithm>
#include <numeric>

#include <flat_tensor_generated.h>
#include <fmt/format.h>

namespace loadline {
namespace {

constexpr std::uint32_t kLeastHeader = 40;
constexpr std::uint64_t kHeaderAt = 8;

struct Header {
  std::uint64_t flatbuffer_end = 0;
  std::uint64_t segment_base = 0;
  std::uint64_t segment_bytes = 0;
};

Header read_header(const SourceFile& file) {
  Cursor in(file, kHeaderAt, file.size());
  if (in.read_text(4, 4, "the header") != "FH01") throw in.malformed(kHeaderAt, "has no 'FH01' header");
  if (const auto bytes = in.read<std::uint32_t>("the header's size"); bytes < kLeastHeader)
    throw in.malformed(12, "the header has {} bytes, at least {} are needed", bytes, kLeastHeader);
  const auto offset = in.read<std::uint64_t>("an offset");
  const auto size = in.read<std::uint64_t>("a size");
  Header header;
  header.segment_base = in.read<std::uint64_t>("an offset");
  header.segment_bytes = in.read<std::uint64_t>("a size");
  const auto end = checked_add(offset, size);
  if (!end || *end > file.size())
    throw in.malformed(16, "a flatbuffer of {} bytes at {} in a file of {}", size, offset, file.size());
  if (!range_fits(header.segment_base, header.segment_bytes, file.size()))
    throw in.malformed(32, "segments of {} bytes at {} in a file of {}", header.segment_bytes,
                       header.segment_base, file.size());
  header.flatbuffer_end = *end;
  return header;
}

class Reader : GraphReader {
 public:
  explicit Reader(const SourceFile& file)
      : GraphReader(file, "ptd"),
        header_(read_header(file)),
        image_(file, header_.flatbuffer_end, {}),
        root_(flat_root<flatbuffers::Verifier>(image_, ptd::GetFlatTensor, "FT01", file.path())) {
    if (root_.segments() == nullptr || root_.named_data() == nullptr)
      throw malformed("has no list of segments or of names");
  }

  MetaGraph read() {
    graph_.metadata.push_back({"version", std::uint32_t{root_.version()}});
    for (std::uint32_t i = 0; i < root_.segments()->size(); ++i) add_segment(i);
    used_.resize(graph_.storages.size());
    for (const ptd::NamedData* entry : *root_.named_data()) add_tensor(*entry);
    for (std::size_t i = 0; i < used_.size(); ++i)
      if (!used_[i]) graph_.note(Severity::warning, {}, "segment {} has no name", i);
    note_overlaps();
    return std::move(graph_);
  }

 private:
  void add_segment(std::uint32_t number) {
    const ptd::Segment& segment = *root_.segments()->Get(number);
    if (!range_fits(segment.offset(), segment.size(), header_.segment_bytes))
      throw malformed("segment {} has {} bytes at {}, all segments together {}", number, segment.size(),
                      segment.offset(), header_.segment_bytes);
    graph_.add_storage(plain_storage(FileId{0}, header_.segment_base + segment.offset(), segment.size()));
  }

  void add_tensor(const ptd::NamedData& entry) {
    const std::string name = flat_text(entry.key());
    const std::uint32_t segment = entry.segment_index();
    if (segment >= graph_.storages.size())
      throw at_tensor(name, "lies in segment {}, there are {}", segment, graph_.storages.size());
    used_[segment] = true;
    Tensor tensor;
    tensor.name = name;
    tensor.storage = StorageId{segment};
    if (const ptd::TensorLayout* layout = entry.tensor_layout()) {
      ExecutorchLayout found =
          executorch_layout({.file = file_.path(), .tensor = name}, layout->scalar_type(),
                            flat_span(layout->sizes()), flat_span(layout->dim_order()));
      check_bytes(name, found, layout->scalar_type(), graph_.storages[segment].bytes);
      tensor.dtype = found.dtype;
      tensor.shape = std::move(found.shape);
      tensor.strides = std::move(found.strides);
    }
    graph_.tensors.push_back(std::move(tensor));
  }

  void check_bytes(const std::string& name, const ExecutorchLayout& layout, int scalar_type,
                   std::uint64_t held) {
    if (!layout.bytes)
      graph_.note(Severity::warning, name, "unknown scalar type {}: shown as bytes", scalar_type);
    else if (*layout.bytes > held)
      throw at_tensor(name, "needs {} bytes for [{}] {}, its segment has {}", *layout.bytes,
                      fmt::join(layout.shape, ","), dtype_info(layout.dtype).name, held);
    else if (*layout.bytes < held)
      graph_.note(Severity::warning, name, "takes {} of its segment's {} bytes", *layout.bytes, held);
  }

  void note_overlaps() {
    std::vector<std::size_t> order(graph_.storages.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    const auto& storages = graph_.storages;
    std::ranges::sort(order,
                      [&](std::size_t a, std::size_t b) { return storages[a].offset < storages[b].offset; });
    for (std::size_t i = 1; i < order.size(); ++i) {
      const Storage &before = storages[order[i - 1]], &after = storages[order[i]];
      if (after.bytes > 0 && before.offset + before.bytes > after.offset)
        graph_.note(Severity::warning, {}, "segments {} and {} overlap", order[i - 1], order[i]);
    }
  }

  Header header_;
  FlatImage image_;
  const ptd::FlatTensor& root_;
  std::vector<bool> used_;  // segments that have a name
};

}  // namespace

Match sniff_ptd(std::string_view head, std::string_view) {
  return head.size() >= 12 && head.substr(4).starts_with("FT01") ? Match::yes : Match::no;
}

MetaGraph read_ptd_file(const SourceFile& file) { return Reader(file).read(); }

MetaGraph read_ptd(const Source& source) { return read_ptd_file(*source.file); }

}  // namespace loadline
