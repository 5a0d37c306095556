// A .safetensors file: its header, then the checks of shapes and offsets.

#include "core/base/checked_arithmetic.h"
#include "core/base/error.h"
#include "core/base/text.h"
#include "core/graph/name.h"
#include "core/graph/names/file_names.h"
#include "importers/formats.h"
#include "importers/huggingface/index.h"
#include "importers/huggingface/plain_json.h"
#include "importers/importer.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <mutex>
#include <tuple>
#include <utility>

#include <fmt/format.h>
#include <simdjson.h>

namespace loadline::importers {

// --- safetensors (huggingface/safetensors 0.8: README, safetensors/src/tensor.rs).
//
//   [0, 8)        u64 little-endian N, at most 100,000,000
//   [8, 8+N)      UTF-8 JSON object, padded at its end with spaces
//                   "name": {"dtype": "F32", "shape": [2, 3], "data_offsets": [begin, end]}
//                   "__metadata__": {"key": "text"}   optional, or null
//   [8+N, size)   the tensors' bytes, offsets relative to here, without holes, overlap or remainder

namespace {

namespace dom = simdjson::dom;

constexpr std::uint64_t kMostHeader = 100'000'000;
constexpr std::size_t kMostDepth = 64;

std::uint64_t load_u64(std::string_view bytes) {
  std::uint64_t value = 0;
  std::memcpy(&value, bytes.data(), sizeof value);
  return value;
}

std::string shape_text(const graph::Shape& shape) { return fmt::format("[{}]", fmt::join(shape, ",")); }

// The type and shape of tensors; texts point into the header, or into the parser.
struct Kind {
  std::string_view dtype_text;
  graph::Shape shape;
  std::optional<graph::DType> dtype = {};   // absent: unknown
  std::optional<std::uint64_t> bytes = {};  // of such a tensor; absent if nothing says or holds them
};

// One tensor of a header.
struct Entry {
  std::string_view name;
  std::uint32_t kind = 0;
  std::uint64_t begin = 0, end = 0;
};

// Memory reused for the next header: a model may have hundreds of shards, and allocating anew for each costs
// more than parsing.
struct Scratch {
  std::unique_ptr<char[]> buffer;
  std::size_t buffer_bytes = 0;
  std::vector<Entry> entries;
  std::vector<Kind> kinds;
  std::unique_ptr<dom::parser>
      parser;  // holds what the entries point to, unless they are plain: then they point into the text

  void clear() {
    entries.clear();
    kinds.clear();
  }
};

// What headers that were read leave for the next. Not a thread's own: a thread that cannot register the end
// of its own objects, for want of memory, ends the program.
class SpareScratch {
 public:
  Scratch take() {
    const std::lock_guard lock(mutex_);
    return count_ == 0 ? Scratch() : std::move(spare_[--count_]);
  }
  void leave(Scratch scratch) {
    const std::lock_guard lock(mutex_);
    if (count_ < spare_.size()) spare_[count_++] = std::move(scratch);
  }
  void clear() {
    const std::lock_guard lock(mutex_);
    while (count_ > 0) spare_[--count_] = {};
  }

 private:
  std::mutex mutex_;
  std::array<Scratch, 8> spare_;  // threads that read shards at once
  std::size_t count_ = 0;
};

SpareScratch& spare_scratch() {
  static SpareScratch spare;
  return spare;
}

// Reads one header into a graph. Every Error names the file and, if one is concerned, the tensor. What a
// parser makes of the header is the law; read_plain() is quicker for what it takes.
class HeaderReader : GraphReader {
 public:
  explicit HeaderReader(const io::SourceFile& file) : GraphReader(file, "safetensors") {}

  graph::MetaGraph read() {
    read_text();
    if (!read_plain()) {
      scratch_.clear();
      read_fields(parse());
    }
    place_entries();
    leave_scratch();
    return std::move(graph_);
  }

