// The key-values of a GGUF file.

#include "core/base/error.h"
#include "core/base/text.h"
#include "core/graph/packed/quantization.h"
#include "core/io/source_file.h"
#include "exporters/exporter.h"
#include "exporters/gguf/gguf.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include <fmt/core.h>

namespace loadline::exporters {

// --- How large a model is, in one word of its GGUF file.

namespace {

std::string short_count(double count) {
  constexpr std::array<std::pair<double, char>, 3> kUnits = {{{1e12, 'T'}, {1e9, 'B'}, {1e6, 'M'}}};
  double scaled = count * 1e-3;
  char unit = 'K';
  for (const auto& [size, letter] : kUnits)
    if (count > size) {
      scaled = count * (1 / size);
      unit = letter;
      break;
    }
  const double whole = std::nearbyint(scaled);
  const int digits = whole < 1 ? 0 : static_cast<int>(std::log10(whole)) + 1;
  return fmt::format("{:.{}f}{}", scaled, std::max(2 - digits, 0), unit);
}

// general.size_label as gguf-py (utility.py) makes it of the tensors of a file with llama.cpp's names:
// "8.0B", or "8x7.2B" where stacks of experts hold 8 each; that number is of what all tokens use and one
// expert.
std::string size_label(std::span<const Slot> slots) {
  double shared = 0, expert = 0;
  std::uint64_t experts = 0, stacks = 0;
  for (const Slot& slot : slots) {
    double elements = 1;
    for (const std::uint64_t side : slot.shape) elements *= static_cast<double>(side);
    const std::size_t rank = slot.shape.size();
    const bool stack = slot.name.view().find("_exps.") != std::string_view::npos && rank >= 3;
    if (!stack) {
      shared += elements;
      continue;
    }
    const std::uint64_t held = slot.shape[rank - 3];
    expert += held == 0 ? 0 : elements / static_cast<double>(held);
    experts += held;
    ++stacks;
  }
  const std::string count = short_count(shared + expert);
  return stacks == 0 || experts < stacks ? count : fmt::format("{}x{}", experts / stacks, count);
}

}  // namespace

// --- GGUF key-values: string key; u32 type; value (ggml docs/gguf.md). An array is u32 element type; u64
// count; elements. Arrays of the source stay in its file until the writer copies them.

namespace {

constexpr std::uint64_t kDefaultAlignment = 32;
constexpr std::uint64_t kLeastAlignment = 8;
constexpr std::string_view kAlignmentKey = "general.alignment";
constexpr std::string_view kFileTypeKey = "general.file_type";
constexpr std::string_view kArchitectureKey = "general.architecture";
constexpr std::string_view kSlackKey = "loadline.slack";
constexpr std::string_view kSplitKeys = "split.";
constexpr std::uint64_t kMostTextKept = 16 << 20;  // of one file, by importers
constexpr std::uint32_t kStringType = 8;
constexpr std::uint32_t kQuantizationVersion = 2;
constexpr std::string_view kQuantizationKey = "general.quantization_version";
constexpr std::size_t kMostKey = 200;
constexpr std::size_t kMostDescription = 1 << 20;
constexpr std::string_view kNameKey = "general.name";
constexpr std::string_view kSizeKey = "general.size_label";
constexpr std::array<std::string_view, 6> kOfTheFile = {kAlignmentKey, kFileTypeKey,     kArchitectureKey,
                                                        kSlackKey,     kQuantizationKey, "general.type"};

// A text of another format's file that says who made the model, what it is called and the like, under the key
// that GGUF has for it: what was a GGUF file before has them.
bool is_description(const graph::MetaEntry& entry) {
  const auto* const text = std::get_if<std::string>(&entry.value);
  return text != nullptr && text->size() <= kMostDescription && entry.key.size() <= kMostKey &&
         entry.key.starts_with("general.") && !is_of_the_file(entry.key) && is_valid_utf8(entry.key) &&
         is_valid_utf8(*text);
}

// The GGUF type number of each MetaType.
constexpr std::array<std::uint32_t, std::variant_size_v<graph::MetaValue>> kTypeNumbers = {
    7, 0, 1, 2, 3, 4, 5, 10, 11, 6, 12, kStringType, 9};
std::uint32_t type_number(graph::MetaType type) { return kTypeNumbers[static_cast<std::size_t>(type)]; }

// Readers require general.architecture; a model without one gets this value.
std::string architecture(const graph::MetaGraph& graph) {
  const auto model_type = graph::model_family(graph);
  return model_type && !model_type->empty() ? *model_type : "unknown";
}

// The dtype that holds the most bytes.
template <typename DTypeOf>
std::optional<graph::DType> main_dtype(const std::vector<Slot>& slots, DTypeOf dtype_of) {
  std::map<graph::DType, std::uint64_t> bytes;
  for (const Slot& slot : slots) bytes[dtype_of(slot)] += slot.bytes;
  const auto most =
      std::ranges::max_element(bytes, [](const auto& a, const auto& b) { return a.second < b.second; });
  return most == bytes.end() ? std::nullopt : std::optional(most->first);
}

// Tells a long text that an importer left in the file from an array of u8: reads the type before the length.
bool is_text(const graph::MetaGraph& graph, const graph::MetaArray& array) {
  constexpr std::uint64_t kTypeAndLength = 4 + 8;
  if (array.element != graph::MetaType::u8 || array.offset < kTypeAndLength) return false;
  const io::SourceFile file = io::SourceFile::open(graph.file(array.file).path);
  io::Cursor in(file, array.offset - kTypeAndLength, array.offset);
  in.set_big_endian(array.big_endian);
  return in.read<std::uint32_t>("a type") == kStringType;
}

class Composer {
 public:
  explicit Composer(const graph::MetaGraph& graph) : graph_(graph) {}

