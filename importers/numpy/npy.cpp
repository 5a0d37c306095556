// npy and npz (numpy 2.x: numpy/lib/_format_impl.py, _npyio_impl.py). An npz is a zip archive of .npy
// members, stored (savez) or deflated (savez_compressed).
#include "core/base/checked_arithmetic.h"
#include "core/base/error.h"
#include "core/base/text.h"
#include "core/graph/names/file_names.h"
#include "core/graph/validate.h"
#include "core/io/cursor.h"
#include "core/io/decoder.h"
#include "importers/file_graph.h"
#include "importers/formats.h"
#include "importers/numpy/npy_header.h"
#include "importers/wire/zip.h"

#include <filesystem>

#include <fmt/format.h>

namespace loadline {
namespace {

// Strides of an array whose first index varies fastest; empty if that equals C order.
std::vector<std::uint64_t> fortran_strides(const std::vector<std::uint64_t>& shape) {
  Tensor tensor;
  tensor.shape = shape;
  std::uint64_t stride = 1;
  for (const std::uint64_t dimension : shape) {
    tensor.strides.push_back(stride);
    stride *= dimension;  // the product of all was checked
  }
  return is_contiguous(tensor) ? std::vector<std::uint64_t>() : tensor.strides.vector();
}

// Adds arrays to a graph whose only file is `file`.
class Arrays : GraphReader {
 public:
  Arrays(const SourceFile& file, std::string_view format) : GraphReader(file, format) {}

  // `whole` is the range of the array, magic and header included.
  void add(const std::string& name, const Storage& whole) {
    const ErrorPlace place{.file = file_.path(), .byte = whole.offset, .tensor = name};
    const NpyHeader header = read_header(whole, place);
    const std::uint64_t held = whole.bytes - header.data;
    Tensor tensor;
    tensor.name = name;
    tensor.dtype = header.dtype;
    tensor.shape = header.shape;
    const std::uint64_t needed = needed_bytes(header, held, place);
    if (header.fortran_order && needed > 0) tensor.strides = fortran_strides(header.shape);
    if (header.dtype == DType::opaque)
      graph_.note(Severity::warning, name, "numpy type '{}': shown as bytes", safe_display(header.descr, 60));
    if (needed < held)
      graph_.note(Severity::warning, name, "{} bytes follow the array's {}: numpy does not read them",
                  held - needed, needed);
    Storage storage = whole;
    if (whole.encoding == Encoding::deflate) {
      tensor.offset = header.data;  // inside the stream
      if (header.swapped != 0) {
        tensor.dtype = DType::opaque;
        graph_.note(Severity::error, name, "big-endian numbers that are compressed: shown as bytes");
      }
    } else {
      storage = plain_storage(FileId{0}, whole.offset + header.data, needed);
      if (header.swapped != 0) {
        storage.encoding = Encoding::byte_swapped;
        storage.unit = header.swapped;
      }
    }
    tensor.storage = graph_.add_storage(storage);
    graph_.tensors.push_back(std::move(tensor));
  }

  MetaGraph& graph() { return graph_; }

 private:
  NpyHeader read_header(const Storage& whole, const ErrorPlace& place) const {
    const auto decoder = whole.encoding == Encoding::deflate ? make_decoder(file_, whole) : nullptr;
    std::uint64_t taken = 0;
    const auto take = [&](std::uint64_t bytes) {
      if (bytes > whole.bytes - taken)
        throw Error(ErrorCode::malformed, place, "the npy header needs {} bytes at {}, the array has {}",
                    bytes, taken, whole.bytes);
      taken += bytes;
      if (!decoder) return file_.text_at(whole.offset + taken - bytes, bytes);
      std::string text(static_cast<std::size_t>(bytes), '\0');
      decoder->read(std::as_writable_bytes(std::span(text)));
      return text;
    };
    return read_npy_header(take, place);
  }

  // The bytes that the shape needs, at most the bytes that are there.
  static std::uint64_t needed_bytes(const NpyHeader& header, std::uint64_t held, const ErrorPlace& place) {
    const auto count = element_count(header.shape);
    if (!count) throw Error(ErrorCode::malformed, place, "the npy header has a shape that overflows 64 bits");
    if (header.item_bytes == 0) return held;
    const auto needed = checked_mul(*count, header.item_bytes);
    if (!needed || *needed > held)
      throw Error(ErrorCode::malformed, place, "needs {} bytes for [{}] of '{}', {} follow the header",
                  needed ? fmt::format("{}", *needed) : "more than 2^64", fmt::join(header.shape, ","),
                  safe_display(header.descr, 60), held);
    return *needed;
  }
};

}  // namespace

Match sniff_npy(std::string_view head, std::string_view) {
  return head.starts_with(kNpyMagic) ? Match::yes : Match::no;
}

namespace {

MetaGraph read_array(const SourceFile& file) {
  Arrays arrays(file, "npy");
  const std::string name = std::filesystem::path(file.path()).filename().string();
  arrays.add(npy_tensor_name(name), plain_storage(FileId{0}, 0, file.size()));
  return std::move(arrays.graph());
}

}  // namespace

// Of a folder, every array is a tensor.
MetaGraph read_npy(const Source& source) {
  if (source.set.empty()) return read_array(*source.file);
  MetaGraph graph;
  graph.format = "npy";
  for (const std::string& name : source.set) {
    const auto file = source.open_sibling(name);
    if (!file) throw Error(ErrorCode::io, {.file = name}, "has gone since the folder was listed");
    MetaGraph array = read_array(*file);
    const FileId id{static_cast<std::uint32_t>(graph.files.size())};
    graph.files.push_back(std::move(array.files.front()));
    append_weights(graph, array, id);
  }
  return graph;
}

Match sniff_npz(std::string_view head, std::string_view path) {
  const auto name = first_zip_name(head);
  if (!name) return Match::no;
  if (name->ends_with(".npy")) return Match::yes;
  return path.ends_with(".npz") ? Match::maybe : Match::no;
}

MetaGraph read_npz(const Source& source) {
  const ZipArchive zip(*source.file, ZipCase::distinct);
  Arrays arrays(*source.file, "npz");
  constexpr std::string_view kExtension = ".npy";
  std::vector<std::string> others;
  for (const ZipMember& member : zip.members()) {
    if (member.name.ends_with(kExtension))
      arrays.add(std::string(member.name.substr(0, member.name.size() - kExtension.size())),
                 zip.storage(member, FileId{0}));
    else
      others.emplace_back(member.name);
  }
  if (!others.empty())
    arrays.graph().note(Severity::info, {}, "members that are no arrays: {}", join_names(others, 3));
  arrays.graph().notes.insert(arrays.graph().notes.end(), zip.notes().begin(), zip.notes().end());
  return std::move(arrays.graph());
}

}  // namespace loadline