 private:
  template <typename... Values>
  Error at_tensor(std::string_view name, fmt::format_string<Values...> detail,
                  const Values&... values) const {
    // the byte of the name, if it stands in the header unescaped
    const std::size_t found = text_.rfind(fmt::format("\"{}\"", name));
    const std::uint64_t byte = 8 + (found == std::string_view::npos ? 0 : found);
    return Error(ErrorCode::malformed, {.file = file_.path(), .byte = byte, .tensor = std::string(name)},
                 detail, values...);
  }

  // 8 bytes, then exactly N.
  void read_text() {
    const ErrorPlace start{.file = file_.path(), .byte = 0};
    if (file_.size() < 8)
      throw Error(ErrorCode::malformed, start, "a safetensors file has at least 8 bytes, this one has {}",
                  file_.size());
    const std::uint64_t n = load_u64(file_.head(8));
    if (n > kMostHeader)
      throw Error(ErrorCode::limit, start, "the header claims {} bytes, the limit is {}", n, kMostHeader);
    if (n > file_.size() - 8)
      throw Error(ErrorCode::malformed, start, "the header claims {} bytes, {} follow", n, file_.size() - 8);
    const auto needed = static_cast<std::size_t>(n) + simdjson::SIMDJSON_PADDING;
    scratch_ = spare_scratch().take();
    if (scratch_.buffer_bytes < needed) {
      scratch_.buffer.reset(new char[needed]);
      scratch_.buffer_bytes = needed;
    }
    char* const buffer = scratch_.buffer.get();
    text_ = {buffer, static_cast<std::size_t>(n)};
    file_.read_at(8, std::as_writable_bytes(std::span(buffer, text_.size())));
    std::fill_n(buffer + n, simdjson::SIMDJSON_PADDING, ' ');
    data_start_ = 8 + n;
  }

  // Reads the header if it is as the format's own writer makes it: no blanks between tokens, the fields of an
  // entry in one order. Otherwise nothing has been read.
  bool read_plain() {
    reserve_entries();
    PlainJson text(text_);
    std::vector<std::pair<std::string_view, std::string_view>> metadata;
    bool seen = false;
    if (!text.take('{')) return false;
    do {
      const std::string_view name = text.string();
      if (name.data() == nullptr || !text.take(':')) return false;
      if (name != "__metadata__") {
        if (!read_plain_entry(text, name)) return false;
        continue;
      }
      if (std::exchange(seen, true) || !text.take('{')) return false;
      do {
        const std::string_view key = text.string();
        const bool behind = key.data() != nullptr && text.take(':');
        const std::string_view value = behind ? text.string() : std::string_view();
        if (value.data() == nullptr) return false;
        metadata.emplace_back(key, value);
      } while (text.take(','));
      if (!text.take('}')) return false;
    } while (text.take(','));
    if (!text.take('}')) return false;
    text.skip_blanks();
    if (!text.at_end()) return false;
    graph::TextViewSet keys;
    for (const auto& [key, value] : metadata) add_metadata(keys, key, value);
    return true;
  }

  bool read_plain_entry(PlainJson& text, std::string_view name) {
    Entry& entry = scratch_.entries.emplace_back();
    entry.name = name;
    if (!read_plain_kind(text, entry)) return false;
    entry.begin = text.number();
    if (entry.begin == PlainJson::kNoNumber || !text.take(',')) return false;
    entry.end = text.number();
    return entry.end != PlainJson::kNoNumber && text.take("]}");
  }

  // Up to the offsets. A model has thousands of tensors of a few types and shapes: the texts of those that
  // came last are compared before they are read.
  bool read_plain_kind(PlainJson& text, Entry& entry) {
    for (std::size_t i = 0; i < recent_.size(); ++i) {
      Recent& recent = recent_[(newest_ + i) % recent_.size()];
      if (recent.text.empty() || !text.take(recent.text)) continue;
      newest_ = (newest_ + i) % recent_.size();
      entry.kind = recent.kind;
      return true;
    }
    const std::size_t begin = text.position();
    if (!text.take("{\"dtype\":")) return false;
    const std::string_view dtype = text.string();
    if (dtype.data() == nullptr || !text.take(",\"shape\":[")) return false;
    numbers_.clear();
    if (!text.take(']')) {
      do {
        numbers_.push_back(text.number());
        if (numbers_.back() == PlainJson::kNoNumber) return false;
      } while (text.take(','));
      if (!text.take(']')) return false;
    }
    if (!text.take(",\"data_offsets\":[")) return false;
    entry.kind = add_kind(dtype, graph::Shape(std::span<const std::uint64_t>(numbers_)));
    newest_ = (newest_ + recent_.size() - 1) % recent_.size();
    recent_[newest_] = {text_.substr(begin, text.position() - begin), entry.kind};
    return true;
  }