  void add(const std::string& key, const graph::MetaValue& value) {
    ++result_.keys;
    append_string(result_.bytes, key);
    if (const auto* const array = std::get_if<graph::MetaArray>(&value)) return add_array(key, *array);
    append_u32(result_.bytes, type_number(graph::meta_type(value)));
    std::visit([&](const auto& held) { append(held); }, value);
    result_.entries.push_back({key, value});
  }
  void add(const tokenizer::GgufTokenizerKey& key) {
    std::visit([&](const auto& value) { add_value(key.name, value); }, key.value);
  }
  const std::vector<graph::MetaEntry>& entries() const { return result_.entries; }
  GgufMetadata finish() { return std::move(result_); }

 private:
  template <typename T>
  void append(const T& number) {
    std::array<std::byte, sizeof(T)> bytes;
    std::memcpy(bytes.data(), &number, sizeof(T));
    result_.bytes.insert(result_.bytes.end(), bytes.begin(), bytes.end());
  }
  void append(const std::string& text) { append_string(result_.bytes, text); }
  void append(const graph::MetaArray&) {}
  template <typename T>
  void add_value(const std::string& key, const T& value) {
    add(key, graph::MetaValue(value));
  }
  // An array is written at once; importers leave it in the file.
  template <typename T>
  void add_value(const std::string& key, const std::vector<T>& values) {
    const graph::MetaType element = graph::meta_type(graph::MetaValue(T()));
    ++result_.keys;
    append_string(result_.bytes, key);
    append_u32(result_.bytes, type_number(graph::MetaType::array));
    append_u32(result_.bytes, type_number(element));
    append_u64(result_.bytes, values.size());
    const std::uint64_t first = result_.bytes.size();
    for (const T& value : values) append(value);
    result_.entries.push_back({key, graph::MetaArray{element, false, graph::FileId{0}, values.size(),
                                                     first + copied_, result_.bytes.size() - first}});
  }
  void add_array(const std::string& key, const graph::MetaArray& array) {
    if (is_text(graph_, array)) {
      append_u32(result_.bytes, kStringType);
      result_.notes.push_back(graph::make_note(graph::Severity::info, {},
                                               "the text of '{}' has {} bytes and was left in the file",
                                               safe_display(key, 100), array.count));
    } else {
      append_u32(result_.bytes, type_number(graph::MetaType::array));
      append_u32(result_.bytes, type_number(array.element));
    }
    append_u64(result_.bytes, array.count);
    const std::uint64_t at = result_.bytes.size() + copied_;
    copied_ += array.bytes;
    result_.copies.push_back({at, array});
    graph::MetaArray written = array;
    written.big_endian = false;
    written.file = graph::FileId{0};
    written.offset = at;
    result_.entries.push_back({key, written});
  }

