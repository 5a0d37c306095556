// safetensors (huggingface/safetensors 0.8, safetensors/src/tensor.rs `prepare`) and the shard index
// of huggingface_hub (serialization/_base.py).
//
//   u64 LE N | JSON padded with spaces so that 8+N is a multiple of the alignment (8 by default) |
//   tensors back to back, by alignment class of their dtype (largest first), then by name
#include "core/base/checked_arithmetic.h"
#include "core/base/error.h"
#include "core/base/text.h"
#include "exporters/exporter.h"
#include "exporters/formats/formats.h"
#include "exporters/gguf/hugging_face.h"
#include "exporters/model_folder.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <iterator>
#include <map>
#include <unordered_set>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace loadline::exporters {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::uint64_t kDefaultAlignment = 8;
constexpr std::uint64_t kMostHeader = 100'000'000;

// The dtypes in the order of the reference's enum ("increasing alignment"). The reference writes the last
// first.
constexpr std::array kAlignmentOrder = {
    graph::DType::boolean, graph::DType::f4_e2m1,     graph::DType::f6_e2m3,     graph::DType::f6_e3m2,
    graph::DType::u8,      graph::DType::i8,          graph::DType::f8_e5m2,     graph::DType::f8_e4m3,
    graph::DType::f8_e8m0, graph::DType::f8_e4m3fnuz, graph::DType::f8_e5m2fnuz, graph::DType::i16,
    graph::DType::u16,     graph::DType::f16,         graph::DType::bf16,        graph::DType::i32,
    graph::DType::u32,     graph::DType::f32,         graph::DType::c64,         graph::DType::f64,
    graph::DType::i64,     graph::DType::u64};

std::size_t alignment_rank(graph::DType dtype) {
  return static_cast<std::size_t>(std::ranges::find(kAlignmentOrder, dtype) - kAlignmentOrder.begin());
}

class LayoutBuilder {
 public:
  // `held_keys`: metadata that other files of the output hold.
  LayoutBuilder(const graph::MetaGraph& graph, const ExportOptions& options,
                std::vector<std::string> held_keys)
      : graph_(graph), options_(options) {
    check_alignment(options.alignment);
    layout_.result.format = "safetensors";
    layout_.held_keys = std::move(held_keys);
    metadata_ = output_metadata();
  }

  // Checks what is to be written; offsets are not assigned yet.
  std::vector<Slot> items(std::vector<Slot> items) const {
    for (const Slot& item : items) {
      if (!safetensors_supports(item.dtype)) refuse_dtype(item, "safetensors", graph::DType::bf16);
      if (!is_valid_utf8(item.name) || item.name == "__metadata__")
        throw Error(ErrorCode::unsupported, {.tensor = item.name},
                    "safetensors names are UTF-8 and not '__metadata__'");
    }
    return items;
  }

  void add_file(std::vector<Slot> items, const std::string& path) {
    std::ranges::sort(items, [&](const Slot& a, const Slot& b) {
      const std::size_t x = alignment_rank(a.dtype), y = alignment_rank(b.dtype);
      return x != y ? x > y : a.name < b.name;
    });
    LayoutFile file;
    file.path = path;
    file.header = header(items);
    const graph::FileId id{static_cast<std::uint32_t>(layout_.result.files.size())};
    std::uint64_t at = file.header.size();
    for (Slot& item : items) {
      item.offset = at;
      add_result(layout_.result, id, item);
      at += item.bytes;
    }
    file.slots = std::move(items);
    file.bytes = at;
    layout_.result.files.push_back({path, at});
    layout_.files.push_back(std::move(file));
  }

  // A file that holds text only.
  void add_text(const std::string& path, std::string_view text) {
    LayoutFile file;
    file.path = path;
    append_bytes(file.header, text);
    file.bytes = file.header.size();
    layout_.files.push_back(std::move(file));
  }

  // `config` is the text of config.json beside the files; empty if there is none.
  Layout finish(const std::string& config) {
    layout_.result.metadata = metadata_;
    if (!config.empty()) layout_.result.metadata.push_back({std::string(graph::kConfigKey), config});
    add_logical(graph_, layout_.result);
    return std::move(layout_);
  }

  Layout& layout() { return layout_; }

 private:
  // The __metadata__ of the source, and the "format" key that transformers needs.
  std::vector<graph::MetaEntry> output_metadata() const {
    const std::unordered_set<std::string_view> elsewhere(layout_.held_keys.begin(), layout_.held_keys.end());
    std::vector<graph::MetaEntry> entries;
    for (const graph::MetaEntry& entry : graph_.metadata)
      if (entry.key != graph::kConfigKey && safetensors_carries(graph_, entry) &&
          !elsewhere.contains(entry.key))
        entries.push_back(entry);
    if (graph::find_metadata(graph_, "format") == nullptr) entries.push_back({"format", std::string("pt")});
    return entries;
  }

