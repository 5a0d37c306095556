// The header of a GGUF file with other key-values (the bytes: gguf.cpp). Unchanged key-values and all tensors
// are copied as they stand. The data must stay where it is: readers look for it at the end of the header,
// rounded up to the alignment. So the header may end anywhere in the last aligned block, and a key-value
// loadline.slack fills what more there is.
#include "core/base/checked_arithmetic.h"
#include "core/base/json.h"
#include "core/base/text.h"
#include "core/io/source_file.h"
#include "exporters/edit/edit_header.h"
#include "exporters/exporter.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstring>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

namespace loadline::exporters {
namespace {

using Json = nlohmann::json;

constexpr std::uint64_t kFixedBytes = 4 + 4 + 8 + 8;  // magic, version, two counts
constexpr std::uint64_t kCountAt = 4 + 4 + 8;         // of key-values
constexpr std::uint64_t kMostKey = 65'535;
constexpr std::uint32_t kString = 8, kArray = 9;

struct TypeRow {
  std::string_view word;
  std::uint32_t number;
  graph::MetaType type;
};
constexpr std::array kTypes = {TypeRow{"u8", 0, graph::MetaType::u8},
                               TypeRow{"i8", 1, graph::MetaType::i8},
                               TypeRow{"u16", 2, graph::MetaType::u16},
                               TypeRow{"i16", 3, graph::MetaType::i16},
                               TypeRow{"u32", 4, graph::MetaType::u32},
                               TypeRow{"i32", 5, graph::MetaType::i32},
                               TypeRow{"f32", 6, graph::MetaType::f32},
                               TypeRow{"bool", 7, graph::MetaType::boolean},
                               TypeRow{"string", kString, graph::MetaType::string},
                               TypeRow{"u64", 10, graph::MetaType::u64},
                               TypeRow{"i64", 11, graph::MetaType::i64},
                               TypeRow{"f64", 12, graph::MetaType::f64}};

const TypeRow* row_of(std::uint32_t number) {
  const auto row = std::ranges::find(kTypes, number, &TypeRow::number);
  return row == kTypes.end() ? nullptr : row;
}

// A key-value's type: one of the rows, or an array of it.
struct ValueType {
  const TypeRow* element = nullptr;
  bool array = false;
  bool operator==(const ValueType&) const = default;
  std::string word() const { return std::string(element->word) + (array ? "[]" : ""); }
};

std::string type_words() {
  std::string words;
  for (const TypeRow& row : kTypes) words += fmt::format("{}{}", words.empty() ? "" : ", ", row.word);
  return words;
}

// The place of a key-value in the file.
struct KeyValue {
  std::string key;
  std::uint64_t begin = 0, end = 0;
  ValueType type;
};

struct Header {
  std::vector<KeyValue> key_values;
  std::uint64_t key_values_end = 0;
  std::uint64_t end = 0;   // of the tensors' descriptions
  std::uint64_t data = 0;  // where tensors may begin; the file's end if it has none
  std::uint64_t tensors = 0;
  std::uint64_t alignment = 32;
};

Header read_header(const io::SourceFile& file) {
  io::Cursor in(file);
  if (in.read_text(4, 4, "the magic") != "GGUF") throw in.malformed(0, "does not begin with 'GGUF'");
  if (const auto version = in.read<std::uint32_t>("the version"); version != 2 && version != 3)
    throw Error(ErrorCode::unsupported, {.file = file.path(), .byte = 4},
                "only little-endian files of versions 2 and 3 can be edited");
  Header header;
  header.tensors = in.read<std::uint64_t>("a count");
  const auto count = in.read<std::uint64_t>("a count");
  const auto skip_text = [&] { in.skip(in.read<std::uint64_t>("a length"), "a text"); };
  const auto element_row = [&]() -> const TypeRow* {
    const std::uint64_t at = in.at();
    const TypeRow* const row = row_of(in.read<std::uint32_t>("a type"));
    if (row == nullptr) throw in.malformed(at, "unknown value type");
    return row;
  };
  for (std::uint64_t i = 0; i < count; ++i) {
    KeyValue entry;
    entry.begin = in.at();
    entry.key = in.read_text(in.read<std::uint64_t>("a length"), kMostKey, "a key");
    const std::uint64_t type_at = in.at();
    const auto number = in.read<std::uint32_t>("a type");
    if (number == kArray) {
      entry.type = {element_row(), true};
      const auto elements = in.read<std::uint64_t>("a count");
      if (entry.type.element->number == kString) {
        for (std::uint64_t j = 0; j < elements; ++j) skip_text();
      } else {
        const auto bytes = checked_mul(elements, graph::meta_type_bytes(entry.type.element->type));
        if (!bytes) throw in.malformed(type_at, "an array of {} elements", elements);
        in.skip(*bytes, "an array");
      }
    } else {
      entry.type = {row_of(number), false};
      if (entry.type.element == nullptr) throw in.malformed(type_at, "unknown value type {}", number);
      if (number == kString)
        skip_text();
      else if (entry.key == "general.alignment" && number == 4)
        header.alignment = in.read<std::uint32_t>("the alignment");
      else
        in.skip(graph::meta_type_bytes(entry.type.element->type), "a value");
    }
    entry.end = in.at();
    header.key_values.push_back(std::move(entry));
  }
  header.key_values_end = in.at();
  for (std::uint64_t i = 0; i < header.tensors; ++i) {
    skip_text();
    in.skip(std::uint64_t{8} * in.read<std::uint32_t>("a rank"), "dimensions");
    in.skip(4 + 8, "a type and an offset");
  }
  header.end = in.at();
  if (header.alignment == 0) throw in.malformed(0, "general.alignment is 0");
  header.data = std::min(align_up(header.end, header.alignment), file.size());
  if (header.data > kMostEditedHeader)
    throw Error(ErrorCode::limit, {.file = file.path()}, "a header of {} bytes, the limit is {}", header.data,
                kMostEditedHeader);
  return header;
}

// --- values

// Appends values of one type to bytes; texts and JSON numbers come in, little-endian numbers go out.
class ValueWriter {
 public:
  ValueWriter(const std::string& path, const std::string& key, std::vector<std::byte>& out)
      : path_(path), key_(key), out_(out) {}