  std::uint32_t add_kind(std::string_view dtype, graph::Shape shape) {
    std::vector<Kind>& kinds = scratch_.kinds;
    if (kinds.empty() || kinds.back().dtype_text != dtype || kinds.back().shape != shape)
      kinds.push_back(kind_of(dtype, std::move(shape)));
    return static_cast<std::uint32_t>(kinds.size() - 1);
  }
  static Kind kind_of(std::string_view dtype, graph::Shape shape) {
    Kind kind{dtype, std::move(shape)};
    kind.dtype = graph::dtype_from(&graph::DTypeInfo::safetensors, dtype);
    const auto count = graph::element_count(kind.shape);
    if (kind.dtype && count) kind.bytes = graph::byte_size(*kind.dtype, *count);
    return kind;
  }

  void reserve_entries() {
    constexpr std::size_t kUsualEntry = 110;  // bytes, so that the list seldom grows
    scratch_.entries.reserve(text_.size() / kUsualEntry);
  }

  dom::object parse() {
    const ErrorPlace place{.file = file_.path(), .byte = 8};
    if (!scratch_.parser) scratch_.parser = std::make_unique<dom::parser>();
    dom::parser& parser = *scratch_.parser;
    if (parser.capacity() < text_.size() && parser.allocate(text_.size(), kMostDepth) != simdjson::SUCCESS)
      throw Error(ErrorCode::limit, {.file = file_.path()}, "no memory for a header of {} bytes",
                  text_.size());
    dom::object root;
    constexpr bool kCopyIfNeeded = false;
    const auto error = parser.parse(text_.data(), text_.size(), kCopyIfNeeded).get(root);
    if (error == simdjson::INCORRECT_TYPE)
      throw Error(ErrorCode::malformed, place, "the header is not a JSON object");
    if (error != simdjson::SUCCESS)
      throw Error(ErrorCode::malformed, place, "the header is not valid JSON: {}",
                  simdjson::error_message(error));
    return root;
  }

  void leave_scratch() {
    constexpr std::size_t kMostKept = 256 << 10;  // the parser takes about 14 times as much
    if (scratch_.buffer_bytes > kMostKept) return;
    scratch_.clear();
    spare_scratch().leave(std::move(scratch_));
  }

  void read_fields(dom::object root) {
    bool metadata = false;
    for (const auto& [key, value] : root) {
      if (key != "__metadata__") {
        read_entry(key, value);
      } else {
        if (std::exchange(metadata, true)) throw at_tensor(key, "the name occurs twice in the header");
        read_metadata(value);
      }
    }
  }

  void read_metadata(dom::element value) {
    if (value.is_null()) return;  // none, as for safetensors itself
    dom::object object;
    if (value.get(object) != simdjson::SUCCESS) throw at_tensor("__metadata__", "is not an object");
    graph::TextViewSet keys;
    for (const auto& [key, text] : object) {
      std::string_view held;
      if (text.get(held) != simdjson::SUCCESS)
        throw at_tensor("__metadata__", "the value of '{}' is not a string", safe_display(key, 100));
      add_metadata(keys, key, held);
    }
  }

  void add_metadata(graph::TextViewSet& keys, std::string_view key, std::string_view text) {
    if (!keys.insert(key).second)
      throw at_tensor("__metadata__", "the key '{}' occurs twice", safe_display(key, 100));
    if (key == graph::kConfigKey)  // a header cannot stand in for the model's own configuration
      graph_.note(graph::Severity::warning, {},
                  "the header's metadata has a key 'config.json', which is left out");
    else
      graph_.metadata.push_back({std::string(key), std::string(text)});
  }

