// .npy and .npz: the header as a Python literal, arrays, folders of arrays.

#include "core/base/checked_arithmetic.h"
#include "core/base/error.h"
#include "core/base/text.h"
#include "core/graph/dtype_and_shape.h"
#include "core/graph/meta_graph.h"
#include "core/graph/names/file_names.h"
#include "core/io/graph_reader.h"
#include "core/io/source_file.h"
#include "importers/formats.h"
#include "importers/importer.h"
#include "importers/wire/zip.h"

#include <charconv>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

namespace loadline::importers {

// --- The header of a .npy array: a Python dict literal, parsed and never evaluated.

namespace {

struct NpyHeader {
  graph::DType dtype = graph::DType::opaque;
  std::string descr;             // "<f4"; "a record" for a list of fields
  std::uint64_t item_bytes = 0;  // of one element; 0 if the header does not say
  std::uint8_t swapped = 0;      // bytes of each big-endian number; 0 if nothing must be swapped
  std::vector<std::uint64_t> shape;
  bool fortran_order = false;
  std::uint64_t data = 0;  // offset of the first element, counted from the magic
};

inline constexpr std::uint64_t kMostNpyHeader = 1 << 20;

inline constexpr std::string_view kNpyMagic = "\x93NUMPY";

constexpr int kMostNesting = 32;
constexpr std::size_t kMostRank = 64;  // numpy's own limit

// Parses everything that a header can hold: strings, booleans and tuples of whole numbers; lists are skipped.
class Literals {
 public:
  Literals(std::string_view text, const ErrorPlace& place) : text_(text), place_(place) {}

  NpyHeader header() {
    NpyHeader header;
    bool has_descr = false, has_order = false, has_shape = false;
    const auto once = [&](bool& seen, std::string_view key) {
      if (std::exchange(seen, true)) throw malformed("'{}' occurs twice", key);
    };
    expect('{');
    while (!accept('}')) {
      const std::string key = string();
      expect(':');
      if (key == "descr") {
        once(has_descr, key);
        read_descr(header);
      } else if (key == "fortran_order") {
        once(has_order, key);
        header.fortran_order = boolean();
      } else if (key == "shape") {
        once(has_shape, key);
        header.shape = shape();
      } else {
        throw malformed("has an unknown key '{}'", safe_display(key, 60));
      }
      if (!accept(',')) {
        expect('}');
        break;
      }
    }
    skip_space();
    if (at_ != text_.size()) throw malformed("goes on after its dict");
    if (!has_descr || !has_order || !has_shape)
      throw malformed("has no '{}'", !has_descr ? "descr" : !has_order ? "fortran_order" : "shape");
    return header;
  }

 private:
  template <typename... Values>
  Error malformed(fmt::format_string<Values...> detail, const Values&... values) const {
    return Error(ErrorCode::malformed, place_, "the npy header {}",
                 fmt::vformat(detail, fmt::make_format_args(values...)));
  }

  void skip_space() {
    while (at_ < text_.size() && std::string_view(" \t\r\n").find(text_[at_]) != std::string_view::npos)
      ++at_;
  }
  char next() {
    skip_space();
    return at_ < text_.size() ? text_[at_] : '\0';
  }
  bool accept(char wanted) {
    if (next() != wanted) return false;
    ++at_;
    return true;
  }
  void expect(char wanted) {
    if (!accept(wanted)) throw malformed("lacks a '{}' at byte {}", wanted, at_);
  }

  std::string string() {
    const char quote = next();
    if (quote != '\'' && quote != '"') throw malformed("lacks a string at byte {}", at_);
    const std::size_t end = text_.find(quote, at_ + 1);
    if (end == std::string_view::npos) throw malformed("has a string without its end");
    const std::string_view held = text_.substr(at_ + 1, end - at_ - 1);
    if (held.find('\\') != std::string_view::npos) throw malformed("has an escape in a string");
    at_ = end + 1;
    return std::string(held);
  }

  bool boolean() {
    next();
    for (const std::string_view word : {"True", "False"})
      if (text_.substr(at_).starts_with(word)) {
        at_ += word.size();
        return word == "True";
      }
    throw malformed("has a fortran_order that is neither True nor False");
  }

  std::vector<std::uint64_t> shape() {
    std::vector<std::uint64_t> result;
    expect('(');
    while (!accept(')')) {
      next();
      std::uint64_t number = 0;
      const auto [end, failure] = std::from_chars(text_.data() + at_, text_.data() + text_.size(), number);
      if (failure != std::errc())
        throw malformed("has a shape that is not a tuple of whole numbers from 0 on");
      at_ = static_cast<std::size_t>(end - text_.data());
      accept('L');  // Python 2
      if (result.size() == kMostRank) throw malformed("has more than {} dimensions", kMostRank);
      result.push_back(number);
      if (!accept(',')) {
        expect(')');
        break;
      }
    }
    return result;
  }

