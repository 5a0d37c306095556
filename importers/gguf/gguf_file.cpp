// GGUF versions 2 and 3, little- and big-endian (ggml docs/gguf.md, src/gguf.cpp).
//
//   "GGUF" | u32 version | u64 tensors | u64 key-values
//   key-values  { string key; u32 type; value }        string = u64 length, bytes
//                 array value = u32 element type; u64 count; elements
//   tensors     { string name; u32 rank; u64 ne[rank]; u32 type; u64 offset }
//   padding to general.alignment (32) | data; offsets are relative to here
//
// In a big-endian file every number but the magic is swapped, those in the data too. ne[0] is the fastest
// dimension: shapes are read in reverse.
#include "core/base/checked_arithmetic.h"
#include "core/base/error.h"
#include "core/base/text.h"
#include "core/graph/name.h"
#include "core/graph/packed/quantization.h"
#include "core/io/graph_reader.h"
#include "core/io/source_file.h"
#include "importers/gguf/gguf.h"
#include "importers/importer.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include <fmt/format.h>

namespace loadline::importers {
namespace {

constexpr std::uint64_t kMostKey = 65'535;
constexpr std::uint64_t kMostName = 65'535;
constexpr std::uint64_t kUsualName = 63;  // ggml keeps 64 bytes with the terminator
constexpr std::uint32_t kMostRank = 4;
constexpr std::uint64_t kMostTensors = 1'000'000;
constexpr std::uint64_t kMostKeys = 65'536;
constexpr std::uint64_t kDefaultAlignment = 32;
constexpr std::uint64_t kMostAlignment = std::uint64_t{1} << 26;
// Longer texts stay in the file, and so do all texts after the first kMostTextKept bytes of text.
constexpr std::uint64_t kMostText = 1 << 20;
constexpr std::uint64_t kMostTextKept = 16 << 20;
// Two layouts have this number: that of ggml, and one that files had before ggml gave the number away.
constexpr std::int64_t kTwoBitNumber = 42;
// The least that one takes in the file.
constexpr std::uint64_t kLeastKeyValue = 8 + 1 + 4 + 1;
constexpr std::uint64_t kLeastTensor = 8 + 4 + 8;

// In the order of the format's numbers 0 to 12.
constexpr std::array kTypes = {graph::MetaType::u8,    graph::MetaType::i8,      graph::MetaType::u16,
                               graph::MetaType::i16,   graph::MetaType::u32,     graph::MetaType::i32,
                               graph::MetaType::f32,   graph::MetaType::boolean, graph::MetaType::string,
                               graph::MetaType::array, graph::MetaType::u64,     graph::MetaType::i64,
                               graph::MetaType::f64};

std::optional<std::uint64_t> whole_number(const graph::MetaValue& value) {
  return std::visit(
      [](const auto& held) -> std::optional<std::uint64_t> {
        using Held = std::decay_t<decltype(held)>;
        if constexpr (std::is_integral_v<Held> && !std::is_same_v<Held, bool>)
          if (held >= 0) return static_cast<std::uint64_t>(held);
        return std::nullopt;
      },
      value);
}

struct TensorInfo {
  std::string name;
  graph::Shape shape;
  std::int64_t type = 0;
  std::uint64_t offset = 0;  // from the start of the data
  std::uint64_t at = 0;      // of this entry in the file
  std::optional<std::uint64_t> bytes = {};
};

// Strings stepped over, and where the next begins.
struct Walk {
  std::uint64_t strings = 0;
  std::uint64_t at = 0;
};

// Steps over the strings that begin in a piece of a little-endian file, if they are short. The begin of each
// is known when the length of the one before has arrived. Eight walks at once wait an eighth as often: one
// from the first string, the others from what looks like a string further on. Those count if the walk before
// arrives there.
std::optional<Walk> walk_strings(std::span<const char> piece) {
  constexpr std::uint64_t kLength = 8, kShort = 1 << 6, kLong = 1 << 16;
  constexpr std::size_t kWalks = 8;
  const auto length = [&](std::uint64_t at) {
    std::uint64_t value = 0;
    std::memcpy(&value, piece.data() + at, kLength);
    return value;
  };
  const std::uint64_t last = piece.size() - kLength;
  const auto likely_begin = [&](std::uint64_t at) {
    while (at < last && (length(at) >= kLong || length(at + 1) < kLong)) ++at;
    return at;
  };
  std::array<std::uint64_t, kWalks> behind = {}, ends;
  for (std::size_t i = 0; i < kWalks; ++i)
    ends[i] = i + 1 == kWalks ? last : likely_begin(last / kWalks * (i + 1));
  std::copy_n(ends.begin(), kWalks - 1, behind.begin() + 1);
  std::uint64_t lengths = 0, all_lengths = 0, rounds = 0;  // of strings: a bit that any of them has
  const auto next = [&](std::uint64_t at) {
    const std::uint64_t bytes = length(at);
    lengths |= bytes;
    return at + kLength + bytes;
  };
  while (all_lengths < kLong) {
    // while strings are shorter than kShort, so many of them leave no walk behind its end
    std::uint64_t safe = last;
    for (std::size_t i = 0; i < kWalks; ++i)
      safe = std::min(safe, behind[i] < ends[i] ? (ends[i] - behind[i]) / (kLength + kShort) : 0);
    if (safe == 0) break;
    auto [a, b, c, d, e, f, g, h] = behind;  // each of its own: in registers
    for (std::uint64_t round = 0; round < safe && lengths < kShort; ++round, ++rounds) {
      a = next(a);
      b = next(b);
      c = next(c);
      d = next(d);
      e = next(e);
      f = next(f);
      g = next(g);
      h = next(h);
    }
    behind = {a, b, c, d, e, f, g, h};
    all_lengths |= std::exchange(lengths, 0);
  }
  lengths = all_lengths;
  Walk walk = {rounds, behind[0]};
  for (std::size_t i = 0; i < ends.size(); ++i) {
    if (i > 0 && walk.at == ends[i - 1]) walk = {walk.strings + rounds, behind[i]};
    for (; walk.at < ends[i] && lengths < kLong; ++walk.strings) walk.at = next(walk.at);
  }
  return lengths < kLong ? std::optional(walk) : std::nullopt;
}

class FileReader : GraphReader {
 public:
  explicit FileReader(const io::SourceFile& file) : GraphReader(file, "gguf"), in_(file) {}