  // What a person reads: as meta_text() of the value that an importer will find.
  std::string write(const ValueType& type, const std::string& text) {
    if (!type.array) return scalar(*type.element, text);
    const Json list = small_json<Json>(text);
    if (!list.is_array()) refuse(text, "a JSON array, such as [1, 2]");
    append_u32(out_, type.element->number);
    append_u64(out_, list.size());
    for (const Json& element : list) {
      const bool fits = type.element->type == graph::MetaType::string    ? element.is_string()
                        : type.element->type == graph::MetaType::boolean ? element.is_boolean()
                                                                         : element.is_number();
      if (!fits) refuse(text, fmt::format("a JSON array of {}", type.element->word));
      (void)scalar(*type.element, element.is_string() ? element.get<std::string>() : element.dump());
    }
    return graph::meta_text(graph::MetaArray{.element = type.element->type, .count = list.size()});
  }

 private:
  [[noreturn]] void refuse(const std::string& text, std::string_view wanted) const {
    throw Error(ErrorCode::usage, {.file = path_}, "the key '{}': '{}' is not {}", safe_display(key_, 100),
                safe_display(text, 60), wanted);
  }

  template <typename T>
  std::string number(const TypeRow& row, const std::string& text) {
    T value{};
    const char* const end = text.data() + text.size();
    const auto [at, error] = std::from_chars(text.data(), end, value);
    if (error == std::errc::result_out_of_range) refuse(text, fmt::format("in the range of {}", row.word));
    if (error != std::errc() || at != end) refuse(text, fmt::format("a number of type {}", row.word));
    const auto bytes = std::as_bytes(std::span(&value, 1));
    out_.insert(out_.end(), bytes.begin(), bytes.end());
    return graph::meta_text(value);
  }

