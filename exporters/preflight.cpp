// Checks, the layout, what it leaves out, tables by type and by kind of tensor.
#include "exporters/preflight.h"

#include "core/base/error.h"
#include "core/base/text.h"
#include "core/graph/names/file_names.h"
#include "core/graph/packed/quantization.h"
#include "exporters/exporter.h"
#include "exporters/model_folder.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string_view>
#include <tuple>
#include <unordered_set>

#include <fmt/format.h>

namespace loadline::exporters {

// --- One check for each kind of loss.

namespace {

constexpr std::size_t kMostNamed = 3;

// "1 tensor is", "1,024 tensors are"
std::string counted_are(std::uint64_t count, std::string_view noun) {
  return counted(count, noun) + (count == 1 ? " is" : " are");
}

std::vector<std::string> tied_names(const graph::MetaGraph& graph) {
  std::vector<std::string> names;
  for (const auto& group : graph::tied_groups(graph))
    for (std::size_t i = 1; i < group.size(); ++i) names.push_back(graph.tensor(group[i]).name);
  return names;
}

// "format": "pt" names the framework that wrote a safetensors file: no other file needs to say so.
bool tells_of_framework(const graph::MetaGraph& graph, const graph::MetaEntry& entry) {
  return graph.format == "safetensors" && entry.key == "format";
}

std::vector<std::string> lost_keys(const graph::MetaGraph& graph, const Exporter& exporter,
                                   const std::vector<std::string>& held) {
  const std::unordered_set<std::string_view> elsewhere(held.begin(), held.end());
  std::vector<std::string> keys;
  for (const graph::MetaEntry& entry : graph.metadata)
    if (entry.key != graph::kConfigKey && !tells_of_framework(graph, entry) &&
        !elsewhere.contains(entry.key) && !exporter.carries(graph, entry))
      keys.push_back(entry.key);
  return keys;
}

// Integers whose scale is a metadata entry that the output cannot hold.
std::vector<std::string> without_scale(const graph::MetaGraph& graph, const Exporter& exporter) {
  constexpr std::string_view kScale = ".scale";
  std::unordered_set<std::string_view> scaled;
  for (const graph::MetaEntry& entry : graph.metadata) {
    const std::string_view key = entry.key;
    if (key.ends_with(kScale) && !exporter.carries(graph, entry))
      scaled.insert(key.substr(0, key.size() - kScale.size()));
  }
  std::vector<std::string> names;
  if (scaled.empty()) return names;
  for (const graph::Tensor& tensor : graph.tensors)
    if (graph::dtype_info(tensor.dtype).kind == graph::DTypeKind::integer &&
        scaled.contains(tensor.name.view()))
      names.push_back(tensor.name);
  return names;
}

// Integers of up to 16 bits from LiteRT: their scales lie beside the tensors and are not read.
std::vector<std::string> litert_integers(const graph::MetaGraph& graph) {
  std::vector<std::string> names;
  if (graph.format != "tflite") return names;
  for (const graph::Tensor& tensor : graph.tensors) {
    const graph::DTypeInfo& type = graph::dtype_info(tensor.dtype);
    if (type.kind == graph::DTypeKind::integer && type.block_bytes <= 2 * type.block_elements)
      names.push_back(tensor.name);
  }
  return names;
}

// "2 tensors are not cast to F16: F8_E4M3, Q4_K stay as stored"; empty if all requested casts are possible.
std::string not_cast(const graph::MetaGraph& graph, const ExportOptions& options) {
  if (!options.outtype) return "";
  std::set<std::string_view> types;
  std::uint64_t count = 0;
  const auto packed = graph::logical_positions(graph);
  for (std::size_t i = 0; i < graph.tensors.size(); ++i) {
    const graph::Tensor& tensor = graph.tensors[i];
    const graph::DTypeInfo& type = graph::dtype_info(tensor.dtype);
    const bool meant = type.kind == graph::DTypeKind::floating || type.kind == graph::DTypeKind::block;
    if (!meant || packed[i] || can_become(tensor.dtype, *options.outtype)) continue;
    types.insert(type.name);
    ++count;
  }
  if (count == 0) return "";
  return fmt::format("{} not cast to {}: {} as stored", counted_are(count, "tensor"),
                     graph::dtype_info(*options.outtype).name,
                     fmt::format("{} {}", fmt::join(types, ", "), types.size() == 1 ? "stays" : "stay"));
}

}  // namespace

std::vector<std::string> left_out(const graph::MetaGraph& graph, const Exporter& exporter,
                                  const ExportOptions& options, const std::vector<std::string>& held_keys) {
  std::vector<std::string> sentences;
  const auto say = [&](const std::vector<std::string>& names, std::string_view noun, std::string_view what) {
    if (!names.empty())
      sentences.push_back(
          fmt::format("{} {}: {}", counted_are(names.size(), noun), what, join_names(names, kMostNamed)));
  };
  if (!exporter.keeps_ties) say(tied_names(graph), "tensor", "tied to another and written once");
  const std::vector<std::string> keys = lost_keys(graph, exporter, held_keys);
  say(keys, "metadata key",
      fmt::format("not written, {} has no place for {}", exporter.id, keys.size() == 1 ? "it" : "them"));
  say(without_scale(graph, exporter), "quantized tensor",
      "written as integers, without scale and zero point");
  say(litert_integers(graph), "integer tensor",
      "written without the scale and zero point that LiteRT keeps beside quantized ones");
  if (std::string kept = not_cast(graph, options); !kept.empty()) sentences.push_back(std::move(kept));
  return sentences;
}

// --- Lays the output out and sums it up by type.

namespace {

// What becomes of the files beside the model.
void add_files_left_out(const Layout& layout, const FolderFiles& beside,
                        const std::vector<std::string>& packing, std::vector<std::string>& sentences) {
  constexpr std::size_t kMostFilesNamed = 3;
  const auto say = [&](const std::vector<std::string>& names, std::string_view why) {
    if (!names.empty())
      sentences.push_back(fmt::format("{} of the model's folder {} not copied{}: {}",
                                      counted(names.size(), "file"), names.size() == 1 ? "is" : "are", why,
                                      join_names(names, kMostFilesNamed)));
  };
  std::vector<std::string> names;
  for (const FolderFile& file : beside.files)
    if (std::ranges::find(layout.held_files, file.name) == layout.held_files.end())
      names.push_back(file.name);
  if (layout.folder.empty()) say(names, ", the output is not a model folder");
  say(packing, ", the weights are not packed any more");
  say(beside.left_out, "");
}

// An output is one model.
void refuse_set(const graph::MetaGraph& graph) {
  for (std::uint32_t i = 0; i < graph.files.size(); ++i)
    if (const std::string_view role = graph::set_role(graph, graph::FileId{i}); !role.empty())
      throw Error(ErrorCode::unsupported, {.file = graph.files[i].path},
                  "goes with the model as its '{}': convert one file at a time, '{}' first", role,
                  safe_display(graph.files.front().path));
}

// Rotated weights stay what they are in a copy that keeps the metadata and the types.
void refuse_transformed(const graph::MetaGraph& graph, const Exporter& exporter,
                        const ExportOptions& options) {
  const graph::MetaEntry* const key = graph::declared_transform(graph);
  if (key == nullptr) return;
  if (exporter.carries(graph, *key) && options.keeps_types() && options.recipes == nullptr) return;
  throw Error(ErrorCode::unsupported,
              "the key '{}' says that weights are stored rotated: only a GGUF file with the same types keeps "
              "their meaning",
              safe_display(key->key, 100));
}

}  // namespace

std::vector<std::string> remarks(const Preflight& planned) {
  std::vector<std::string> sentences = planned.left_out;
  for (const graph::Note& note : planned.layout.notes) sentences.push_back(note.text);
  return sentences;
}

Preflight preflight(const Conversion& conversion) {
  const graph::MetaGraph& graph = *conversion.graph;
  const Exporter& exporter = *conversion.exporter;
  const ExportOptions& options = conversion.options;
  const std::string& out = conversion.out;
  graph::require_sound(graph, "convert");
  refuse_set(graph);
  refuse_own_folder(graph, out);
  refuse_transformed(graph, exporter, options);
  Preflight result;
  result.layout = exporter.layout(graph, options, out);
  if (options.link_files && result.layout.folder.empty())
    throw Error(ErrorCode::usage, {.file = out},
                "is a single file: only folders have files that can be linked");
  FolderFiles beside = folder_files(graph, options.follow_links, options.tokenizer_folder);
  const bool unpacks = !graph.logical.empty() && result.layout.result.logical.empty();
  const std::vector<std::string> packing =
      unpacks ? remove_packing_files(beside.files) : std::vector<std::string>();
  if (!result.layout.folder.empty()) add_folder_files(result.layout, beside.files, options.link_files);
  std::map<std::tuple<graph::DType, graph::DType, bool>, TypeChange> changes;
  for (const LayoutFile& file : result.layout.files)
    for (const Slot& slot : file.slots) {
      const bool unpacked = slot.recipe.steps.front().kind == convert::StepKind::unpack;
      TypeChange& change = changes[{stored_dtype(graph, slot), slot.dtype, unpacked}];
      change = {stored_dtype(graph, slot), slot.dtype, unpacked, change.tensors + 1,
                change.bytes + slot.bytes};
    }
  for (const auto& [types, change] : changes) result.changes.push_back(change);
  std::ranges::stable_sort(result.changes,
                           [](const TypeChange& a, const TypeChange& b) { return a.bytes > b.bytes; });
  result.left_out = left_out(graph, exporter, options, result.layout.held_keys);
  std::ranges::copy(result.layout.left_out, std::back_inserter(result.left_out));
  add_files_left_out(result.layout, beside, packing, result.left_out);
  if (!beside.replaced.empty())
    result.layout.notes.push_back({graph::Severity::info,
                                   {},
                                   fmt::format("the tokenizer's files are those of '{}': {}",
                                               safe_display(options.tokenizer_folder, 100),
                                               join_names(beside.replaced, beside.replaced.size()))});
  if (options.strict && !result.left_out.empty())
    throw Error(ErrorCode::unsupported, "{}; without --strict it is left out", result.left_out.front());
  return result;
}

// --- Sums slots up.

namespace {

std::uint64_t weights_of(const Slot& slot) {
  return slot.dtype == graph::DType::opaque ? slot.bytes : graph::element_count(slot.shape).value_or(0);
}

void add(TypeShare& share, const Slot& slot) {
  share.type = slot.dtype;
  ++share.tensors;
  share.weights += weights_of(slot);
  share.bytes += slot.bytes;
}

// The name with * for each part that is a number, and the first of these numbers.
std::pair<std::string, std::optional<std::uint64_t>> pattern_of(std::string_view name) {
  std::string pattern;
  std::optional<std::uint64_t> first;
  for (const std::string_view part : split(name, '.')) {
    const auto number = text_as<std::uint64_t>(part);
    if (number && !first) first = number;
    pattern.append(pattern.empty() ? "" : ".").append(number ? "*" : part);
  }
  return {std::move(pattern), first};
}

template <typename Each>
void for_each_slot(const Layout& layout, Each each) {
  for (const LayoutFile& file : layout.files)
    for (const Slot& slot : file.slots) each(slot);
}

}  // namespace

std::vector<TypeShare> type_shares(const Layout& layout) {
  std::map<graph::DType, TypeShare> by_type;
  for_each_slot(layout, [&](const Slot& slot) { add(by_type[slot.dtype], slot); });
  std::vector<TypeShare> shares;
  for (const auto& [type, share] : by_type) shares.push_back(share);
  std::ranges::stable_sort(shares, [](const TypeShare& a, const TypeShare& b) { return a.bytes > b.bytes; });
  return shares;
}

std::vector<TensorGroup> tensor_groups(const graph::MetaGraph& graph, const Layout& layout) {
  std::vector<TensorGroup> groups;
  std::map<std::tuple<std::string, graph::DType, graph::DType>, std::size_t> positions;
  struct Seen {
    std::size_t first = 0, groups = 0;
  };
  std::map<std::string, Seen> patterns;
  for_each_slot(layout, [&](const Slot& slot) {
    auto [pattern, layer] = pattern_of(slot.name.view());
    const graph::DType from = stored_dtype(graph, slot);
    const auto [at, fresh] = positions.emplace(std::tuple(pattern, from, slot.dtype), groups.size());
    if (fresh) {
      ++patterns.emplace(pattern, Seen{groups.size()}).first->second.groups;
      groups.push_back({.pattern = std::move(pattern), .from = from, .layers = {}});
    }
    TensorGroup& group = groups[at->second];
    add(group.share, slot);
    if (layer) group.layers.push_back(*layer);
  });
  for (TensorGroup& group : groups) {
    group.alone = patterns[group.pattern].groups == 1;
    std::ranges::sort(group.layers);
    group.layers.erase(std::unique(group.layers.begin(), group.layers.end()), group.layers.end());
  }
  std::ranges::stable_sort(groups, {},
                           [&](const TensorGroup& group) { return patterns[group.pattern].first; });
  return groups;
}

double bits_per_weight(std::uint64_t bytes, std::uint64_t weights) {
  return weights == 0 ? 0 : 8.0 * static_cast<double>(bytes) / static_cast<double>(weights);
}

bool has_blocks(const Layout& layout) {
  bool any = false;
  for_each_slot(layout, [&](const Slot& slot) {
    any |= graph::dtype_info(slot.dtype).kind == graph::DTypeKind::block;
  });
  return any;
}

bool quantizes(const Layout& layout) {
  bool any = false;
  for_each_slot(
      layout, [&](const Slot& slot) { any |= slot.recipe.steps.back().kind == convert::StepKind::quantize; });
  return any;
}

}  // namespace loadline::exporters
