// safetensors (huggingface/safetensors 0.8: README, safetensors/src/tensor.rs).
//
//   [0, 8)        u64 little-endian N, at most 100,000,000
//   [8, 8+N)      UTF-8 JSON object, padded at its end with spaces
//                   "name": {"dtype": "F32", "shape": [2, 3], "data_offsets": [begin, end]}
//                   "__metadata__": {"key": "text"}   optional
//   [8+N, size)   the tensors' bytes, offsets relative to here, without holes, overlap or remainder
#include "importers/safetensors.h"

#include "core/base/checked.h"
#include "core/base/error.h"
#include "core/base/text.h"
#include "importers/hf_config.h"

#include <algorithm>
#include <cstring>
#include <unordered_set>

#include <fmt/format.h>
#include <simdjson.h>

namespace loadline {
namespace {

constexpr std::uint64_t kMostHeader = 100'000'000;
constexpr std::size_t kMostDepth = 64;

std::uint64_t load_u64(std::span<const std::byte> bytes) {
  std::uint64_t value = 0;
  std::memcpy(&value, bytes.data(), sizeof value);
  return value;
}

struct Entry {
  std::string name;
  std::string dtype;
  std::vector<std::uint64_t> shape;
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
};

std::string shape_text(const std::vector<std::uint64_t>& shape) {
  return fmt::format("[{}]", fmt::join(shape, ","));
}

// Parses one header. Every failure is an Error that names the file and, where there is one, the tensor.
class HeaderParser {
 public:
  explicit HeaderParser(const SourceFile& file) : file_(file) {}

  MetaGraph parse() {
    read_header();
    simdjson::dom::parser parser;
    if (parser.allocate(text_.size(), kMostDepth) != simdjson::SUCCESS)
      throw Error(ErrorCode::limit, {.file = file_.path()},
                  fmt::format("no memory for a header of {} bytes", text_.size()));
    simdjson::dom::object root;
    if (const auto error = parser.parse(text_).get(root); error != simdjson::SUCCESS) {
      if (error == simdjson::INCORRECT_TYPE) throw malformed(8, "the header is not a JSON object");
      throw malformed(8, fmt::format("the header is not valid JSON: {}", simdjson::error_message(error)));
    }
    graph_.format = "safetensors";
    graph_.files.push_back({file_.path(), file_.size()});
    std::unordered_set<std::string_view> names;
    for (const auto& [key, value] : root) {
      if (!names.insert(key).second) throw at_tensor(std::string(key), "the name occurs twice in the header");
      if (key == "__metadata__")
        read_metadata(value);
      else
        entries_.push_back(read_entry(std::string(key), value));
    }
    place_entries();
    return std::move(graph_);
  }

 private:
  Error malformed(std::uint64_t byte, std::string_view detail) const {
    return Error(ErrorCode::malformed, {.file = file_.path(), .byte = byte}, detail);
  }

  // The byte is where the name stands in the header, if it stands there without escapes.
  Error at_tensor(const std::string& name, std::string_view detail) const {
    const std::string_view header(text_.data(), text_.size());
    const std::size_t found = header.rfind("\"" + name + "\"");
    const std::uint64_t byte = 8 + (found == std::string_view::npos ? 0 : found);
    return Error(ErrorCode::malformed, {.file = file_.path(), .byte = byte, .tensor = name}, detail);
  }

  // 8 bytes, then exactly N.
  void read_header() {
    if (file_.size() < 8)
      throw malformed(0,
                      fmt::format("a safetensors file has at least 8 bytes, this one has {}", file_.size()));
    std::array<std::byte, 8> length = {};
    file_.read_at(0, length);
    const std::uint64_t n = load_u64(length);
    if (n > kMostHeader)
      throw Error(ErrorCode::limit, {.file = file_.path(), .byte = 0},
                  fmt::format("the header claims {} bytes, the limit is {}", n, kMostHeader));
    if (n > file_.size() - 8)
      throw malformed(0, fmt::format("the header claims {} bytes, {} follow", n, file_.size() - 8));
    text_ = simdjson::padded_string(static_cast<std::size_t>(n));
    file_.read_at(8, std::as_writable_bytes(std::span(text_.data(), text_.size())));
    data_start_ = 8 + n;
  }

  void read_metadata(simdjson::dom::element value) {
    simdjson::dom::object object;
    if (value.get(object) != simdjson::SUCCESS) throw at_tensor("__metadata__", "is not an object");
    std::unordered_set<std::string_view> keys;
    for (const auto& [key, text] : object) {
      std::string_view held;
      if (text.get(held) != simdjson::SUCCESS)
        throw at_tensor("__metadata__",
                        fmt::format("the value of '{}' is not a string", safe_display(key, 100)));
      if (!keys.insert(key).second)
        throw at_tensor("__metadata__", fmt::format("the key '{}' occurs twice", safe_display(key, 100)));
      if (key == kConfigKey) {  // a header cannot stand in for the model's own configuration
        note(Severity::warning, {}, "the header's metadata has a key 'config.json', which is left out");
        continue;
      }
      graph_.metadata.push_back({std::string(key), std::string(held)});
    }
  }

  std::vector<std::uint64_t> read_integers(const std::string& name, std::string_view field,
                                           simdjson::dom::element value) const {
    simdjson::dom::array array;
    if (value.get(array) != simdjson::SUCCESS)
      throw at_tensor(name, fmt::format("{} is not an array", field));
    std::vector<std::uint64_t> numbers;
    for (const simdjson::dom::element item : array) {
      std::uint64_t number = 0;
      if (item.type() == simdjson::dom::element_type::DOUBLE || item.get(number) != simdjson::SUCCESS)
        throw at_tensor(name,
                        fmt::format("{} holds something that is not a whole number from 0 to 2^64-1", field));
      numbers.push_back(number);
    }
    return numbers;
  }