  GgufFile read() {
    read_counts();
    read_key_values();
    read_alignment();
    read_tensors();
    place_tensors();
    if (const graph::MetaEntry* const key = graph::declared_transform(graph_))
      graph_.note(
          graph::Severity::warning, {},
          "the key '{}' says that weights are stored rotated: programs that do not undo it give nonsense",
          safe_display(key->key, 100));
    auto split = read_split();
    return {std::move(graph_), split};
  }

 private:
  template <typename... Values>
  Error at_tensor(const TensorInfo& info, fmt::format_string<Values...> detail,
                  const Values&... values) const {
    return Error(ErrorCode::malformed, {.file = file_.path(), .byte = info.at, .tensor = info.name}, detail,
                 values...);
  }

  void read_counts() {
    if (in_.read_text(std::min<std::uint64_t>(4, in_.remaining()), 4, "the magic") != "GGUF")
      throw in_.malformed(0, "does not begin with 'GGUF'");
    auto version = in_.read<std::uint32_t>("the version");
    if (version != 0 && (version & 0xFFFF) == 0) {
      version = __builtin_bswap32(version);
      in_.set_big_endian(true);
      big_endian_ = true;
    }
    if (version < 2 || version > 3)
      throw Error(ErrorCode::unsupported, {.file = file_.path(), .byte = 4},
                  "GGUF version {}: versions 2 and 3 can be read", version);
    tensor_count_ = read_count(kLeastTensor, kMostTensors, "tensors");
    key_count_ = read_count(kLeastKeyValue, kMostKeys, "key-values");
  }