  const graph::MetaGraph& graph_;
  GgufMetadata result_;
  std::uint64_t copied_ = 0;
};

const graph::MetaEntry* find_entry(const std::vector<graph::MetaEntry>& entries, std::string_view key) {
  const auto found = std::ranges::find(entries, key, &graph::MetaEntry::key);
  return found == entries.end() ? nullptr : &*found;
}

// The number for the type of most bytes.
std::optional<std::uint32_t> file_type(std::optional<graph::DType> dtype) {
  return dtype ? gguf_file_type(*dtype) : std::nullopt;
}

void add_gguf_keys(Composer& out, const graph::MetaGraph& graph, const std::vector<Slot>& slots,
                   const GgufShape& shape, const std::vector<graph::MetaEntry>& types) {
  const auto before = main_dtype(slots, [&](const Slot& slot) { return stored_dtype(graph, slot); });
  const auto after = main_dtype(slots, [](const Slot& slot) { return slot.dtype; });
  const auto alignment = static_cast<std::uint32_t>(shape.alignment);
  if (graph::find_metadata(graph, kArchitectureKey) == nullptr)
    out.add(std::string(kArchitectureKey), architecture(graph));
  for (const graph::MetaEntry& entry : graph.metadata) {
    if (entry.key == kAlignmentKey) {
      out.add(entry.key, alignment);
    } else if (const graph::MetaEntry* const other = find_entry(types, entry.key)) {
      out.add(other->key, other->value);
    } else if (entry.key == kFileTypeKey && before != after) {
      if (const auto type = file_type(after)) out.add(entry.key, *type);
    } else if (!(shape.part && entry.key.starts_with(kSplitKeys)) &&
               !(shape.slack && entry.key == kSlackKey)) {
      out.add(entry.key, entry.value);
    }
  }
  if (graph::find_metadata(graph, kAlignmentKey) == nullptr && shape.alignment != kDefaultAlignment)
    out.add(std::string(kAlignmentKey), alignment);
  for (const graph::MetaEntry& entry : types)
    if (graph::find_metadata(graph, entry.key) == nullptr) out.add(entry.key, entry.value);
}

void add_first_keys(Composer& out, const graph::MetaGraph& graph, const std::vector<Slot>& slots,
                    const GgufShape& shape, const GgufModelKeys& keys) {
  if (keys.model.empty()) out.add(std::string(kArchitectureKey), architecture(graph));
  for (const graph::MetaEntry& entry : keys.model) out.add(entry.key, entry.value);
  const bool named = graph::find_text(graph, kNameKey) != nullptr;
  if (const std::string name = graph::model_name(graph); !named && is_valid_utf8(name))
    out.add(std::string(kNameKey), name);
  for (const graph::MetaEntry& entry : graph.metadata)
    if (is_description(entry)) out.add(entry.key, entry.value);
  if (!keys.model.empty() && graph::find_text(graph, kSizeKey) == nullptr)
    out.add(std::string(kSizeKey), size_label(slots));
  out.add(std::string(kAlignmentKey), static_cast<std::uint32_t>(shape.alignment));
  const auto type = file_type(main_dtype(slots, [](const Slot& slot) { return slot.dtype; }));
  if (type && find_entry(keys.types, kFileTypeKey) == nullptr) out.add(std::string(kFileTypeKey), *type);
  const auto is_block = [](const Slot& slot) {
    return graph::dtype_info(slot.dtype).kind == graph::DTypeKind::block;
  };
  if ((!keys.model.empty() || std::ranges::any_of(slots, is_block)) &&
      find_entry(keys.types, kQuantizationKey) == nullptr)
    out.add(std::string(kQuantizationKey), kQuantizationVersion);
  for (const graph::MetaEntry& entry : keys.types) out.add(entry.key, entry.value);
  for (const tokenizer::GgufTokenizerKey& key : keys.tokenizer) out.add(key);
}

void add_part_keys(Composer& out, const GgufPart& part) {
  out.add("split.no", part.number);
  out.add("split.count", part.count);
  out.add("split.tensors.count", part.tensors);
}

void add_slack(Composer& out, std::uint64_t bytes) {
  if (bytes == 0) return;
  std::uint64_t texts = bytes;
  for (const graph::MetaEntry& entry : out.entries())
    if (const auto* const text = std::get_if<std::string>(&entry.value)) texts += text->size();
  if (bytes > kMostSlack || texts > kMostTextKept)
    throw Error(ErrorCode::limit, "{} bytes of slack, with all texts {}: the limits are {} and {}", bytes,
                texts, kMostSlack, kMostTextKept);
  out.add(std::string(kSlackKey), std::string(static_cast<std::size_t>(bytes), ' '));
}

}  // namespace

bool gguf_carries(const graph::MetaGraph& graph, const graph::MetaEntry& entry) {
  return graph.format == "gguf" || is_description(entry);
}

bool is_of_the_file(std::string_view key) {
  return std::ranges::find(kOfTheFile, key) != kOfTheFile.end() || key.starts_with(kSplitKeys);
}

std::uint64_t gguf_alignment(const graph::MetaGraph& graph) {
  const graph::MetaValue* const value =
      graph.format == "gguf" ? graph::find_metadata(graph, kAlignmentKey) : nullptr;
  const auto* const said = value == nullptr ? nullptr : std::get_if<std::uint32_t>(value);
  if (said == nullptr || !std::has_single_bit(*said)) return kDefaultAlignment;
  return std::max<std::uint64_t>(*said, kLeastAlignment);
}

GgufMetadata gguf_metadata(const graph::MetaGraph& graph, const std::vector<Slot>& slots,
                           const GgufShape& shape, const GgufModelKeys& keys) {
  const bool copies = graph.format == "gguf";
  Composer out(graph);
  if (copies)
    add_gguf_keys(out, graph, slots, shape, keys.types);
  else
    add_first_keys(out, graph, slots, shape, keys);
  if (shape.part) add_part_keys(out, *shape.part);
  add_slack(out, shape.slack.value_or(copies ? 0 : kDefaultSlack));
  return out.finish();
}

GgufMetadata gguf_part_metadata(const GgufPart& part, std::uint64_t alignment) {
  const graph::MetaGraph none;
  Composer out(none);
  if (alignment != kDefaultAlignment)
    out.add(std::string(kAlignmentKey), static_cast<std::uint32_t>(alignment));
  add_part_keys(out, part);
  GgufMetadata metadata = out.finish();
  metadata.entries.clear();
  return metadata;
}

}  // namespace loadline::exporters