  Entry read_entry(std::string name, simdjson::dom::element value) {
    simdjson::dom::object object;
    if (value.get(object) != simdjson::SUCCESS) throw at_tensor(name, "its entry is not an object");
    Entry entry;
    bool has_dtype = false, has_shape = false, has_offsets = false;
    const auto once = [&](bool& seen, std::string_view field) {
      if (std::exchange(seen, true)) throw at_tensor(name, fmt::format("{} occurs twice", field));
    };
    for (const auto& [key, field] : object) {
      if (key == "dtype") {
        once(has_dtype, key);
        std::string_view dtype;
        if (field.get(dtype) != simdjson::SUCCESS) throw at_tensor(name, "dtype is not a string");
        entry.dtype = dtype;
      } else if (key == "shape") {
        once(has_shape, key);
        entry.shape = read_integers(name, key, field);
      } else if (key == "data_offsets") {
        once(has_offsets, key);
        const std::vector<std::uint64_t> offsets = read_integers(name, key, field);
        if (offsets.size() != 2)
          throw at_tensor(name, fmt::format("data_offsets holds {} numbers, not 2", offsets.size()));
        entry.begin = offsets[0];
        entry.end = offsets[1];
      } else {
        note(Severity::warning, name,
             fmt::format("unknown field '{}' in its header entry", safe_display(key, 100)));
      }
    }
    if (!has_dtype || !has_shape || !has_offsets)
      throw at_tensor(name, fmt::format("{} is missing", !has_dtype   ? "dtype"
                                                         : !has_shape ? "shape"
                                                                      : "data_offsets"));
    entry.name = std::move(name);
    return entry;
  }

  void note(Severity severity, std::optional<std::string> tensor, std::string text) {
    graph_.notes.push_back({severity, std::move(tensor), std::move(text)});
  }

  // Offsets against shapes: what the entry says it takes must be what its dtype and shape need.
  DType check_size(const Entry& entry) {
    const std::optional<DType> known = dtype_from_safetensors(entry.dtype);
    const auto count = element_count(entry.shape);
    if (!count)
      throw at_tensor(entry.name, fmt::format("the shape {} overflows 64 bits", shape_text(entry.shape)));
    if (!known) {
      note(Severity::warning, entry.name,
           fmt::format("unknown dtype '{}': shown as bytes", safe_display(entry.dtype, 40)));
      return DType::opaque;
    }
    const std::string what = fmt::format("{} {}", shape_text(entry.shape), dtype_info(*known).name);
    const auto needed = byte_size(*known, *count);
    if (!needed)
      throw at_tensor(entry.name, fmt::format("{} does not fill whole bytes or overflows 64 bits", what));
    if (*needed != entry.end - entry.begin)
      throw at_tensor(entry.name, fmt::format("needs {} bytes for {}, offsets give {}", *needed, what,
                                              entry.end - entry.begin));
    return *known;
  }

  // In the order of the bytes: each begins where the one before ended.
  void place_entries() {
    const std::uint64_t data_bytes = file_.size() - data_start_;
    std::sort(entries_.begin(), entries_.end(), [](const Entry& a, const Entry& b) {
      return std::tie(a.begin, a.end, a.name) < std::tie(b.begin, b.end, b.name);
    });
    std::uint64_t at = 0;
    for (Entry& entry : entries_) {
      if (entry.end < entry.begin)
        throw at_tensor(entry.name,
                        fmt::format("its data ends at {} before it begins at {}", entry.end, entry.begin));
      if (entry.begin != at)
        throw at_tensor(
            entry.name,
            fmt::format("its data begins at {}, {} at {}", entry.begin,
                        entry.begin < at ? "overlapping what ends" : "leaving a hole after what ends", at));
      const DType dtype = check_size(entry);
      if (entry.end > data_bytes)
        throw at_tensor(entry.name, fmt::format("its data ends at {}, the file has {} bytes of data",
                                                entry.end, data_bytes));
      at = entry.end;
      const StorageId storage{static_cast<std::uint32_t>(graph_.storages.size())};
      graph_.storages.push_back(plain_storage(FileId{0}, data_start_ + entry.begin, entry.end - entry.begin));
      graph_.tensors.push_back({std::move(entry.name), dtype, std::move(entry.shape), {}, storage, 0});
    }
    if (at != data_bytes)
      note(Severity::error, {},
           fmt::format("{}: {} bytes after the last tensor (data ends at byte {}, the file at {})",
                       safe_display(file_.path()), data_bytes - at, data_start_ + at, file_.size()));
  }

  const SourceFile& file_;
  simdjson::padded_string text_;
  std::uint64_t data_start_ = 0;
  std::vector<Entry> entries_;
  MetaGraph graph_;
};

bool is_json_space(std::byte b) {
  const char c = static_cast<char>(b);
  return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

}  // namespace

MetaGraph read_safetensors_file(const SourceFile& file) { return HeaderParser(file).parse(); }

// There is no magic: a plausible length and then an object is as certain as it gets.
Match sniff_safetensors(std::span<const std::byte> head, std::string_view path) {
  if (head.size() > 8 && load_u64(head) <= kMostHeader) {
    const auto text = head.subspan(8);
    const auto first = std::find_if_not(text.begin(), text.end(), is_json_space);
    if (first != text.end() && *first == std::byte{'{'}) return Match::yes;
  }
  return path.ends_with(".safetensors") ? Match::maybe : Match::no;
}

MetaGraph read_safetensors(const Source& source) {
  MetaGraph graph = read_safetensors_file(*source.file);
  add_config(source, graph);
  return graph;
}

}  // namespace loadline