  void read_descr(NpyHeader& header) {
    if (next() == '[') {
      skip_list();
      header.descr = "a record";
      return;
    }
    header.descr = string();
    settle_type(header);
  }

  // Skips a list of fields.
  void skip_list() {
    int depth = 0;
    do {
      const char c = next();
      if (c == '\'' || c == '"') {
        string();
        continue;
      }
      if (c == '\0') throw malformed("has a list without its end");
      depth += c == '[' || c == '(' ? 1 : c == ']' || c == ')' ? -1 : 0;
      if (depth > kMostNesting) throw malformed("has fields nested too deep");
      ++at_;
    } while (depth > 0);
  }

  // Parses "[<>|=] kind size". Numbers get a dtype; numpy's other types stay opaque bytes.
  void settle_type(NpyHeader& header) const {
    std::string_view rest = header.descr;
    char order = '|';
    if (!rest.empty() && std::string_view("<>|=").find(rest[0]) != std::string_view::npos) {
      order = rest[0];
      rest.remove_prefix(1);
    }
    if (rest.empty()) throw malformed("has an empty descr");
    const char kind = rest[0];
    if (std::string_view("?biufcSaUVOmM").find(kind) == std::string_view::npos)
      throw malformed("has a descr '{}' that is not a type of numpy", safe_display(header.descr, 60));
    if (kind == 'O') return;
    std::uint64_t size = kind == '?' ? 1 : 0;
    if (kind != '?') {
      const auto [end, failure] = std::from_chars(rest.data() + 1, rest.data() + rest.size(), size);
      const bool unit = (kind == 'm' || kind == 'M') && *end == '[';  // M8[ns]
      if (failure != std::errc() || (end != rest.data() + rest.size() && !unit) || size > UINT32_MAX)
        throw malformed("has a descr '{}' that is not a type of numpy", safe_display(header.descr, 60));
    }
    header.item_bytes = kind == 'U' ? 4 * size : size;
    const std::string code = fmt::format("{}{}", kind == '?' ? "b" : std::string(1, kind), size);
    const auto dtype = size == 1 ? graph::dtype_from(&graph::DTypeInfo::npy, "|" + code)
                                 : graph::dtype_from(&graph::DTypeInfo::npy, "<" + code);
    header.dtype = dtype.value_or(graph::DType::opaque);
    if (dtype && order == '>' && size > 1)
      header.swapped = static_cast<std::uint8_t>(kind == 'c' ? size / 2 : size);
  }

  std::string_view text_;
  const ErrorPlace& place_;
  std::size_t at_ = 0;
};

std::uint64_t little_endian(std::string_view bytes) {
  std::uint64_t value = 0;
  for (std::size_t i = bytes.size(); i-- > 0;) value = value << 8 | static_cast<unsigned char>(bytes[i]);
  return value;
}

// Reads the magic and the header of an array. `take(n)` returns the next n bytes. Throws Error at `place` if
// they are not an array of versions 1.0 to 3.0, and Error{limit} for a header above kMostNpyHeader bytes.
NpyHeader read_npy_header(const std::function<std::string(std::uint64_t)>& take, const ErrorPlace& place) {
  const std::string front = take(8);
  if (!front.starts_with(kNpyMagic)) throw Error(ErrorCode::malformed, place, "is not an npy array");
  const int major = static_cast<unsigned char>(front[6]), minor = static_cast<unsigned char>(front[7]);
  if (major < 1 || major > 3 || minor != 0)
    throw Error(ErrorCode::unsupported, place, "npy version {}.{}, the newest known is 3.0", major, minor);
  const std::uint64_t length_bytes = major == 1 ? 2 : 4;
  const std::uint64_t length = little_endian(take(length_bytes));
  if (length > kMostNpyHeader)
    throw Error(ErrorCode::limit, place, "the npy header has {} bytes, the limit is {}", length,
                kMostNpyHeader);
  const std::string text = take(length);
  NpyHeader header = Literals(text, place).header();
  header.data = 8 + length_bytes + length;
  return header;
}

}  // namespace

// --- npy and npz (numpy 2.x: numpy/lib/_format_impl.py, _npyio_impl.py). An npz is a zip archive of .npy
// members, stored (savez) or deflated (savez_compressed).

namespace {

// Strides of an array whose first index varies fastest; empty if that equals C order.
std::vector<std::uint64_t> fortran_strides(const std::vector<std::uint64_t>& shape) {
  graph::Tensor tensor;
  tensor.shape = shape;
  std::uint64_t stride = 1;
  for (const std::uint64_t dimension : shape) {
    tensor.strides.push_back(stride);
    stride *= dimension;  // the product of all was checked
  }
  return graph::is_contiguous(tensor) ? std::vector<std::uint64_t>() : tensor.strides.vector();
}

// Adds arrays to a graph whose only file is `file`.
class Arrays : GraphReader {
 public:
  Arrays(const io::SourceFile& file, std::string_view format) : GraphReader(file, format) {}