  std::vector<std::byte> header(const std::vector<Slot>& items) const {
    // composed by hand: nlohmann's ordered object searches all earlier keys for each new key
    std::string text = "{\"__metadata__\":{";
    for (const graph::MetaEntry& entry : metadata_)
      text += fmt::format("{}{}:{}", &entry == &metadata_.front() ? "" : ",", Json(entry.key).dump(),
                          Json(std::get<std::string>(entry.value)).dump());
    text += '}';
    std::uint64_t at = 0;
    for (const Slot& item : items) {
      text += fmt::format(R"(,{}:{{"dtype":"{}","shape":[{}],"data_offsets":[{},{}]}})",
                          Json(item.name).dump(), graph::dtype_info(item.dtype).safetensors,
                          fmt::join(item.shape, ","), at, at + item.bytes);
      at += item.bytes;
    }
    text += '}';
    text.append(align_up(8 + text.size(), std::max(options_.alignment, kDefaultAlignment)) - 8 - text.size(),
                ' ');
    if (text.size() > kMostHeader)
      throw Error(ErrorCode::limit, "the header needs {} bytes, safetensors allows {}: write shards",
                  text.size(), kMostHeader);
    std::vector<std::byte> bytes;
    append_u64(bytes, text.size());
    append_bytes(bytes, text);
    return bytes;
  }

  const graph::MetaGraph& graph_;
  const ExportOptions& options_;
  std::vector<graph::MetaEntry> metadata_;
  Layout layout_;
};

// huggingface_hub's greedy split, in the source's order: a tensor larger than the cap stands alone.
std::vector<std::vector<Slot>> split_items(const std::vector<Slot>& items, std::uint64_t cap) {
  std::vector<std::vector<Slot>> shards;
  std::vector<Slot> open;
  std::uint64_t open_bytes = 0;
  for (const Slot& item : items) {
    if (cap != 0 && item.bytes > cap) {
      shards.push_back({item});
      continue;
    }
    if (cap != 0 && open_bytes + item.bytes > cap) {
      shards.push_back(std::exchange(open, {}));
      open_bytes = 0;
    }
    open.push_back(item);
    open_bytes += item.bytes;
  }
  if (!open.empty() || shards.empty()) shards.push_back(std::move(open));
  return shards;
}

void add_shards(LayoutBuilder& builder, const std::vector<std::vector<Slot>>& shards,
                const std::filesystem::path& folder) {
  std::map<std::string, std::string> weight_map;  // sorted by tensor, as the reference writes it
  std::uint64_t total = 0;
  // the index is the first file of the result and the last to appear on disk
  builder.layout().result.files.emplace_back();
  for (std::size_t i = 0; i < shards.size(); ++i) {
    const std::string name = fmt::format("model-{:05}-of-{:05}.safetensors", i + 1, shards.size());
    builder.add_file(shards[i], (folder / name).string());
    for (const Slot& item : shards[i]) {
      weight_map[item.name] = name;
      total += item.bytes;
    }
  }
  const Json index = {{"metadata", {{"total_size", total}}}, {"weight_map", weight_map}};
  const std::string text = index.dump(2) + "\n";
  const std::string path = (folder / "model.safetensors.index.json").string();
  builder.add_text(path, text);
  builder.layout().result.files.front() = {path, text.size()};
}

void note_own_names(const graph::MetaGraph& gguf, Layout& layout) {
  const std::string* const architecture = graph::find_text(gguf, "general.architecture");
  layout.notes.push_back(
      graph::make_note(graph::Severity::info, {},
                       "a GGUF file of the architecture '{}' keeps its names, and gets no config.json: "
                       "no map leads from these tensors to Hugging Face's names",
                       safe_display(architecture == nullptr ? "" : *architecture, 60)));
}

}  // namespace

bool safetensors_carries(const graph::MetaGraph&, const graph::MetaEntry& entry) {
  const auto* const text = std::get_if<std::string>(&entry.value);
  return text != nullptr && is_valid_utf8(entry.key) && is_valid_utf8(*text);
}

bool safetensors_supports(graph::DType dtype) { return !graph::dtype_info(dtype).safetensors.empty(); }

Layout safetensors_layout(const graph::MetaGraph& graph, const ExportOptions& options,
                          const std::string& out) {
  auto restored = hugging_face_model(graph, options);
  const bool is_restored = restored.has_value();
  HuggingFaceModel model = is_restored ? std::move(*restored) : HuggingFaceModel();
  const bool is_file = out.ends_with(".safetensors");
  if (is_file) model.held_keys.clear();  // nothing lies beside it
  LayoutBuilder builder(graph, options, model.held_keys);
  builder.layout().left_out = model.lost;
  for (const std::string& remark : model.remarks)
    builder.layout().notes.push_back({graph::Severity::info, {}, remark});
  if (!is_restored && graph.format == "gguf" && !options.keep_names.value_or(false))
    note_own_names(graph, builder.layout());
  if (!is_restored) {
    model.slots = output_slots(graph, options);
    std::ranges::move(packing_notes(graph, model.slots, options), std::back_inserter(builder.layout().notes));
    if (const std::string* const text = graph::find_text(graph, graph::kConfigKey))
      model.config = options.outtype ? cast_config(*text, *options.outtype, !graph.logical.empty()) : *text;
  }
  const std::vector<Slot> items = builder.items(std::move(model.slots));
  if (is_file) {
    if (options.max_shard_bytes != 0)
      throw Error(ErrorCode::usage, "shards need a folder to go to, '{}' is one file", safe_display(out));
    builder.add_file(items, out);
    return builder.finish("");
  }

  const std::filesystem::path folder(out);
  builder.layout().folder = out;
  if (!model.config.empty()) builder.add_text((folder / "config.json").string(), model.config);
  for (const auto& file : model.texts) builder.add_text((folder / file.name).string(), file.text);
  const auto shards = split_items(items, options.max_shard_bytes);
  if (shards.size() == 1)
    builder.add_file(shards.front(), (folder / "model.safetensors").string());
  else
    add_shards(builder, shards, folder);
  return builder.finish(model.config);
}

}  // namespace loadline::exporters