  // Reads a count and checks that the rest of the file has room for that many items.
  std::uint64_t read_count(std::uint64_t least, std::uint64_t most, std::string_view what) {
    const std::uint64_t at = in_.at();
    const auto count = in_.read<std::uint64_t>("a count");
    if (count > in_.remaining() / least)
      throw in_.malformed(at, "claims {} {} of at least {} bytes each, {} bytes follow", count, what, least,
                          in_.remaining());
    if (count > most)
      throw Error(ErrorCode::limit, {.file = file_.path(), .byte = at}, "claims {} {}, the limit is {}",
                  count, what, most);
    return count;
  }

  std::string read_string(std::uint64_t most, std::string_view what) {
    const std::uint64_t at = in_.at();
    const auto bytes = in_.read<std::uint64_t>("a length");
    if (bytes > in_.remaining())
      throw in_.malformed(at, "{} claims {} bytes, {} follow", what, bytes, in_.remaining());
    return in_.read_text(bytes, most, what);
  }

  graph::MetaType read_type() {
    const std::uint64_t at = in_.at();
    const auto type = in_.read<std::uint32_t>("a type");
    if (type >= kTypes.size()) throw in_.malformed(at, "unknown value type {}", type);
    return kTypes[type];
  }

  void read_key_values() {
    graph::NameIndex keys(static_cast<std::size_t>(key_count_));
    for (std::uint64_t i = 0; i < key_count_; ++i) {
      const std::uint64_t at = in_.at();
      std::string key = read_string(kMostKey, "a key");
      if (key.empty()) throw in_.malformed(at, "an empty key");
      if (!is_valid_utf8(key))
        graph_.note(graph::Severity::warning, {}, "the key '{}' is not UTF-8", safe_display(key, 100));
      if (keys.add(key, graph::name_hash(key), static_cast<std::uint32_t>(graph_.metadata.size()),
                   [&](std::uint32_t k) { return std::string_view(graph_.metadata[k].key); }))
        throw in_.malformed(at, "the key '{}' occurs twice", safe_display(key, 100));
      graph::MetaValue value = read_value(key);
      graph_.metadata.push_back({std::move(key), std::move(value)});
      key_at_.push_back(at);
    }
  }

  graph::MetaValue read_value(const std::string& key) {
    const graph::MetaType type = read_type();
    if (type == graph::MetaType::string) return read_text(key);
    if (type == graph::MetaType::array) return read_array(key);
    return io::read_meta_number(in_, type);
  }

  graph::MetaValue read_text(const std::string& key) {
    const std::uint64_t at = in_.at();
    const auto bytes = in_.read<std::uint64_t>("a length");
    if (bytes > in_.remaining())
      throw in_.malformed(at, "the text of '{}' claims {} bytes, {} follow", safe_display(key, 100), bytes,
                          in_.remaining());
    if (bytes <= kMostText && text_kept_ + bytes <= kMostTextKept) {
      text_kept_ += bytes;
      return in_.read_text(bytes, kMostText, "a text");
    }
    const graph::MetaArray left = {
        graph::MetaType::u8, big_endian_, graph::FileId{0}, bytes, in_.at(), bytes};
    in_.skip(bytes, "a text");
    graph_.note(graph::Severity::info, {}, "the text of '{}' has {} bytes and was left in the file",
                safe_display(key, 100), bytes);
    return left;
  }

  graph::MetaValue read_array(const std::string& key) {
    const graph::MetaType element = read_type();
    if (element == graph::MetaType::array)
      throw in_.malformed(in_.at() - 4, "'{}' is an array of arrays", safe_display(key, 100));
    const std::uint64_t size = graph::meta_type_bytes(element);
    const std::uint64_t count = read_count(size == 0 ? 8 : size, UINT64_MAX, "elements");
    graph::MetaArray array = {element, big_endian_, graph::FileId{0}, count, in_.at(), 0};
    if (size != 0)
      in_.skip(count * size, "an array");  // no overflow: the count was compared with what remains
    else
      skip_strings(count);
    array.bytes = in_.at() - array.offset;
    return array;
  }