  std::string scalar(const TypeRow& row, const std::string& text) {
    switch (row.type) {
      case graph::MetaType::u8:
        return number<std::uint8_t>(row, text);
      case graph::MetaType::i8:
        return number<std::int8_t>(row, text);
      case graph::MetaType::u16:
        return number<std::uint16_t>(row, text);
      case graph::MetaType::i16:
        return number<std::int16_t>(row, text);
      case graph::MetaType::u32:
        return number<std::uint32_t>(row, text);
      case graph::MetaType::i32:
        return number<std::int32_t>(row, text);
      case graph::MetaType::u64:
        return number<std::uint64_t>(row, text);
      case graph::MetaType::i64:
        return number<std::int64_t>(row, text);
      case graph::MetaType::f32:
        return number<float>(row, text);
      case graph::MetaType::f64:
        return number<double>(row, text);
      case graph::MetaType::boolean:
        if (text != "true" && text != "false") refuse(text, "true or false");
        out_.push_back(static_cast<std::byte>(text == "true"));
        return text;
      default:
        append_string(out_, text);
        return text;
    }
  }

  const std::string& path_;
  const std::string& key_;
  std::vector<std::byte>& out_;
};

ValueType parse_type(const io::SourceFile& file, const MetadataChange& change) {
  std::string_view word = *change.type;
  const bool array = word.ends_with("[]");
  if (array) word.remove_suffix(2);
  const auto row = std::ranges::find(kTypes, word, &TypeRow::word);
  if (row == kTypes.end())
    throw Error(ErrorCode::usage, {.file = file.path()},
                "no type is called '{}'; there are {}, and arrays: u32[]", safe_display(*change.type, 40),
                type_words());
  return {row, array};
}

// --- the new header

class HeaderWriter {
 public:
  HeaderWriter(const graph::MetaGraph& graph, const io::SourceFile& file,
               std::span<const MetadataChange> changes)
      : graph_(graph), file_(file), changes_(changes), header_(read_header(file)) {
    edit_.before.resize(static_cast<std::size_t>(header_.data));
    file.read_at(0, edit_.before);
  }

  HeaderEdit edit() {
    refuse_layout_keys();
    copy(0, kFixedBytes);
    for (const KeyValue& entry : header_.key_values) write_old(entry);
    for (const MetadataChange& change : changes_)
      if (change.value && !is_old(change.key)) write_new(change);
    add_slack();
    append_u64_at(kCountAt, count_);
    copy(header_.key_values_end, header_.end);
    edit_.after.resize(edit_.before.size());
    return std::move(edit_);
  }

 private:
  void refuse_layout_keys() const {
    for (const MetadataChange& change : changes_)
      if (change.key == "general.alignment" || change.key == kSlackKey || change.key.starts_with("split.") ||
          change.key.starts_with("GGUF."))
        throw Error(ErrorCode::unsupported, {.file = file_.path()},
                    "the key '{}' says how the file is laid out: it cannot be edited",
                    safe_display(change.key, 100));
  }

  void copy(std::uint64_t begin, std::uint64_t end) {
    edit_.after.insert(edit_.after.end(), edit_.before.begin() + static_cast<std::ptrdiff_t>(begin),
                       edit_.before.begin() + static_cast<std::ptrdiff_t>(end));
  }
  void append_u64_at(std::uint64_t at, std::uint64_t value) {
    std::memcpy(edit_.after.data() + at, &value, sizeof value);
  }
  bool is_old(std::string_view key) const {
    return std::ranges::find(header_.key_values, key, &KeyValue::key) != header_.key_values.end();
  }
  std::optional<std::string> old_text(std::string_view key) const {
    const graph::MetaValue* const value = graph::find_metadata(graph_, key);
    return value == nullptr ? std::nullopt : std::optional(graph::meta_text(*value));
  }

