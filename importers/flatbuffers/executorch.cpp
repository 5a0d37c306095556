// ExecuTorch: tensor files and programs.

#include "core/base/checked_arithmetic.h"
#include "core/base/error.h"
#include "core/base/text.h"
#include "core/graph/meta_graph.h"
#include "core/graph/name.h"
#include "core/io/source_file.h"
#include "importers/flatbuffers/flatbuffer.h"
#include "importers/formats.h"
#include "importers/importer.h"

#include <algorithm>
#include <bitset>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <map>
#include <numeric>
#include <span>

#include <flat_tensor_generated.h>
#include <fmt/format.h>
#include <program_generated.h>

namespace loadline::importers {

// --- Tensor layouts of ExecuTorch's two formats: shapes with an order of dimensions.

namespace {

// Dtype, shape and strides of a tensor in an ExecuTorch file.
struct ExecutorchLayout {
  graph::DType dtype = graph::DType::opaque;
  graph::Shape shape;
  graph::Strides strides;              // empty when contiguous
  std::optional<std::uint64_t> bytes;  // of all elements; nothing for an opaque dtype
};

constexpr std::size_t kMostRank = 16;  // kTensorDimensionLimit

// An empty `dim_order` means contiguous. Throws Error{malformed} for negative sizes, a dim_order that is not
// a permutation, a rank above 16, or a size that overflows.
ExecutorchLayout executorch_layout(const ErrorPlace& place, int scalar_type,
                                   std::span<const std::int32_t> sizes,
                                   std::span<const std::uint8_t> dim_order) {
  if (sizes.size() > kMostRank)
    throw Error(ErrorCode::malformed, place, "has rank {}, at most {}", sizes.size(), kMostRank);
  std::vector<std::uint64_t> shape;
  for (const std::int32_t size : sizes) {
    if (size < 0) throw Error(ErrorCode::malformed, place, "has a dimension of {}", size);
    shape.push_back(static_cast<std::uint64_t>(size));
  }
  ExecutorchLayout layout;
  layout.dtype = graph::dtype_from(&graph::DTypeInfo::executorch, scalar_type).value_or(graph::DType::opaque);
  layout.shape = shape;
  const auto count = graph::element_count(shape);
  if (!count)
    throw Error(ErrorCode::malformed, place, "the shape [{}] overflows 64 bits", fmt::join(shape, ","));
  if (layout.dtype != graph::DType::opaque) {
    layout.bytes = graph::byte_size(layout.dtype, *count);
    if (!layout.bytes)
      throw Error(ErrorCode::malformed, place, "[{}] overflows 64 bits", fmt::join(shape, ","));
  }
  if (dim_order.empty()) return layout;

  if (dim_order.size() != shape.size())
    throw Error(ErrorCode::malformed, place, "dim_order has {} entries for rank {}", dim_order.size(),
                shape.size());
  std::bitset<kMostRank> seen;
  bool in_order = true;
  std::vector<std::uint64_t> strides(shape.size(), 0);
  std::uint64_t stride = 1;
  for (std::size_t i = dim_order.size(); i-- > 0;) {
    const std::size_t dimension = dim_order[i];
    if (dimension >= shape.size() || seen[dimension])
      throw Error(ErrorCode::malformed, place, "dim_order [{}] is not an order of {} dimensions",
                  fmt::join(dim_order.begin(), dim_order.end(), ","), shape.size());
    seen[dimension] = true;
    in_order = in_order && dimension == i;
    strides[dimension] = stride;
    stride *= std::max<std::uint64_t>(shape[dimension], 1);  // no overflow where the element count fits
  }
  if (!in_order && *count > 0) layout.strides = strides;
  return layout;
}

}  // namespace

// --- ExecuTorch FlatTensor, .ptd (executorch 1.5: docs/source/ptd-file-format.md, flat_tensor_header.cpp).
//
//   [0, 4)    u32 root offset, counted from byte 0    [4, 8)   "FT01"
//   [8, 12)   "FH01"      [12, 16)  u32 bytes of this header, at least 40
//   [16, 48)  u64 flatbuffer offset, flatbuffer bytes, segment base, bytes of all segments
//   ...       the flatbuffer (flat_tensor.fbs), then the segments

namespace {

constexpr std::uint32_t kLeastPtdHeader = 40;
constexpr std::uint64_t kHeaderAt = 8;

struct PtdHeader {
  std::uint64_t flatbuffer_end = 0;
  std::uint64_t segment_base = 0;
  std::uint64_t segment_bytes = 0;
};

PtdHeader read_ptd_header(const io::SourceFile& file) {
  io::Cursor in(file, kHeaderAt, file.size());
  if (in.read_text(4, 4, "the header") != "FH01") throw in.malformed(kHeaderAt, "has no 'FH01' header");
  if (const auto bytes = in.read<std::uint32_t>("the header's size"); bytes < kLeastPtdHeader)
    throw in.malformed(12, "the header has {} bytes, at least {} are needed", bytes, kLeastPtdHeader);
  const auto offset = in.read<std::uint64_t>("an offset");
  const auto size = in.read<std::uint64_t>("a size");
  PtdHeader header;
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

class PtdReader : GraphReader {
 public:
  explicit PtdReader(const io::SourceFile& file)
      : GraphReader(file, "ptd"),
        header_(read_ptd_header(file)),
        image_(file, header_.flatbuffer_end, {}),
        root_(flat_root<flatbuffers::Verifier>(image_, ptd::GetFlatTensor, "FT01", file.path())) {
    if (root_.segments() == nullptr) throw malformed("has no list of segments");
    if (root_.named_data() == nullptr) throw malformed("has no list of names");
  }

  graph::MetaGraph read() {
    graph_.metadata.push_back({"version", std::uint32_t{root_.version()}});
    for (std::uint32_t i = 0; i < root_.segments()->size(); ++i) add_segment(i);
    used_.resize(graph_.storages.size());
    for (const ptd::NamedData* entry : *root_.named_data()) add_tensor(*entry);
    for (std::size_t i = 0; i < used_.size(); ++i)
      if (!used_[i]) graph_.note(graph::Severity::warning, {}, "segment {} has no name", i);
    note_overlaps();
    return std::move(graph_);
  }

 private:
  void add_segment(std::uint32_t number) {
    const ptd::Segment& segment = *root_.segments()->Get(number);
    if (!range_fits(segment.offset(), segment.size(), header_.segment_bytes))
      throw malformed("segment {} has {} bytes at {}, all segments together {}", number, segment.size(),
                      segment.offset(), header_.segment_bytes);
    graph_.add_storage(
        graph::plain_storage(graph::FileId{0}, header_.segment_base + segment.offset(), segment.size()));
  }

  void add_tensor(const ptd::NamedData& entry) {
    const std::string name = flat_text(entry.key());
    const std::uint32_t segment = entry.segment_index();
    if (segment >= graph_.storages.size())
      throw at_tensor(name, "lies in segment {}, there are {}", segment, graph_.storages.size());
    used_[segment] = true;
    graph::Tensor tensor;
    tensor.name = name;
    tensor.storage = graph::StorageId{segment};
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
      graph_.note(graph::Severity::warning, name, "unknown scalar type {}: shown as bytes", scalar_type);
    else if (*layout.bytes > held)
      throw at_tensor(name, "needs {} bytes for [{}] {}, its segment has {}", *layout.bytes,
                      fmt::join(layout.shape, ","), graph::dtype_info(layout.dtype).name, held);
    else if (*layout.bytes < held)
      graph_.note(graph::Severity::warning, name, "takes {} of its segment's {} bytes", *layout.bytes, held);
  }

  void note_overlaps() {
    std::vector<std::size_t> order(graph_.storages.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    const auto& storages = graph_.storages;
    std::ranges::sort(order,
                      [&](std::size_t a, std::size_t b) { return storages[a].offset < storages[b].offset; });
    for (std::size_t i = 1; i < order.size(); ++i) {
      const graph::Storage &before = storages[order[i - 1]], &after = storages[order[i]];
      if (after.bytes > 0 && before.offset + before.bytes > after.offset)
        graph_.note(graph::Severity::warning, {}, "segments {} and {} overlap", order[i - 1], order[i]);
    }
  }

  PtdHeader header_;
  FlatImage image_;
  const ptd::FlatTensor& root_;
  std::vector<bool> used_;  // segments that have a name
};

}  // namespace

Match sniff_ptd(std::string_view head, std::string_view) {
  return head.size() >= 12 && head.substr(4).starts_with("FT01") ? Match::yes : Match::no;
}

graph::MetaGraph read_ptd_file(const io::SourceFile& file) { return PtdReader(file).read(); }

graph::MetaGraph read_ptd(const Source& source) { return read_ptd_file(*source.file); }

// --- ExecuTorch program, .pte (executorch 1.5: docs/source/pte-file-format.md, extended_header.cpp).
//
//   [0, 4)   u32 root offset                [4, 8)   "ET12"
//   [8, 12)  "eh00", if there are segments  [12, 16) u32 bytes of the header, at least 24
//   [16, 40) u64 bytes of the flatbuffer, segment base, bytes of all segments (header of 32 bytes and more)
//   ...      the flatbuffer (program.fbs), then the segments
//
// Without "eh00" the whole file is the flatbuffer, and constants lie inside it.

namespace {

constexpr std::uint32_t kLeastPteHeader = 24;
constexpr std::uint32_t kHeaderWithSize = 32;
// Fields of the root table, counted from 0.
constexpr unsigned kConstantBuffer = 2;
constexpr unsigned kDelegateData = 3;

struct PteHeader {
  std::uint64_t program_bytes = 0;
  std::uint64_t segment_base = 0;
  std::uint64_t segment_bytes = 0;
};

PteHeader read_pte_header(const io::SourceFile& file) {
  PteHeader header = {file.size(), 0, 0};
  io::Cursor in(file, 8, file.size());
  if (in.remaining() < 4 || in.read_text(4, 4, "the header") != "eh00") return header;
  const auto bytes = in.read<std::uint32_t>("the header's size");
  if (bytes < kLeastPteHeader)
    throw in.malformed(12, "the header has {} bytes, at least {} are needed", bytes, kLeastPteHeader);
  header.program_bytes = in.read<std::uint64_t>("a size");
  header.segment_base = in.read<std::uint64_t>("an offset");
  if (header.program_bytes > file.size())
    throw in.malformed(16, "a program of {} bytes in a file of {}", header.program_bytes, file.size());
  if (header.segment_base == 0) return header;
  if (header.segment_base > file.size())
    throw in.malformed(24, "segments at {} in a file of {} bytes", header.segment_base, file.size());
  header.segment_bytes = file.size() - header.segment_base;  // older files do not give it
  if (bytes >= kHeaderWithSize) {
    const auto said = in.read<std::uint64_t>("a size");
    if (said > header.segment_bytes)
      throw in.malformed(32, "segments of {} bytes, {} follow byte {}", said, header.segment_bytes,
                         header.segment_base);
    header.segment_bytes = said;
  }
  return header;
}

std::vector<FlatBytes> inline_weights(const io::SourceFile& file, std::uint64_t size) {
  std::vector<FlatBytes> weights = flat_byte_vectors(file, size, kConstantBuffer, 0);
  const std::vector<FlatBytes> delegates = flat_byte_vectors(file, size, kDelegateData, 0);
  weights.insert(weights.end(), delegates.begin(), delegates.end());
  return weights;
}

// Reads an 8-byte element at any alignment: the verifier of flatbuffers 2.0 does not check the alignment.
std::uint64_t number_at(const flatbuffers::Vector<std::uint64_t>& vector, std::uint32_t at) {
  std::uint64_t number = 0;
  std::memcpy(&number, vector.Data() + at * sizeof number, sizeof number);
  return number;
}

class PteReader : GraphReader {
 public:
  explicit PteReader(const Source& source)
      : GraphReader(*source.file, "pte"),
        source_(source),
        header_(read_pte_header(file_)),
        image_(file_, header_.program_bytes, inline_weights(file_, header_.program_bytes)),
        program_(flat_root<flatbuffers::Verifier>(image_, pte::GetProgram, "ET12", file_.path())) {
    if (flat_count(program_.constant_buffer()) > 0 && program_.constant_segment() != nullptr &&
        flat_count(program_.constant_segment()->offsets()) > 0)
      throw malformed("has constants both inside the flatbuffer and in a segment");
    used_.resize(flat_count(program_.segments()));
  }

  graph::MetaGraph read() {
    graph_.metadata.push_back({"version", std::uint32_t{program_.version()}});
    for (std::uint32_t i = 0; i < flat_count(program_.execution_plan()); ++i) {
      const pte::ExecutionPlan& plan = *program_.execution_plan()->Get(i);
      graph_.metadata.push_back({fmt::format("execution_plan.{}", i), flat_text(plan.name())});
      add_planned(plan, i);
      for (std::uint32_t k = 0; k < flat_count(plan.values()); ++k)
        if (const pte::Tensor* tensor = plan.values()->Get(k)->val_as_Tensor()) add_value(*tensor);
      for (std::uint32_t k = 0; k < flat_count(plan.delegates()); ++k) add_delegate(plan, k);
    }
    for (std::uint32_t i = 0; i < flat_count(program_.named_data()); ++i) {
      const pte::NamedData& entry = *program_.named_data()->Get(i);
      add(flat_text(entry.key()), {}, segment(entry.segment_index(), flat_text(entry.key())));
    }
    for (std::size_t i = 0; i < used_.size(); ++i)
      if (!used_[i] && program_.segments()->Get(static_cast<std::uint32_t>(i))->size() > 0)
        graph_.note(graph::Severity::info, {}, "segment {} holds nothing with a name", i);
    find_external();
    return std::move(graph_);
  }

 private:
  // The storage for a range of the file. Tensors with the same range share one storage.
  graph::StorageId storage_at(std::uint64_t offset, std::uint64_t bytes) {
    const auto [at, fresh] = storages_.try_emplace({offset, bytes});
    if (fresh) at->second = graph_.add_storage(graph::plain_storage(graph::FileId{0}, offset, bytes));
    return at->second;
  }

  const pte::Segment& find_segment(std::uint32_t number, const std::string& name) {
    if (number >= used_.size())
      throw at_tensor(name, "lies in segment {}, there are {}", number, used_.size());
    used_[number] = true;
    const pte::Segment& found = *program_.segments()->Get(number);
    if (!range_fits(found.offset(), found.size(), header_.segment_bytes))
      throw malformed("segment {} has {} bytes at {}, all segments together {}", number, found.size(),
                      found.offset(), header_.segment_bytes);
    return found;
  }

  graph::StorageId segment(std::uint32_t number, const std::string& name) {
    const pte::Segment& found = find_segment(number, name);
    return storage_at(header_.segment_base + found.offset(), found.size());
  }

  // `bytes` bytes at offsets[index] of a segment.
  graph::StorageId in_segment(const pte::SubsegmentOffsets& offsets, std::uint32_t index, std::uint64_t bytes,
                              const std::string& name) {
    if (index >= flat_count(offsets.offsets()))
      throw at_tensor(name, "is constant {}, there are {}", index, flat_count(offsets.offsets()));
    const pte::Segment& found = find_segment(offsets.segment_index(), name);
    const std::uint64_t offset = number_at(*offsets.offsets(), index);
    if (!range_fits(offset, bytes, found.size()))
      throw at_tensor(name, "needs {} bytes at {} of segment {}, which has {}", bytes, offset,
                      offsets.segment_index(), found.size());
    return storage_at(header_.segment_base + found.offset() + offset, bytes);
  }

  graph::StorageId in_buffer(std::uint32_t index, std::uint64_t bytes, const std::string& name) {
    const auto* const buffers = program_.constant_buffer();
    if (index >= flat_count(buffers))
      throw at_tensor(name, "is constant {}, there are {}", index, flat_count(buffers));
    const auto* const held = buffers->Get(index)->storage();
    if (bytes > flat_count(held))
      throw at_tensor(name, "needs {} bytes, constant {} has {}", bytes, index, flat_count(held));
    return storage_at(held == nullptr ? 0 : image_.offset_of(held->Data()), bytes);
  }

  void add_value(const pte::Tensor& tensor) {
    const pte::ExtraTensorInfo* const extra = tensor.extra_tensor_info();
    const bool external = extra != nullptr && extra->location() == 1;
    const std::uint32_t index = tensor.data_buffer_idx();
    if (index == 0 && !external) return;
    std::string name = extra == nullptr ? "" : flat_text(extra->fully_qualified_name());
    if (external) {
      if (name.empty()) throw malformed("an external tensor has no name");
      external_.insert(std::move(name));
      return;
    }
    const bool is_mutable = tensor.allocation_info() != nullptr;
    if (name.empty()) name = fmt::format("{}.{}", is_mutable ? "mutable" : "constant", index);
    if (tensor.storage_offset() != 0)
      throw at_tensor(name, "has a storage offset of {}", tensor.storage_offset());
    ExecutorchLayout layout = executorch_layout({.file = file_.path(), .tensor = name}, tensor.scalar_type(),
                                                flat_span(tensor.sizes()), flat_span(tensor.dim_order()));
    if (!layout.bytes)
      graph_.note(graph::Severity::warning, name, "unknown scalar type {}: its size is not known",
                  tensor.scalar_type());
    const graph::StorageId storage = find_data(is_mutable, extra, index, layout.bytes.value_or(0), name);
    add(name, std::move(layout), storage);
  }

  graph::StorageId find_data(bool is_mutable, const pte::ExtraTensorInfo* extra, std::uint32_t index,
                             std::uint64_t bytes, const std::string& name) {
    if (is_mutable && flat_count(program_.mutable_data_segments()) > 0) {
      const std::uint64_t set = extra == nullptr ? 0 : extra->mutable_data_segments_idx();
      if (set >= program_.mutable_data_segments()->size())
        throw at_tensor(name, "lies in mutable segment {}, there are {}", set,
                        program_.mutable_data_segments()->size());
      return in_segment(*program_.mutable_data_segments()->Get(static_cast<std::uint32_t>(set)), index, bytes,
                        name);
    }
    const pte::SubsegmentOffsets* const constants = program_.constant_segment();
    if (constants != nullptr && flat_count(constants->offsets()) > 0)
      return in_segment(*constants, index, bytes, name);
    return in_buffer(index, bytes, name);
  }

  // The arenas that the plan's values lie in, as the compiler sized them. The first entry is none.
  void add_planned(const pte::ExecutionPlan& plan, std::uint32_t number) {
    std::uint64_t planned = 0;
    for (std::uint32_t i = 1; i < flat_count(plan.non_const_buffer_sizes()); ++i) {
      const std::int64_t bytes = plan.non_const_buffer_sizes()->Get(i);
      const auto sum = bytes < 0 ? std::nullopt : checked_add(planned, static_cast<std::uint64_t>(bytes));
      if (!sum) throw malformed("execution plan {}: arena {} has {} bytes", number, i, bytes);
      planned = *sum;
    }
    if (planned > 0) graph_.metadata.push_back({fmt::format("execution_plan.{}.planned", number), planned});
  }

  void add_delegate(const pte::ExecutionPlan& plan, std::uint32_t number) {
    const pte::Delegate& delegate = *plan.delegates()->Get(number);
    const pte::DelegateData* const data = delegate.processed();
    if (data == nullptr) return;
    const std::string name =
        fmt::format("{}.delegate.{}.{}", flat_text(plan.name()), number, flat_text(delegate.id()));
    if (data->location() == 1) return add(name, {}, segment(data->index(), name));
    const auto* const blobs = program_.backend_delegate_data();
    if (data->index() >= flat_count(blobs))
      throw at_tensor(name, "is delegate blob {}, there are {}", data->index(), flat_count(blobs));
    const auto* const held = blobs->Get(data->index())->data();
    add(name, {}, storage_at(held == nullptr ? 0 : image_.offset_of(held->Data()), flat_count(held)));
  }

  // Several values, and several plans, may use one constant: it is listed once.
  void add(const std::string& name, ExecutorchLayout layout, graph::StorageId storage) {
    const std::string same =
        fmt::format("{}\n{} {} {} {}", name, graph::index(storage), static_cast<int>(layout.dtype),
                    fmt::join(layout.shape, ","), fmt::join(layout.strides, ","));
    if (!listed_.insert(same).second) return;
    graph_.tensors.push_back(
        {names_.take(name), layout.dtype, std::move(layout.shape), std::move(layout.strides), storage, 0});
  }

  // Reads external weights from the .ptd of the program's name, or from the default name that ExecuTorch
  // writes.
  void find_external() {
    if (external_.empty()) return;
    const std::string own = std::filesystem::path(file_.path()).stem().string() + ".ptd";
    for (const std::string& name : {own, std::string("_default_external_constant.ptd")})
      if (const auto file = source_.open_sibling(name)) {
        take_external(read_ptd_file(*file));
        break;
      }
    if (external_.empty()) return;
    graph_.missing.assign(external_.begin(), external_.end());
    std::ranges::sort(graph_.missing);
    graph_.note(graph::Severity::error, {}, "{} tensor{} outside this file and not in '{}': {}",
                graph_.missing.size(), graph_.missing.size() == 1 ? " lies" : "s lie",
                safe_display(graph_.files.size() > 1 ? graph_.files[1].path : own),
                join_names(graph_.missing, 3));
  }

  void take_external(graph::MetaGraph data) {
    for (const graph::Tensor& tensor : data.tensors) external_.erase(tensor.name.str());
    graph_.files.push_back(data.files.front());
    append_weights(graph_, data, graph::FileId{1});
  }

  const Source& source_;
  PteHeader header_;
  FlatImage image_;
  const pte::Program& program_;
  std::map<std::pair<std::uint64_t, std::uint64_t>, graph::StorageId> storages_;  // by offset and bytes
  graph::TextSet listed_;  // tensors by all their properties
  UniqueNames names_;
  graph::TextSet external_;
  std::vector<bool> used_;  // segments
};

}  // namespace

Match sniff_pte(std::string_view head, std::string_view) {
  return head.size() >= 8 && head.substr(4).starts_with("ET12") ? Match::yes : Match::no;
}

graph::MetaGraph read_pte(const Source& source) { return PteReader(source).read(); }

}  // namespace loadline::importers