  void skip_strings(std::uint64_t count) {
    // large enough that calls of the system cost little, and fits in a core's cache
    constexpr std::uint64_t kMostPiece = 224 << 10, kLeastPiece = 4 << 10, kLeastString = 8;
    while (!big_endian_) {
      // so few bytes that all strings of the piece belong to the array
      const std::uint64_t bytes = std::min({kMostPiece, kLeastString * count, in_.remaining()});
      if (bytes < kLeastPiece) break;
      if (!piece_) piece_.reset(new char[std::min(kMostPiece, in_.remaining())]);
      const std::span piece(piece_.get(), static_cast<std::size_t>(bytes));
      file_.read_at(in_.at(), std::as_writable_bytes(piece));
      const auto walk = walk_strings(piece);
      if (!walk || walk->at > in_.remaining()) break;
      in_.skip(walk->at, "strings");
      count -= walk->strings;
    }
    for (std::uint64_t i = 0; i < count; ++i) in_.skip(in_.read<std::uint64_t>("a length"), "a string");
  }

  // An Error about the value of an existing key.
  template <typename... Values>
  Error at_key(const graph::MetaValue& value, fmt::format_string<Values...> detail,
               const Values&... values) const {
    std::size_t position = 0;
    while (&graph_.metadata[position].value != &value) ++position;
    return in_.malformed(key_at_[position], detail, values...);
  }

  void read_alignment() {
    const graph::MetaValue* const value = graph::find_metadata(graph_, "general.alignment");
    if (value == nullptr) return;
    const auto* const number = std::get_if<std::uint32_t>(value);
    if (number == nullptr)
      throw at_key(*value, "general.alignment is of type {}, not u32",
                   graph::meta_type_name(graph::meta_type(*value)));
    if (!std::has_single_bit(*number) || *number > kMostAlignment)
      throw at_key(*value, "general.alignment is {}, not a power of two up to {}", *number, kMostAlignment);
    alignment_ = *number;
  }

  void read_tensors() {
    infos_.reserve(static_cast<std::size_t>(tensor_count_));
    graph::NameIndex names(static_cast<std::size_t>(tensor_count_));
    for (std::uint32_t i = 0; i < tensor_count_; ++i) {
      read_tensor();
      const std::string& name = infos_.back().name;
      if (names.add(name, graph::name_hash(name), i,
                    [&](std::uint32_t k) { return std::string_view(infos_[k].name); }))
        throw at_tensor(infos_.back(), "the name occurs twice");
    }
  }

  void read_tensor() {
    TensorInfo info;
    info.at = in_.at();
    info.name = read_string(kMostName, "a tensor name");
    const auto rank = in_.read<std::uint32_t>("a rank");
    if (rank > kMostRank) throw at_tensor(info, "has rank {}, GGUF holds at most {}", rank, kMostRank);
    std::array<std::uint64_t, kMostRank> sizes = {};
    for (std::uint32_t i = 0; i < rank; ++i) {
      std::uint64_t& size = sizes[rank - 1 - i];
      size = in_.read<std::uint64_t>("a dimension");
      if (size >> 63 != 0) throw at_tensor(info, "dimension {} is {}", i, static_cast<std::int64_t>(size));
    }
    info.shape = graph::Shape(std::span(sizes).first(rank));
    info.type = in_.read<std::int32_t>("a tensor type");
    info.offset = in_.read<std::uint64_t>("an offset");
    if (info.name.size() > kUsualName)
      graph_.note(graph::Severity::warning, info.name, "its name has {} bytes, llama.cpp reads at most {}",
                  info.name.size(), kUsualName);
    else if (!is_valid_utf8(info.name) || info.name.find('\0') != std::string::npos)
      graph_.note(graph::Severity::warning, info.name, "its name is not UTF-8 text without NUL");
    infos_.push_back(std::move(info));
  }

  // Nothing for an unknown type.
  std::optional<graph::DType> dtype_of(const TensorInfo& info) const {
    return info.type == kTwoBitNumber ? two_bit_ : graph::dtype_from(&graph::DTypeInfo::ggml, info.type);
  }

