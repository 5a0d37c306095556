// safetensors (huggingface/safetensors 0.8: README, safetensors/src/tensor.rs).
//
//   [0, 8)        u64 little-endian N, at most 100,000,000
//   [8, 8+N)      UTF-8 JSON object, padded at its end with spaces
//                   "name": {"dtype": "F32", "shape": [2, 3], "data_offsets": [begin, end]}
//                   "__metadata__": {"key": "text"}   optional
//   [8+N, size)   the tensors' bytes, offsets relative to here, without holes, overlap or remainder
#include "importers/huggingface/safetensors.h"

#include "core/base/error.h"
#include "core/base/text.h"
#include "core/graph/text_hash.h"
#include "importers/file_graph.h"
#include "importers/formats.h"

#include <algorithm>
#include <cstring>

#include <fmt/format.h>

namespace loadline {
namespace {

constexpr std::uint64_t kMostHeader = 100'000'000;

std::uint64_t load_u64(std::string_view bytes) {
  std::uint64_t value = 0;
  std::memcpy(&value, bytes.data(), sizeof value);
  return value;
}

std::string shape_text(const Shape& shape) { return fmt::format("[{}]", fmt::join(shape, ",")); }

// Memory reused for the next header on the same thread: a model may have hundreds of shards, and allocating
// anew for each costs more than parsing.
struct Scratch {
  std::unique_ptr<char[]> buffer;
  std::size_t buffer_bytes = 0;
  SafetensorsFields fields;
};
thread_local Scratch scratch;

// Reads one header into a graph. Every Error names the file and, if one is concerned, the tensor.
class HeaderReader : GraphReader {
 public:
  HeaderReader(const SourceFile& file, NameIndex* names) : GraphReader(file, "safetensors"), index_(names) {}

  MetaGraph read() {
    read_text();
    if (!scan_safetensors_header(text_, scratch_.fields)) {
      scratch_.fields.clear();
      json_.emplace().parse(text_, file_.path(), scratch_.fields);
    }
    graph_.notes = std::move(scratch_.fields.notes);
    take_metadata();
    place_entries();
    leave_scratch();
    return std::move(graph_);
  }

 private:
  template <typename... Values>
  Error at_tensor(std::string_view name, fmt::format_string<Values...> detail,
                  const Values&... values) const {
    return Error(ErrorCode::malformed, safetensors_place(file_.path(), text_, name), detail, values...);
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
    const auto needed = static_cast<std::size_t>(n) + SafetensorsJson::kPadding;
    scratch_ = std::exchange(scratch, {});
    if (scratch_.buffer_bytes < needed) {
      scratch_.buffer.reset(new char[needed]);
      scratch_.buffer_bytes = needed;
    }
    char* const buffer = scratch_.buffer.get();
    text_ = {buffer, static_cast<std::size_t>(n)};
    file_.read_at(8, std::as_writable_bytes(std::span(buffer, text_.size())));
    std::fill_n(buffer + n, SafetensorsJson::kPadding, ' ');
    data_start_ = 8 + n;
  }

  void leave_scratch() {
    constexpr std::size_t kMostKept = 1 << 20;
    if (scratch_.buffer_bytes > kMostKept) return;
    scratch_.fields.clear();
    scratch = std::move(scratch_);
  }

  void take_metadata() {
    TextViewSet keys;
    for (const auto& [key, value] : scratch_.fields.metadata) {
      if (!keys.insert(key).second)
        throw at_tensor("__metadata__", "the key '{}' occurs twice", safe_display(key, 100));
      if (key == kConfigKey)  // a header cannot stand in for the model's own configuration
        graph_.note(Severity::warning, {},
                    "the header's metadata has a key 'config.json', which is left out");
      else
        graph_.metadata.push_back({std::string(key), std::string(value)});
    }
  }