  void read_entry(std::string_view name, dom::element value) {
    dom::object object;
    if (value.get(object) != simdjson::SUCCESS) throw at_tensor(name, "its entry is not an object");
    Entry& entry = scratch_.entries.emplace_back();
    entry.name = name;
    bool has_dtype = false, has_shape = false, has_offsets = false;
    std::string_view dtype;
    graph::Shape shape;
    const auto once = [&](bool& seen, std::string_view field) {
      if (std::exchange(seen, true)) throw at_tensor(name, "{} occurs twice", field);
    };
    for (const auto& [key, field] : object) {
      if (key == "dtype") {
        once(has_dtype, key);
        if (field.get(dtype) != simdjson::SUCCESS) throw at_tensor(name, "dtype is not a string");
      } else if (key == "shape") {
        once(has_shape, key);
        shape = graph::Shape(read_integers(name, key, field));
      } else if (key == "data_offsets") {
        once(has_offsets, key);
        const std::span<const std::uint64_t> offsets = read_integers(name, key, field);
        if (offsets.size() != 2)
          throw at_tensor(name, "data_offsets holds {} numbers, not 2", offsets.size());
        entry.begin = offsets[0];
        entry.end = offsets[1];
      } else {
        graph_.note(graph::Severity::warning, std::string(name), "unknown field '{}' in its header entry",
                    safe_display(key, 100));
      }
    }
    if (!has_dtype || !has_shape || !has_offsets)
      throw at_tensor(name, "{} is missing", !has_dtype ? "dtype" : !has_shape ? "shape" : "data_offsets");
    entry.kind = add_kind(dtype, std::move(shape));
  }

  // Valid until the next call.
  std::span<const std::uint64_t> read_integers(std::string_view name, std::string_view field,
                                               dom::element value) {
    dom::array array;
    if (value.get(array) != simdjson::SUCCESS) throw at_tensor(name, "{} is not an array", field);
    numbers_.clear();
    for (const dom::element item : array) {
      std::uint64_t number = 0;
      if (item.type() == dom::element_type::DOUBLE || item.get(number) != simdjson::SUCCESS)
        throw at_tensor(name, "{} holds something that is not a whole number from 0 to 2^64-1", field);
      numbers_.push_back(number);
    }
    return numbers_;
  }

  // Checks offsets against shapes: the entry's range must have the size that its dtype and shape need.
  graph::DType check_size(const Entry& entry) {
    const Kind& kind = scratch_.kinds[entry.kind];
    const auto count = graph::element_count(kind.shape);
    if (!count) throw at_tensor(entry.name, "the shape {} overflows 64 bits", shape_text(kind.shape));
    if (!kind.dtype) {
      graph_.note(graph::Severity::warning, std::string(entry.name), "unknown dtype '{}': shown as bytes",
                  safe_display(kind.dtype_text, 40));
      return graph::DType::opaque;
    }
    const graph::DTypeInfo& info = graph::dtype_info(*kind.dtype);
    const auto what = [&] { return fmt::format("{} {}", shape_text(kind.shape), info.name); };
    if (!kind.bytes && *count % info.block_elements != 0)
      throw at_tensor(entry.name, "{} does not fill whole bytes", what());
    if (!kind.bytes) throw at_tensor(entry.name, "{} overflows 64 bits", what());
    if (*kind.bytes != entry.end - entry.begin)
      throw at_tensor(entry.name, "needs {} bytes for {}, offsets give {}", *kind.bytes, what(),
                      entry.end - entry.begin);
    return *kind.dtype;
  }