  // Whether tensors of kTwoBitNumber, in that layout, end where the next tensors begin.
  bool two_bit_fits(graph::DType layout, const std::vector<std::uint64_t>& offsets,
                    std::uint64_t data_bytes) const {
    return std::ranges::all_of(infos_, [&](const TensorInfo& info) {
      if (info.type != kTwoBitNumber) return true;
      const auto count = graph::element_count(info.shape);
      const auto bytes = count ? graph::byte_size(layout, *count) : std::nullopt;
      const auto padded = bytes ? checked_align_up(*bytes, alignment_) : std::nullopt;
      if (!padded || info.shape.empty() || info.shape.back() % graph::dtype_info(layout).block_elements != 0)
        return false;
      const auto next = std::ranges::upper_bound(offsets, info.offset);
      if (next != offsets.end()) return *next - info.offset == *padded;
      return range_fits(info.offset, *bytes, data_bytes);
    });
  }

  void choose_two_bit_layout(std::uint64_t data_bytes) {
    const auto of_number = [](const TensorInfo& info) { return info.type == kTwoBitNumber; };
    if (std::ranges::none_of(infos_, of_number)) return;
    std::vector<std::uint64_t> offsets;
    for (const TensorInfo& info : infos_) offsets.push_back(info.offset);
    std::ranges::sort(offsets);
    two_bit_.reset();
    if (two_bit_fits(graph::DType::q2_0, offsets, data_bytes)) {
      two_bit_ = graph::DType::q2_0;
    } else if (two_bit_fits(graph::DType::pq2_0, offsets, data_bytes)) {
      two_bit_ = graph::DType::pq2_0;
      graph_.note(
          graph::Severity::info, {},
          "tensors of type 42 are blocks of 128 numbers in 34 bytes by their offsets, not ggml's of 64 "
          "in 18");
    }
  }

  // The bytes that dtype, shape and block size need; nothing for an unknown type.
  std::optional<std::uint64_t> needed_bytes(const TensorInfo& info) const {
    const auto count = graph::element_count(info.shape);
    if (!count) throw at_tensor(info, "the shape [{}] overflows 64 bits", fmt::join(info.shape, ","));
    const auto dtype = dtype_of(info);
    if (!dtype) return std::nullopt;
    const graph::DTypeInfo& type = graph::dtype_info(*dtype);
    if (const std::uint64_t row = info.shape.empty() ? 1 : info.shape.back(); row % type.block_elements != 0)
      throw at_tensor(info, "has rows of {} elements, {} needs multiples of {}", row, type.name,
                      type.block_elements);
    const auto bytes = graph::byte_size(*dtype, *count);
    if (!bytes) throw at_tensor(info, "[{}] {} overflows 64 bits", fmt::join(info.shape, ","), type.name);
    return bytes;
  }

  void place_tensors() {
    const std::uint64_t header_end = in_.at();
    const auto data_start = checked_align_up(header_end, alignment_);
    if (infos_.empty()) return;
    if (!data_start || *data_start > file_.size())
      throw in_.malformed(header_end, "the data would begin at byte {}, the file has {}",
                          data_start.value_or(0), file_.size());
    const std::uint64_t data_bytes = file_.size() - *data_start;
    choose_two_bit_layout(data_bytes);
    for (TensorInfo& info : infos_) {
      info.bytes = needed_bytes(info);
      if (!range_fits(info.offset, info.bytes.value_or(0), data_bytes))
        throw at_tensor(info, "its {} bytes at {} do not fit in the {} bytes of data", info.bytes.value_or(0),
                        info.offset, data_bytes);
      if (info.offset % alignment_ != 0)
        throw at_tensor(info, "its offset {} is not a multiple of the alignment {}", info.offset, alignment_);
    }
    check_order(data_bytes);
    graph_.tensors.reserve(infos_.size());
    graph_.storages.reserve(infos_.size());
    for (const TensorInfo& info : infos_) add_tensor(info, *data_start);
  }