  // Checks offsets against shapes: the entry's range must have the size that its dtype and shape need.
  DType check_size(const SafetensorsEntry& entry) {
    if (entry.dtype != last_dtype_text_) {  // neighbours mostly have the same
      last_dtype_text_ = entry.dtype;
      last_dtype_ = dtype_from(&DTypeInfo::safetensors, entry.dtype);
    }
    const std::optional<DType> known = last_dtype_;
    const auto count = element_count(entry.shape);
    if (!count) throw at_tensor(entry.name, "the shape {} overflows 64 bits", shape_text(entry.shape));
    if (!known) {
      graph_.note(Severity::warning, std::string(entry.name), "unknown dtype '{}': shown as bytes",
                  safe_display(entry.dtype, 40));
      return DType::opaque;
    }
    const auto needed = byte_size(*known, *count);
    const auto what = [&] { return fmt::format("{} {}", shape_text(entry.shape), dtype_info(*known).name); };
    if (!needed) throw at_tensor(entry.name, "{} does not fill whole bytes or overflows 64 bits", what());
    if (*needed != entry.end - entry.begin)
      throw at_tensor(entry.name, "needs {} bytes for {}, offsets give {}", *needed, what(),
                      entry.end - entry.begin);
    return *known;
  }

  // Names go into the graph in one piece; the first that occurs twice is an Error.
  std::vector<Name> take_names() const {
    std::vector<std::string_view> texts;
    texts.reserve(scratch_.fields.entries.size());
    for (const SafetensorsEntry& entry : scratch_.fields.entries) texts.push_back(entry.name);
    std::vector<Name> names = Name::many(texts);
    NameIndex index(names.size());
    for (std::uint32_t i = 0; i < names.size(); ++i)
      if (index.add(names[i], names[i].hash(), i, [&](std::uint32_t at) { return texts[at]; }))
        throw at_tensor(texts[i], "the name occurs twice in the header");
    if (index_ != nullptr) *index_ = std::move(index);
    return names;
  }

  // Checks the tensors in file order: each must begin where the previous one ends.
  void place_entries() {
    const std::uint64_t data_bytes = file_.size() - data_start_;
    std::vector<SafetensorsEntry>& entries = scratch_.fields.entries;
    const auto before = [](const SafetensorsEntry& a, const SafetensorsEntry& b) {
      return std::tie(a.begin, a.end, a.name) < std::tie(b.begin, b.end, b.name);
    };
    if (!std::ranges::is_sorted(entries, before)) std::ranges::sort(entries, before);
    std::vector<Name> names = take_names();
    graph_.tensors.reserve(entries.size());
    graph_.storages.reserve(entries.size());
    std::uint64_t at = 0;
    for (std::size_t i = 0; i < entries.size(); ++i) {
      SafetensorsEntry& entry = entries[i];
      if (entry.end < entry.begin)
        throw at_tensor(entry.name, "its data ends at {} before it begins at {}", entry.end, entry.begin);
      if (entry.begin != at)
        throw at_tensor(entry.name, "its data begins at {}, {} at {}", entry.begin,
                        entry.begin < at ? "overlapping what ends" : "leaving a hole after what ends", at);
      const DType dtype = check_size(entry);
      if (entry.end > data_bytes)
        throw at_tensor(entry.name, "its data ends at {}, the file has {} bytes of data", entry.end,
                        data_bytes);
      at = entry.end;
      const StorageId storage =
          graph_.add_storage(plain_storage(FileId{0}, data_start_ + entry.begin, entry.end - entry.begin));
      graph_.tensors.push_back({std::move(names[i]), dtype, std::move(entry.shape), {}, storage, 0});
    }
    if (at != data_bytes)
      graph_.note(Severity::error, {},
                  "{}: {} bytes after the last tensor (data ends at byte {}, the file at {})",
                  safe_display(file_.path()), data_bytes - at, data_start_ + at, file_.size());
  }

  NameIndex* index_;
  std::string_view text_;
  std::optional<SafetensorsJson> json_;  // holds what the entries point to
  Scratch scratch_;
  std::uint64_t data_start_ = 0;
  std::string_view last_dtype_text_;
  std::optional<DType> last_dtype_;
};

}  // namespace

MetaGraph read_safetensors_file(const SourceFile& file, NameIndex* names) {
  return HeaderReader(file, names).read();
}

// The format has no magic: a plausible length followed by an object is the strongest evidence.
Match sniff_safetensors(std::string_view head, std::string_view path) {
  if (head.size() > 8 && load_u64(head) <= kMostHeader) {
    const std::size_t first = head.find_first_not_of(" \t\r\n", 8);
    if (first != std::string_view::npos && head[first] == '{') return Match::yes;
  }
  return path.ends_with(".safetensors") ? Match::maybe : Match::no;
}

MetaGraph read_safetensors(const Source& source) {
  MetaGraph graph = read_safetensors_file(*source.file);
  add_config(source, graph);
  return graph;
}

}  // namespace loadline
