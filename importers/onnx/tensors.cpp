// Where the bytes of a TensorProto lie: raw data, typed fields, external files.

#include "core/base/checked_arithmetic.h"
#include "core/base/error.h"
#include "core/base/text.h"
#include "importers/onnx/onnx.h"

#include <algorithm>
#include <bit>
#include <tuple>

#include <fmt/format.h>

namespace loadline::importers {

// --- ONNX external data (docs/ExternalData.md, docs/ExternalDataSecurity.md, 1.23),
// TensorProto.external_data:
//
//   location   POSIX path relative to the folder of the model file
//   offset     decimal; 0 if absent
//   length     decimal; to the end of the file if absent, or 0 as some writers put it
//   checksum   SHA1 of the file; no reader verifies it
//   basepath   internal to the reference; has no meaning in a file
//
// The file must lie, links resolved, in the model's folder or in the Hugging Face cache to which the folder
// belongs (importers/containment). The reference also refuses files with several hard links. Here they are
// read: a link cannot be told from its original, caches that remove duplicates make hard links, and whoever
// can make a hard link in the folder could have copied the file there.

namespace {

constexpr std::size_t kMostUnknownKeys = 16;

struct Entries {
  std::optional<std::string> location, offset, length, checksum, basepath;
};

// Turns "./a//b" into "a/b". A ".." stays, so that open_sibling refuses it.
std::string without_dots(std::string_view path) {
  std::string clean;
  if (path.starts_with('/')) return std::string(path);
  while (!path.empty()) {
    const std::size_t slash = path.find('/');
    const std::string_view part = path.substr(0, slash);
    if (!part.empty() && part != ".") {
      if (!clean.empty()) clean += '/';
      clean += part;
    }
    path.remove_prefix(slash == std::string_view::npos ? path.size() : slash + 1);
  }
  return clean;
}

}  // namespace

std::string external_location(const OnnxTensor& tensor) {
  for (const auto& [key, value] : tensor.external)
    if (key == "location") return without_dots(value);
  return "";
}

ExternalFiles::Opened& ExternalFiles::open(const std::string& location, const OnnxTensor& tensor,
                                           const std::string& name) {
  const std::string clean = without_dots(location);
  const auto [found, fresh] = files_.try_emplace(clean);
  if (!fresh) return found->second;
  if (location.starts_with('#') || clean.empty())
    throw Error(ErrorCode::malformed, {.file = source_.file->path(), .byte = tensor.at, .tensor = name},
                "its data is said to lie in '{}', which is not a file name", safe_display(location, 200));
  if (const auto file = source_.open_sibling(clean)) {
    found->second.file = graph::FileId{static_cast<std::uint32_t>(graph_.files.size())};
    found->second.bytes = file->size();
    graph_.files.push_back({file->path(), file->size()});
  }
  return found->second;
}

ExternalRange ExternalFiles::find(const OnnxTensor& tensor, const std::string& name) {
  const ErrorPlace place{.file = source_.file->path(), .byte = tensor.at, .tensor = name};
  Entries entries;
  for (const auto& [key, value] : tensor.external) {
    std::optional<std::string>* slot = key == "location"   ? &entries.location
                                       : key == "offset"   ? &entries.offset
                                       : key == "length"   ? &entries.length
                                       : key == "checksum" ? &entries.checksum
                                       : key == "basepath" ? &entries.basepath
                                                           : nullptr;
    if (slot == nullptr) {
      if (unknown_keys_.size() < kMostUnknownKeys) unknown_keys_.insert(key);
      continue;
    }
    if (*slot) throw Error(ErrorCode::malformed, place, "its external data gives '{}' twice", key);
    *slot = value;
  }
  checksums_ += entries.checksum ? 1 : 0;
  if (!entries.location)
    throw Error(ErrorCode::malformed, place, "its data is external, but no location is given");
  const auto number = [&](const std::optional<std::string>& text, std::string_view key) {
    if (!text) return std::optional<std::uint64_t>();
    const auto value = text_as<std::uint64_t>(*text);
    if (!value)
      throw Error(ErrorCode::malformed, place, "external data: {} '{}' is not a whole number below 2^64", key,
                  safe_display(*text, 60));
    return value;
  };
  const std::uint64_t offset = number(entries.offset, "offset").value_or(0);
  const std::uint64_t length = number(entries.length, "length").value_or(0);
  const bool given = length > 0;

  Opened& opened = open(*entries.location, tensor, name);
  if (opened.file == graph::kNoFile) {
    opened.wanted_by.push_back(name);
    return {graph::kNoFile, offset, length, given};
  }
  if (offset > opened.bytes || !range_fits(offset, length, opened.bytes))
    throw Error(ErrorCode::malformed, place, "external data: {} bytes at {} of '{}', which has {}",
                given ? fmt::format("{}", length) : "the", offset, safe_display(*entries.location, 200),
                opened.bytes);
  return {opened.file, offset, given ? length : opened.bytes - offset, given};
}

void ExternalFiles::add_notes() {
  for (const auto& [location, opened] : files_) {
    if (opened.file != graph::kNoFile) continue;
    graph_.missing.insert(graph_.missing.end(), opened.wanted_by.begin(), opened.wanted_by.end());
    graph_.note(graph::Severity::error, {}, "'{}' is missing; it held {} tensor{}: {}",
                safe_display(location, 200), opened.wanted_by.size(), opened.wanted_by.size() == 1 ? "" : "s",
                join_names(opened.wanted_by, 3));
  }
  for (const std::string& key : unknown_keys_)
    graph_.note(graph::Severity::warning, {}, "unknown key '{}' in external data", safe_display(key, 60));
  if (checksums_ > 0)
    graph_.note(graph::Severity::info, {}, "{} tensor{} give{} a checksum of external data; none is verified",
                checksums_, checksums_ == 1 ? "" : "s", checksums_ == 1 ? "s" : "");
}

// --- ONNX TensorProto (onnx/onnx.in.proto 1.23): which field holds the values of which type.
//
//   raw_data      all but STRING, little-endian, C order; 4-bit low nibble first, 2-bit lowest bits first
//   float_data    FLOAT, COMPLEX64         fixed, 4 bytes each
//   double_data   DOUBLE, COMPLEX128       fixed, 8 bytes each
//   int64_data    INT64                    varints
//   uint64_data   UINT32, UINT64           varints
//   int32_data    all other numbers        varints: one per element, or, for 4 and 2 bits, one per byte
//   string_data   STRING                   one field per string

namespace {

constexpr std::uint32_t kFloatData = 4;
constexpr std::uint32_t kInt32Data = 5;
constexpr std::uint32_t kStringData = 6;
constexpr std::uint32_t kInt64Data = 7;
constexpr std::uint32_t kRawData = 9;
constexpr std::uint32_t kDoubleData = 10;
constexpr std::uint32_t kUint64Data = 11;
// By number.
constexpr std::string_view kFieldNames[] = {"",
                                            "",
                                            "",
                                            "",
                                            "float_data",
                                            "int32_data",
                                            "string_data",
                                            "int64_data",
                                            "",
                                            "raw_data",
                                            "double_data",
                                            "uint64_data"};

// Runs of varints up to this size in bytes are counted when the file is opened. Counting larger runs would
// read them whole; a missing number in them is found when their values are read.
constexpr std::uint64_t kMostCounted = 16 << 10;
constexpr std::uint64_t kLongestVarint = 10;

std::string field_names(std::uint32_t mask) {
  std::string names;
  for (std::size_t number = kFloatData; number < std::size(kFieldNames); ++number)
    if ((mask >> number & 1) != 0) names.append(names.empty() ? "" : " and ").append(kFieldNames[number]);
  return names;
}

// The typed field of a type, and how many bytes of the tensor each entry gives.
struct TypedField {
  graph::DType dtype;
  std::uint32_t number;
  std::uint8_t unit;
  bool fixed;
};
TypedField typed_field(graph::DType dtype) {
  constexpr TypedField kFields[] = {
      {graph::DType::f32, kFloatData, 4, true},   {graph::DType::c64, kFloatData, 4, true},
      {graph::DType::f64, kDoubleData, 8, true},  {graph::DType::c128, kDoubleData, 8, true},
      {graph::DType::i64, kInt64Data, 8, false},  {graph::DType::u64, kUint64Data, 8, false},
      {graph::DType::u32, kUint64Data, 4, false}, {graph::DType::string, kStringData, 1, false}};
  for (const TypedField& field : kFields)
    if (field.dtype == dtype) return field;
  return {dtype, kInt32Data, static_cast<std::uint8_t>(graph::dtype_info(dtype).block_bytes), false};
}

std::string shape_text(const OnnxTensor& tensor) { return fmt::format("[{}]", fmt::join(tensor.dims, ",")); }

// 6-bit types (IR version 14): four numbers in three bytes in raw_data, which ends after the last bit, and
// one number per entry in int32_data. Tensors here consist of whole groups.
bool is_loose_6_bit(const OnnxTensor& tensor, graph::DType dtype) {
  if (dtype != graph::DType::f6_e2m3 && dtype != graph::DType::f6_e3m2) return false;
  return graph::element_count(tensor.dims).value_or(0) % 4 != 0 ||
         (tensor.value_fields >> kInt32Data & 1) != 0;
}

// The number of entries of the field: exact, or bounds if counting would mean reading weights.
struct EntryCount {
  std::uint64_t least;
  std::uint64_t most;
};
EntryCount count_entries(const io::SourceFile& file, const OnnxNumbers& numbers, const TypedField& field) {
  if (field.fixed) {
    const std::uint64_t count = numbers.singles + numbers.packed_bytes / field.unit;
    return {count, count};
  }
  if (numbers.runs == 1 && numbers.packed_bytes <= kMostCounted) {
    std::vector<std::byte> run(static_cast<std::size_t>(numbers.run.bytes));
    file.read_at(numbers.run.offset, run);
    const auto ends =
        std::ranges::count_if(run, [](std::byte b) { return (b & std::byte{0x80}) == std::byte{0}; });
    const std::uint64_t count = numbers.singles + static_cast<std::uint64_t>(ends);
    return {count, count};
  }
  return {numbers.singles + numbers.packed_bytes / kLongestVarint, numbers.singles + numbers.packed_bytes};
}

}  // namespace

void OnnxTensorPlacer::place(OnnxTensorId id, const OnnxTensor& tensor, std::string name) {
  if (tensor.data_type == 0) throw malformed(tensor, name, "has no data_type");
  const auto known = graph::dtype_from(&graph::DTypeInfo::onnx, tensor.data_type);
  if (!known)
    graph_.note(graph::Severity::warning, name, "unknown data_type {}: shown as bytes", tensor.data_type);
  graph::DType dtype = known.value_or(graph::DType::opaque);
  if (is_loose_6_bit(tensor, dtype)) {
    graph_.note(graph::Severity::warning, name,
                "6-bit numbers that do not fill groups of four in raw_data: shown as bytes");
    dtype = graph::DType::opaque;
  }
  graph::Storage storage = storage_of(tensor, name, dtype);
  placed_.push_back({id, {std::move(name), dtype, tensor.dims, {}, graph::StorageId{0}, 0}, storage});
}

graph::Storage OnnxTensorPlacer::storage_of(const OnnxTensor& tensor, const std::string& name,
                                            graph::DType dtype) {
  const auto count = graph::element_count(tensor.dims);
  if (!count) throw malformed(tensor, name, "the shape {} overflows 64 bits", shape_text(tensor));
  const bool sized = graph::dtype_info(dtype).block_elements != 0;
  const auto bytes = sized ? graph::packed_byte_size(dtype, *count) : 0;
  if (!bytes)
    throw malformed(tensor, name, "{} {} overflows 64 bits", shape_text(tensor),
                    graph::dtype_info(dtype).name);
  if (tensor.segment)
    graph_.note(graph::Severity::error, name,
                "is one segment of a tensor; segmented tensors are not supported");
  if (std::popcount(tensor.value_fields) > 1)
    throw malformed(tensor, name, "has values in {}", field_names(tensor.value_fields));
  if (tensor.data_location != 0) return external_storage(tensor, name, dtype, *bytes);

  // raw_data that is there and empty holds no values: so TensorRT writes models without their weights
  const bool in_raw_data = (tensor.value_fields & 1U << kRawData) != 0;
  if (tensor.value_fields == 0) {
    if (*count == 0) return graph::plain_storage(graph::FileId{0}, tensor.at, 0);
    empty_.push_back(name);
    graph_.missing.push_back(name);
    return graph::shapes_only_storage(*bytes);
  }
  if (in_raw_data) return raw_storage(tensor, name, dtype, *bytes);
  if (tensor.numbers.spread)
    throw Error(ErrorCode::unsupported, {.file = source_.file->path(), .byte = tensor.at, .tensor = name},
                "its message comes in parts, with values in several of them");
  if (dtype == graph::DType::string) return string_storage(tensor, name, *count);
  return typed_storage(tensor, name, dtype, *bytes);
}

graph::Storage OnnxTensorPlacer::external_storage(const OnnxTensor& tensor, const std::string& name,
                                                  graph::DType dtype, std::uint64_t needed) {
  if (tensor.data_location != 1)
    throw malformed(tensor, name, "data_location {} is neither DEFAULT nor EXTERNAL", tensor.data_location);
  // as onnxruntime and the reference
  if (tensor.value_fields != 0)
    graph_.note(graph::Severity::warning, name, "its data is external: values in {} are ignored",
                field_names(tensor.value_fields));
  if (dtype == graph::DType::string) throw malformed(tensor, name, "strings cannot be external data");
  const ExternalRange range = external_.find(tensor, name);
  const bool sized = graph::dtype_info(dtype).block_elements != 0;
  if (range.file == graph::kNoFile) return graph::shapes_only_storage(sized ? needed : range.bytes);
  if (!sized) return graph::plain_storage(range.file, range.offset, range.bytes);
  if (range.bytes < needed)
    throw malformed(tensor, name, "needs {} bytes for {} {}, its external data has {}", needed,
                    shape_text(tensor), graph::dtype_info(dtype).name, range.bytes);
  if (range.bytes > needed && range.has_length)
    graph_.note(graph::Severity::warning, name,
                "needs {} bytes, its external data has {}: the rest is ignored", needed, range.bytes);
  return graph::plain_storage(range.file, range.offset, needed);
}

graph::Storage OnnxTensorPlacer::raw_storage(const OnnxTensor& tensor, const std::string& name,
                                             graph::DType dtype, std::uint64_t needed) {
  if (dtype == graph::DType::string) throw malformed(tensor, name, "strings cannot lie in raw_data");
  const OnnxRange raw = *tensor.raw;
  if (dtype == graph::DType::opaque) return graph::plain_storage(graph::FileId{0}, raw.offset, raw.bytes);
  if (raw.bytes < needed)
    throw malformed(tensor, name, "needs {} bytes for {} {}, raw_data has {}", needed, shape_text(tensor),
                    graph::dtype_info(dtype).name, raw.bytes);
  // the reference's checker accepts this too
  if (raw.bytes > needed)
    graph_.note(graph::Severity::warning, name, "needs {} bytes, raw_data has {}: the rest is ignored",
                needed, raw.bytes);
  return graph::plain_storage(graph::FileId{0}, raw.offset, needed);
}

graph::Storage OnnxTensorPlacer::string_storage(const OnnxTensor& tensor, const std::string& name,
                                                std::uint64_t count) const {
  const OnnxNumbers& strings = tensor.numbers;
  if ((tensor.value_fields >> kStringData & 1) == 0)
    throw malformed(tensor, name, "strings cannot lie in {}", field_names(tensor.value_fields));
  if (strings.singles != count)
    throw malformed(tensor, name, "needs {} strings for {}, string_data has {}", count, shape_text(tensor),
                    strings.singles);
  // as they lie in the file, with the keys and lengths between them
  return graph::plain_storage(graph::FileId{0}, strings.run.offset, strings.run.bytes);
}

graph::Storage OnnxTensorPlacer::typed_storage(const OnnxTensor& tensor, const std::string& name,
                                               graph::DType dtype, std::uint64_t needed) {
  const OnnxNumbers& numbers = tensor.numbers;
  if (dtype == graph::DType::opaque)
    return graph::plain_storage(graph::FileId{0}, numbers.message.offset, numbers.message.bytes);
  const TypedField field = typed_field(dtype);
  if ((tensor.value_fields >> field.number & 1) == 0)
    throw malformed(tensor, name, "{} values cannot lie in {}", graph::dtype_info(dtype).name,
                    field_names(tensor.value_fields));
  if (field.fixed && numbers.packed_bytes % field.unit != 0)
    throw malformed(tensor, name, "{} has {} bytes, not a multiple of {}", kFieldNames[field.number],
                    numbers.packed_bytes, field.unit);
  const std::uint64_t entries = needed / field.unit;
  const EntryCount held = count_entries(*source_.file, numbers, field);
  if (entries > held.most)
    throw malformed(tensor, name, "needs {} numbers for {} {}, {} has {}{}", entries, shape_text(tensor),
                    graph::dtype_info(dtype).name, kFieldNames[field.number],
                    held.least == held.most ? "" : "at most ", held.most);
  if (entries < held.least)
    graph_.note(graph::Severity::warning, name, "needs {} numbers, {} has {}{}: the rest is ignored", entries,
                kFieldNames[field.number], held.least == held.most ? "" : "at least ", held.least);
  if (needed == 0) return graph::plain_storage(graph::FileId{0}, tensor.at, 0);
  if (field.fixed && numbers.runs == 1 && numbers.singles == 0)
    return graph::plain_storage(graph::FileId{0}, numbers.run.offset, needed);
  return {.file = graph::FileId{0},
          .encoding = field.fixed ? graph::Encoding::protobuf_fixed : graph::Encoding::protobuf_varints,
          .unit = field.unit,
          .field = static_cast<std::uint8_t>(field.number),
          .offset = numbers.message.offset,
          .bytes = needed,
          .stored_bytes = numbers.message.bytes};
}

std::vector<std::optional<graph::TensorId>> OnnxTensorPlacer::finish(std::size_t count) {
  external_.add_notes();
  if (!empty_.empty())
    graph_.note(graph::Severity::error, {}, "{} tensor{} no values in the file: {}", empty_.size(),
                empty_.size() == 1 ? " has" : "s have", join_names(empty_, 3));
  const auto place = [](const graph::Storage& s) { return std::tuple(s.file, s.offset, s.bytes); };
  std::ranges::stable_sort(
      placed_, [&](const Placed& a, const Placed& b) { return place(a.storage) < place(b.storage); });
  std::vector<std::optional<graph::TensorId>> tensor_of(count);
  for (Placed& placed : placed_) {
    // the same range of a file is one storage: ties. Ranges that merely overlap stay apart.
    const bool shared = !graph_.storages.empty() && placed.storage.bytes > 0 &&
                        placed.storage.file != graph::kNoFile && graph_.storages.back() == placed.storage;
    if (!shared) graph_.storages.push_back(placed.storage);
    placed.tensor.storage = graph::StorageId{static_cast<std::uint32_t>(graph_.storages.size() - 1)};
    tensor_of[static_cast<std::size_t>(placed.id)] =
        graph::TensorId{static_cast<std::uint32_t>(graph_.tensors.size())};
    graph_.tensors.push_back(std::move(placed.tensor));
  }
  placed_.clear();
  return tensor_of;
}

}  // namespace loadline::importers