  // Sorts by offset. Common readers refuse holes and any other order; overlaps are unusable for all.
  void check_order(std::uint64_t data_bytes) {
    const auto by_offset = [](const TensorInfo& a, const TensorInfo& b) { return a.offset < b.offset; };
    if (!std::ranges::is_sorted(infos_, by_offset)) {
      graph_.note(graph::Severity::warning, {},
                  "the tensors' data is not in the order of their entries: llama.cpp refuses that");
      std::ranges::stable_sort(infos_, by_offset);
    }
    std::uint64_t end = 0;  // of the tensors so far, padded
    bool hole = false;
    for (std::size_t i = 0; i < infos_.size(); ++i) {
      TensorInfo& info = infos_[i];
      if (!info.bytes) {  // an unknown type takes the bytes up to the next tensor
        info.bytes = (i + 1 < infos_.size() ? infos_[i + 1].offset : data_bytes) - info.offset;
        if (info.type == kTwoBitNumber)
          graph_.note(graph::Severity::warning, info.name,
                      "type 42 is 64 numbers in 18 bytes or 128 in 34, and the offsets fit neither: shown as "
                      "bytes");
        else
          graph_.note(graph::Severity::warning, info.name, "unknown tensor type {}: shown as bytes",
                      info.type);
      }
      if (info.offset < end && last_end_ > info.offset)
        throw at_tensor(info, "its data begins at {}, overlapping what ends at {}", info.offset, last_end_);
      if (info.offset > end && !std::exchange(hole, true))
        graph_.note(graph::Severity::warning, info.name,
                    "{} unused bytes before its data: llama.cpp refuses that", info.offset - end);
      last_end_ = info.offset + *info.bytes;
      end = checked_align_up(last_end_, alignment_).value_or(UINT64_MAX);
    }
    if (data_bytes > end)
      graph_.note(graph::Severity::error, {}, "{}: {} bytes after the last tensor",
                  safe_display(file_.path()), data_bytes - end);
  }

  void add_tensor(const TensorInfo& info, std::uint64_t data_start) {
    const graph::DType dtype = dtype_of(info).value_or(graph::DType::opaque);
    const graph::DTypeInfo& type = graph::dtype_info(dtype);
    graph::Storage storage = graph::plain_storage(graph::FileId{0}, data_start + info.offset, *info.bytes);
    const bool bytes_only = dtype == graph::DType::mxfp4 || dtype == graph::DType::nvfp4 ||
                            (type.block_elements == 1 && type.block_bytes == 1);
    if (big_endian_ && !bytes_only) {
      const bool numbers = type.block_elements == 1;
      storage.encoding = numbers ? graph::Encoding::byte_swapped : graph::Encoding::unreadable;
      storage.unit = numbers ? static_cast<std::uint8_t>(type.block_bytes) : 1;
    }
    graph_.tensors.push_back({info.name, dtype, info.shape, {}, graph_.add_storage(storage), 0});
  }

  std::optional<GgufSplit> read_split() const {
    const auto number = [&](std::string_view key) -> std::optional<std::uint64_t> {
      const graph::MetaValue* const value = graph::find_metadata(graph_, key);
      if (value == nullptr) return std::nullopt;
      const auto whole = whole_number(*value);
      if (!whole) throw at_key(*value, "{} is not a whole number", key);
      return whole;
    };
    const auto count = number("split.count");
    if (!count || *count <= 1) return std::nullopt;
    return GgufSplit{number("split.no").value_or(0), *count, number("split.tensors.count")};
  }

  io::Cursor in_;
  bool big_endian_ = false;
  std::uint64_t tensor_count_ = 0;
  std::uint64_t key_count_ = 0;
  std::uint64_t alignment_ = kDefaultAlignment;
  std::uint64_t text_kept_ = 0;
  std::uint64_t last_end_ = 0;                // of the tensor before, not padded
  std::optional<graph::DType> two_bit_ = {};  // of tensors of kTwoBitNumber
  std::vector<std::uint64_t> key_at_;         // the byte of each of the metadata
  std::vector<TensorInfo> infos_;
  std::unique_ptr<char[]> piece_;  // of an array of strings
};

}  // namespace

GgufFile read_gguf_file(const io::SourceFile& file) { return FileReader(file).read(); }

}  // namespace loadline::importers