  void write_old(const KeyValue& entry) {
    if (entry.key == kSlackKey) {
      had_slack_ = true;
      return;
    }
    const auto change = std::ranges::find(changes_, entry.key, &MetadataChange::key);
    if (change == changes_.end()) {
      copy(entry.begin, entry.end);
      ++count_;
    } else if (change->value) {
      if (change->type && parse_type(file_, *change) != entry.type)
        throw Error(ErrorCode::usage, {.file = file_.path()}, "the key '{}' is of type {}, not {}",
                    safe_display(entry.key, 100), entry.type.word(), safe_display(*change->type, 40));
      write(entry.type, *change);
    } else {
      edit_.changed.push_back({entry.key, old_text(entry.key), {}});
    }
  }

  void write_new(const MetadataChange& change) {
    if (change.key.size() > kMostKey)
      throw Error(ErrorCode::usage, {.file = file_.path()}, "a key of {} bytes, the limit is {}",
                  change.key.size(), kMostKey);
    if (!change.type)
      throw Error(ErrorCode::usage, {.file = file_.path()},
                  "the key '{}' is new: say its type, KEY:TYPE=VALUE, with one of {}, or an array: u32[]",
                  safe_display(change.key, 100), type_words());
    write(parse_type(file_, change), change);
  }

  void write(const ValueType& type, const MetadataChange& change) {
    append_string(edit_.after, change.key);
    append_u32(edit_.after, type.array ? kArray : type.element->number);
    std::string text = ValueWriter(file_.path(), change.key, edit_.after).write(type, *change.value);
    edit_.changed.push_back({change.key, old_text(change.key), std::move(text)});
    ++count_;
  }

  // Fills the room up to the data with loadline.slack where the alignment alone would not: a text of spaces,
  // or a number where there is no room for a text.
  void add_slack() {
    const std::uint64_t end = edit_.after.size() + (header_.end - header_.key_values_end);
    if (end > header_.data) throw no_room(file_, end, header_.data);
    const std::uint64_t left = header_.data - end;
    const bool needed = header_.tensors > 0 && left >= header_.alignment;
    edit_.room = left;
    if (!needed && !had_slack_) return;
    const std::uint64_t head = 8 + kSlackKey.size() + 4;
    if (left >= head + 8) {
      append_slack(kString);
      append_string(edit_.after, std::string(static_cast<std::size_t>(left - head - 8), ' '));
      edit_.room = left - head - 8;
      return;
    }
    if (!needed) return;
    for (const std::uint64_t bytes : {1ull, 2ull, 4ull})
      if (left >= head + bytes && left - head - bytes < header_.alignment) {
        append_slack(bytes == 1 ? 0 : static_cast<std::uint32_t>(bytes));
        edit_.after.resize(edit_.after.size() + static_cast<std::size_t>(bytes));
        return;
      }
    throw Error(
        ErrorCode::limit, {.file = file_.path()},
        "the new metadata is {} bytes shorter, and nothing fills so small a gap at an alignment of {}: "
        "make one of the values longer",
        left, header_.alignment);
  }
  void append_slack(std::uint32_t type) {
    append_string(edit_.after, kSlackKey);
    append_u32(edit_.after, type);
    ++count_;
  }

  const graph::MetaGraph& graph_;
  const io::SourceFile& file_;
  std::span<const MetadataChange> changes_;
  Header header_;
  HeaderEdit edit_;
  std::uint64_t count_ = 0;  // of key-values written
  bool had_slack_ = false;
};

}  // namespace

bool is_metadata_type(std::string_view word) {
  if (word.ends_with("[]")) word.remove_suffix(2);
  return std::ranges::find(kTypes, word, &TypeRow::word) != kTypes.end();
}

HeaderEdit edit_gguf_header(const graph::MetaGraph& graph, const io::SourceFile& file,
                            std::span<const MetadataChange> changes) {
  return HeaderWriter(graph, file, changes).edit();
}

}  // namespace loadline::exporters
