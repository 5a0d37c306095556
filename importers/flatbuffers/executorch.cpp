// ExecuTorch program, .pte (executorch 1.5: docs/source/pte-file-format.md, extended_header.cpp).
//
//   [0, 4)   u32 root offset                [4, 8)   "ET12"
//   [8, 12)  "eh00", if there are segments  [12, 16) u32 bytes of the header, at least 24
//   [16, 40) u64 bytes of the flatbuffer, segment base, bytes of all segments (header of 32 bytes and more)
//   ...      the flatbuffer (program.fbs), then the segments
//
// Without "eh00" the whole file is the flatbuffer, and constants lie inside it.
#include "core/base/checked_arithmetic.h"
#include "core/base/text.h"
#include "core/graph/text_hash.h"
#include "core/io/cursor.h"
#include "importers/file_graph.h"
#include "importers/flatbuffers/flat_values.h"
#include "importers/flatbuffers/flatbuffer.h"
#include "importers/flatbuffers/tensor.h"
#include "importers/formats.h"
#include "importers/unique_names.h"

#include <cstring>
#include <filesystem>
#include <map>

#include <fmt/format.h>
#include <program_generated.h>

namespace loadline {
namespace {

constexpr std::uint32_t kLeastHeader = 24;
constexpr std::uint32_t kHeaderWithSize = 32;
// Fields of the root table, counted from 0.
constexpr unsigned kConstantBuffer = 2;
constexpr unsigned kDelegateData = 3;

struct Header {
  std::uint64_t program_bytes = 0;
  std::uint64_t segment_base = 0;
  std::uint64_t segment_bytes = 0;
};

Header read_header(const SourceFile& file) {
  Header header = {file.size(), 0, 0};
  Cursor in(file, 8, file.size());
  if (in.remaining() < 4 || in.read_text(4, 4, "the header") != "eh00") return header;
  const auto bytes = in.read<std::uint32_t>("the header's size");
  if (bytes < kLeastHeader)
    throw in.malformed(12, "the header has {} bytes, at least {} are needed", bytes, kLeastHeader);
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

std::vector<FlatBytes> inline_weights(const SourceFile& file, std::uint64_t size) {
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

class Reader : GraphReader {
 public:
  explicit Reader(const Source& source)
      : GraphReader(*source.file, "pte"),
        source_(source),
        header_(read_header(file_)),
        image_(file_, header_.program_bytes, inline_weights(file_, header_.program_bytes)),
        program_(flat_root<flatbuffers::Verifier>(image_, pte::GetProgram, "ET12", file_.path())) {
    if (flat_count(program_.constant_buffer()) > 0 && program_.constant_segment() != nullptr &&
        flat_count(program_.constant_segment()->offsets()) > 0)
      throw malformed("has constants both inside the flatbuffer and in a segment");
    used_.resize(flat_count(program_.segments()));
  }

  MetaGraph read() {
    graph_.metadata.push_back({"version", std::uint32_t{program_.version()}});
    for (std::uint32_t i = 0; i < flat_count(program_.execution_plan()); ++i) {
      const pte::ExecutionPlan& plan = *program_.execution_plan()->Get(i);
      graph_.metadata.push_back({fmt::format("execution_plan.{}", i), flat_text(plan.name())});
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
        graph_.note(Severity::info, {}, "segment {} holds nothing with a name", i);
    find_external();
    return std::move(graph_);
  }

 private:
  // The storage for a range of the file. Tensors with the same range share one storage.
  StorageId storage_at(std::uint64_t offset, std::uint64_t bytes) {
    const auto [at, fresh] = storages_.try_emplace({offset, bytes});
    if (fresh) at->second = graph_.add_storage(plain_storage(FileId{0}, offset, bytes));
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

  StorageId segment(std::uint32_t number, const std::string& name) {
    const pte::Segment& found = find_segment(number, name);
    return storage_at(header_.segment_base + found.offset(), found.size());
  }

  // `bytes` bytes at offsets[index] of a segment.
  StorageId in_segment(const pte::SubsegmentOffsets& offsets, std::uint32_t index, std::uint64_t bytes,
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

  StorageId in_buffer(std::uint32_t index, std::uint64_t bytes, const std::string& name) {
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
      graph_.note(Severity::warning, name, "unknown scalar type {}: its size is not known",
                  tensor.scalar_type());
    const StorageId storage = find_data(is_mutable, extra, index, layout.bytes.value_or(0), name);
    add(name, std::move(layout), storage);
  }

  StorageId find_data(bool is_mutable, const pte::ExtraTensorInfo* extra, std::uint32_t index,
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
  void add(const std::string& name, ExecutorchLayout layout, StorageId storage) {
    const std::string same =
        fmt::format("{}\n{} {} {} {}", name, index(storage), static_cast<int>(layout.dtype),
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
    graph_.note(Severity::error, {}, "{} tensor{} outside this file and not in '{}': {}",
                graph_.missing.size(), graph_.missing.size() == 1 ? " lies" : "s lie",
                safe_display(graph_.files.size() > 1 ? graph_.files[1].path : own),
                join_names(graph_.missing, 3));
  }

  void take_external(MetaGraph data) {
    for (const Tensor& tensor : data.tensors) external_.erase(tensor.name.str());
    graph_.files.push_back(data.files.front());
    append_weights(graph_, data, FileId{1});
  }

  const Source& source_;
  Header header_;
  FlatImage image_;
  const pte::Program& program_;
  std::map<std::pair<std::uint64_t, std::uint64_t>, StorageId> storages_;  // by offset and bytes
  TextSet listed_;                                                         // tensors by all their properties
  UniqueNames names_;
  TextSet external_;
  std::vector<bool> used_;  // segments
};

}  // namespace

Match sniff_pte(std::string_view head, std::string_view) {
  return head.size() >= 8 && head.substr(4).starts_with("ET12") ? Match::yes : Match::no;
}

MetaGraph read_pte(const Source& source) { return Reader(source).read(); }

}  // namespace loadline