  // `whole` is the range of the array, magic and header included.
  void add(const std::string& name, const graph::Storage& whole) {
    const ErrorPlace place{.file = file_.path(), .byte = whole.offset, .tensor = name};
    const NpyHeader header = read_header(whole, place);
    const std::uint64_t held = whole.bytes - header.data;
    graph::Tensor tensor;
    tensor.name = name;
    tensor.dtype = header.dtype;
    tensor.shape = header.shape;
    const std::uint64_t needed = needed_bytes(header, held, place);
    if (header.fortran_order && needed > 0) tensor.strides = fortran_strides(header.shape);
    if (header.dtype == graph::DType::opaque)
      graph_.note(graph::Severity::warning, name, "numpy type '{}': shown as bytes",
                  safe_display(header.descr, 60));
    if (needed < held)
      graph_.note(graph::Severity::warning, name, "{} bytes follow the array's {}: numpy does not read them",
                  held - needed, needed);
    graph::Storage storage = whole;
    if (whole.encoding == graph::Encoding::deflate) {
      tensor.offset = header.data;  // inside the stream
      if (header.swapped != 0) {
        tensor.dtype = graph::DType::opaque;
        graph_.note(graph::Severity::error, name, "big-endian numbers that are compressed: shown as bytes");
      }
    } else {
      storage = graph::plain_storage(graph::FileId{0}, whole.offset + header.data, needed);
      if (header.swapped != 0) {
        storage.encoding = graph::Encoding::byte_swapped;
        storage.unit = header.swapped;
      }
    }
    tensor.storage = graph_.add_storage(storage);
    graph_.tensors.push_back(std::move(tensor));
  }

  graph::MetaGraph& graph() { return graph_; }

 private:
  NpyHeader read_header(const graph::Storage& whole, const ErrorPlace& place) const {
    const auto decoder =
        whole.encoding == graph::Encoding::deflate ? io::make_decoder(file_, whole) : nullptr;
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
    const auto count = graph::element_count(header.shape);
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

graph::MetaGraph read_array(const io::SourceFile& file) {
  Arrays arrays(file, "npy");
  const std::string name = std::filesystem::path(file.path()).filename().string();
  arrays.add(graph::npy_tensor_name(name), graph::plain_storage(graph::FileId{0}, 0, file.size()));
  return std::move(arrays.graph());
}

}  // namespace

// Of a folder, every array is a tensor.
graph::MetaGraph read_npy(const Source& source) {
  if (source.set.empty()) return read_array(*source.file);
  graph::MetaGraph graph;
  graph.format = "npy";
  for (const std::string& name : source.set) {
    const auto file = source.open_sibling(name);
    if (!file) throw Error(ErrorCode::io, {.file = name}, "was removed after the folder was listed");
    graph::MetaGraph array = read_array(*file);
    const graph::FileId id{static_cast<std::uint32_t>(graph.files.size())};
    graph.files.push_back(std::move(array.files.front()));
    append_weights(graph, array, id);
  }
  return graph;
}

Match sniff_npz(std::string_view head, std::string_view path) {
  const auto name = first_zip_name(head);
  if (!name) return Match::no;
  if (name->ends_with(".npy")) return Match::yes;
  return graph::has_ending_of(path, "npz") ? Match::maybe : Match::no;
}

graph::MetaGraph read_npz(const Source& source) {
  const ZipArchive zip(*source.file, ZipNames::labels);
  Arrays arrays(*source.file, "npz");
  constexpr std::string_view kExtension = ".npy";
  std::vector<std::string> others;
  for (const ZipMember& member : zip.members()) {
    if (member.name.ends_with(kExtension))
      arrays.add(std::string(member.name.substr(0, member.name.size() - kExtension.size())),
                 zip.storage(member, graph::FileId{0}));
    else
      others.emplace_back(member.name);
  }
  if (!others.empty())
    arrays.graph().note(graph::Severity::warning, {}, "{} without the ending .npy: not read: {}",
                        counted(others.size(), "member"), join_names(others, 3));
  arrays.graph().notes.insert(arrays.graph().notes.end(), zip.notes().begin(), zip.notes().end());
  return std::move(arrays.graph());
}

}  // namespace loadline::importers