  // Names go into the graph in one piece; the first that occurs twice is an Error.
  std::vector<graph::Name> take_names() const {
    std::vector<std::string_view> texts;
    texts.reserve(scratch_.entries.size());
    for (const Entry& entry : scratch_.entries) texts.push_back(entry.name);
    std::vector<graph::Name> names = graph::Name::many(texts);
    graph::NameIndex index(names.size());
    for (std::uint32_t i = 0; i < names.size(); ++i)
      if (index.add(names[i], names[i].hash(), i, [&](std::uint32_t at) { return texts[at]; }))
        throw at_tensor(texts[i], "the name occurs twice in the header");
    return names;
  }

  // Checks the tensors in file order: each must begin where the previous one ends.
  void place_entries() {
    const std::uint64_t data_bytes = file_.size() - data_start_;
    std::vector<Entry>& entries = scratch_.entries;
    const auto before = [](const Entry& a, const Entry& b) {
      return std::tie(a.begin, a.end, a.name) < std::tie(b.begin, b.end, b.name);
    };
    if (!std::ranges::is_sorted(entries, before)) std::ranges::sort(entries, before);
    std::vector<graph::Name> names = take_names();
    graph_.tensors.reserve(entries.size());
    graph_.storages.reserve(entries.size());
    std::uint64_t at = 0;
    for (std::size_t i = 0; i < entries.size(); ++i) {
      const Entry& entry = entries[i];
      if (entry.end < entry.begin)
        throw at_tensor(entry.name, "its data ends at {} before it begins at {}", entry.end, entry.begin);
      if (entry.begin != at)
        throw at_tensor(entry.name, "its data begins at {}, {} at {}", entry.begin,
                        entry.begin < at ? "overlapping what ends" : "leaving a hole after what ends", at);
      const Kind& kind = scratch_.kinds[entry.kind];
      const bool fits = kind.bytes && *kind.bytes == entry.end - entry.begin;  // mostly, and known
      const graph::DType dtype = fits ? *kind.dtype : check_size(entry);
      if (entry.end > data_bytes)
        throw at_tensor(entry.name, "its data ends at {}, the file has {} bytes of data", entry.end,
                        data_bytes);
      at = entry.end;
      graph::Storage& storage = graph_.storages.emplace_back();  // filled where it stays
      storage.file = graph::FileId{0};
      storage.offset = data_start_ + entry.begin;
      storage.bytes = storage.stored_bytes = entry.end - entry.begin;
      graph::Tensor& tensor = graph_.tensors.emplace_back();
      tensor.name = std::move(names[i]);
      tensor.dtype = dtype;
      tensor.shape = kind.shape;
      tensor.storage = graph::StorageId{static_cast<std::uint32_t>(i)};
    }
    if (at != data_bytes)
      graph_.note(graph::Severity::error, {},
                  "{}: {} bytes after the last tensor (data ends at byte {}, the file at {})",
                  safe_display(file_.path()), data_bytes - at, data_start_ + at, file_.size());
  }

  std::string_view text_;
  Scratch scratch_;
  std::vector<std::uint64_t> numbers_;
  std::uint64_t data_start_ = 0;
  // The texts that began the last entries of different kinds, from newest_ on.
  struct Recent {
    std::string_view text;
    std::uint32_t kind = 0;
  };
  std::array<Recent, 4> recent_;
  std::size_t newest_ = 0;
};

}  // namespace

graph::MetaGraph read_safetensors_file(const io::SourceFile& file) { return HeaderReader(file).read(); }

void forget_safetensors_memory() { spare_scratch().clear(); }

// The format has no magic: a plausible length followed by an object is the strongest evidence.
Match sniff_safetensors(std::string_view head, std::string_view path) {
  if (head.size() > 8 && load_u64(head) <= kMostHeader) {
    const std::size_t first = head.find_first_not_of(" \t\r\n", 8);
    if (first != std::string_view::npos && head[first] == '{') return Match::yes;
  }
  return graph::has_ending_of(path, "safetensors") ? Match::maybe : Match::no;
}

graph::MetaGraph read_safetensors(const Source& source) {
  if (!source.set.empty()) return read_loose_shards(source);
  graph::MetaGraph graph = read_safetensors_file(*source.file);
  add_config(source, graph);
  return graph;
}

}  // namespace loadline::importers
