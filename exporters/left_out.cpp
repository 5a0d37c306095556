// One check for each kind of loss.
#include "exporters/left_out.h"

#include "core/base/text.h"
#include "core/graph/packed/find_logical.h"
#include "exporters/common.h"

#include <set>
#include <unordered_set>

#include <fmt/format.h>

namespace loadline {
namespace {

constexpr std::size_t kMostNamed = 3;

// "1 tensor is", "1,024 tensors are"
std::string counted_are(std::uint64_t count, std::string_view noun) {
  return counted(count, noun) + (count == 1 ? " is" : " are");
}

std::vector<std::string> tied_names(const MetaGraph& graph) {
  std::vector<std::string> names;
  for (const auto& group : tied_groups(graph))
    for (std::size_t i = 1; i < group.size(); ++i) names.push_back(graph.tensor(group[i]).name);
  return names;
}

// "format": "pt" names the framework that wrote a safetensors file: no other file needs to say so.
bool tells_of_framework(const MetaGraph& graph, const MetaEntry& entry) {
  return graph.format == "safetensors" && entry.key == "format";
}

std::vector<std::string> lost_keys(const MetaGraph& graph, const Exporter& exporter,
                                   const std::vector<std::string>& held) {
  const std::unordered_set<std::string_view> elsewhere(held.begin(), held.end());
  std::vector<std::string> keys;
  for (const MetaEntry& entry : graph.metadata)
    if (entry.key != kConfigKey && !tells_of_framework(graph, entry) && !elsewhere.contains(entry.key) &&
        !exporter.carries(graph, entry))
      keys.push_back(entry.key);
  return keys;
}

// Integers whose scale is a metadata entry that the output cannot hold.
std::vector<std::string> without_scale(const MetaGraph& graph, const Exporter& exporter) {
  constexpr std::string_view kScale = ".scale";
  std::unordered_set<std::string_view> scaled;
  for (const MetaEntry& entry : graph.metadata) {
    const std::string_view key = entry.key;
    if (key.ends_with(kScale) && !exporter.carries(graph, entry))
      scaled.insert(key.substr(0, key.size() - kScale.size()));
  }
  std::vector<std::string> names;
  if (scaled.empty()) return names;
  for (const Tensor& tensor : graph.tensors)
    if (dtype_info(tensor.dtype).kind == DTypeKind::integer && scaled.contains(tensor.name.view()))
      names.push_back(tensor.name);
  return names;
}

// Integers of up to 16 bits from LiteRT: their scales lie beside the tensors and are not read.
std::vector<std::string> litert_integers(const MetaGraph& graph) {
  std::vector<std::string> names;
  if (graph.format != "tflite") return names;
  for (const Tensor& tensor : graph.tensors) {
    const DTypeInfo& type = dtype_info(tensor.dtype);
    if (type.kind == DTypeKind::integer && type.block_bytes <= 2 * type.block_elements)
      names.push_back(tensor.name);
  }
  return names;
}

// "2 tensors are not cast to F16: F8_E4M3, Q4_K stay as stored"; empty if all requested casts are possible.
std::string not_cast(const MetaGraph& graph, const ExportOptions& options) {
  if (!options.outtype) return "";
  std::set<std::string_view> types;
  std::uint64_t count = 0;
  const auto packed = logical_positions(graph);
  for (std::size_t i = 0; i < graph.tensors.size(); ++i) {
    const Tensor& tensor = graph.tensors[i];
    const DTypeInfo& type = dtype_info(tensor.dtype);
    const bool meant = type.kind == DTypeKind::floating || type.kind == DTypeKind::block;
    if (!meant || packed[i] || can_become(tensor.dtype, *options.outtype)) continue;
    types.insert(type.name);
    ++count;
  }
  if (count == 0) return "";
  return fmt::format("{} not cast to {}: {} as stored", counted_are(count, "tensor"),
                     dtype_info(*options.outtype).name,
                     fmt::format("{} {}", fmt::join(types, ", "), types.size() == 1 ? "stays" : "stay"));
}

}  // namespace

std::vector<std::string> left_out(const MetaGraph& graph, const Exporter& exporter,
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
  say(without_scale(graph, exporter), "quantised tensor",
      "written as integers, without scale and zero point");
  say(litert_integers(graph), "integer tensor",
      "written without the scale and zero point that LiteRT keeps beside quantised ones");
  if (std::string kept = not_cast(graph, options); !kept.empty()) sentences.push_back(std::move(kept));
  return sentences;
}

}  // namespace loadline
