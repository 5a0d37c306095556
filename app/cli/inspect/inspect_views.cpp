// inspect: writes the text and the JSON output.
#include "app/cli/inspect/inspect_views.h"

#include "app/cli/base/option_flags.h"
#include "app/cli/base/terminal.h"
#include "core/base/text.h"
#include "core/forward/gguf/type_policy.h"
#include "core/graph/meta_graph.h"
#include "core/graph/names/file_names.h"
#include "core/graph/names/tensor_names.h"
#include "core/graph/packed/quantization.h"
#include "core/io/graph_reader.h"
#include "core/io/system_memory.h"
#include "exporters/convert.h"

#include <filesystem>
#include <functional>
#include <map>
#include <numeric>
#include <span>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace loadline::cli {
namespace {

struct Usage {
  std::uint64_t tensors = 0;
  std::uint64_t bytes = 0;
};

// Bytes shared by several tensors count for one of them.
std::map<std::string_view, Usage> usage_by_dtype(const graph::MetaGraph& graph) {
  std::map<std::string_view, Usage> usage;
  const std::vector<graph::Share> parts = graph::shares(graph);
  for (std::size_t i = 0; i < graph.tensors.size(); ++i) {
    Usage& row = usage[graph::dtype_info(graph.tensors[i].dtype).name];
    row.tensors += 1;
    row.bytes += parts[i].bytes;
  }
  return usage;
}

std::vector<std::string> names_of(const graph::MetaGraph& graph, const std::vector<graph::TensorId>& ids) {
  std::vector<std::string> names;
  for (const graph::TensorId id : ids) names.emplace_back(graph.tensor(id).name);
  return names;
}

std::uint64_t stored_elements(const graph::MetaGraph& graph) {
  return std::accumulate(
      graph.tensors.begin(), graph.tensors.end(), std::uint64_t{0},
      [](std::uint64_t sum, const graph::Tensor& tensor) { return sum + graph::elements(tensor); });
}

// The packed weights of one packing and width of codes.
struct PackedUsage {
  std::uint64_t weights = 0, elements = 0, bytes = 0;
};
std::map<std::string, PackedUsage> usage_by_packing(const graph::MetaGraph& graph) {
  std::map<std::string, PackedUsage> usage;
  for (const graph::LogicalTensor& weight : graph.logical) {
    PackedUsage& row = usage[fmt::format("{} {}-bit", graph::packing_name(weight.packing), weight.bits)];
    row.weights += 1;
    row.elements += graph::elements(weight);
    row.bytes += graph::packed_bytes(graph, weight);
  }
  return usage;
}

Json logical_json(const graph::MetaGraph& graph, const graph::LogicalTensor& weight) {
  Json json = {{"name", json_text(weight.name)},
               {"packing", graph::packing_name(weight.packing)},
               {"dtype", graph::dtype_info(weight.dtype).name},
               {"shape", weight.shape},
               {"bits", weight.bits},
               {"bits_per_weight", graph::bits_per_weight(graph, weight)},
               {"companions", Json::array()}};
  for (const graph::CompanionTensor& companion : weight.companions)
    json["companions"].push_back({{"kind", graph::companion_name(companion.kind)},
                                  {"tensor", json_text(graph.tensor(companion.tensor).name)}});
  return json;
}

// What a tensor is in a packed weight: "codes of F16 [64, 256]" or "scales"; empty for other tensors.
std::string packed_text(const graph::LogicalTensor* weight, graph::TensorId id) {
  if (weight == nullptr) return "";
  if (weight->codes == id)
    return fmt::format("{}-bit {} [{}]", weight->bits, graph::dtype_info(weight->dtype).name,
                       fmt::join(weight->shape, ", "));
  for (const graph::CompanionTensor& companion : weight->companions)
    if (companion.tensor == id) {
      std::string words(graph::companion_name(companion.kind));
      std::ranges::replace(words, '_', ' ');
      return words;
    }
  return "";
}

// Bytes of the present files that hold no tensor data: headers, indexes, padding.
std::uint64_t header_bytes(const graph::MetaGraph& graph) {
  std::uint64_t held = 0;
  for (const graph::Storage& storage : graph.storages)
    if (storage.file != graph::kNoFile) held += storage.stored_bytes;
  return graph::file_bytes(graph) - std::min(held, graph::file_bytes(graph));
}

std::string file_name(const graph::MetaGraph& graph, const graph::Storage& storage) {
  return storage.file == graph::kNoFile
             ? ""
             : std::filesystem::path(graph.files[graph::index(storage.file)].path).filename().string();
}

void print_node(const graph::MetaGraph& graph, const graph::ModuleTree& tree, graph::NodeId id, int depth) {
  const graph::ModuleNode& node = tree.node(id);
  const std::string label = std::string(static_cast<std::size_t>(2 * depth), ' ') +
                            (node.name.empty() ? "(no name)" : safe_display(node.name, 80));
  const std::string kind =
      node.tensor ? fmt::format("{} {}", graph::dtype_info(graph.tensor(*node.tensor).dtype).name,
                                shape_text(graph.tensor(*node.tensor)))
                  : counted(node.tensors, "tensor");
  if (id != graph::kRootNode)
    fmt::print("{:<48} {:>12}  {:>9}  {}\n", label, format_bytes(node.bytes), format_count(node.parameters),
               kind);
  const auto alike = [&](graph::NodeId a, graph::NodeId b) {
    const graph::ModuleNode &x = tree.node(a), &y = tree.node(b);
    return !x.tensor && !y.tensor && x.bytes == y.bytes && x.tensors == y.tensors &&
           graph::layer_number(x.name) && graph::layer_number(y.name);
  };
  for (std::size_t i = 0; i < node.children.size();) {
    std::size_t end = i + 1;
    while (end < node.children.size() && alike(node.children[i], node.children[end])) ++end;
    print_node(graph, tree, node.children[i], id == graph::kRootNode ? 0 : depth + 1);
    if (end - i > 1)
      fmt::print("{:<48} {:>12}  {:>9}  {} more like {}\n",
                 std::string(static_cast<std::size_t>(2 * depth + 2), ' ') + "... " +
                     safe_display(tree.node(node.children[end - 1]).name, 40),
                 format_bytes(tree.node(node.children[i]).bytes * (end - i - 1)),
                 format_count(tree.node(node.children[i]).parameters * (end - i - 1)), end - i - 1,
                 safe_display(tree.node(node.children[i]).name, 40));
    i = end;
  }
}

// The settings as a command: " (convert IN OUT --to gguf --align 64)"; empty if there are none.
std::string settings_words(const std::vector<Remedy>& settings) {
  if (settings.empty()) return "";
  const bool converts = find_option(exporters::convert_options(), settings.front().option) != nullptr;
  std::string text = converts ? "convert IN OUT" : "plan IN";
  for (const Remedy& remedy : settings) text += " " + remedy_flag(remedy);
  return fmt::format(" ({})", text);
}

Json settings_json(const std::vector<Remedy>& settings) {
  Json list = Json::array();
  for (const Remedy& remedy : settings) list.push_back({{"option", remedy.option}, {"value", remedy.value}});
  return list;
}

}  // namespace

std::span<const graph::TensorId> shown(const Selection& selection, std::size_t limit) {
  const std::span<const graph::TensorId> all(selection.tensors);
  return limit == 0 ? all : all.first(std::min(limit, all.size()));
}

std::string shape_text(const graph::Tensor& tensor) {
  return fmt::format("[{}]", fmt::join(tensor.shape, ", "));
}

Json summary_json(const OpenedModel& opened) {
  const graph::MetaGraph& graph = *opened.graph;
  Json json = {{"format", graph.format}, {"files", Json::array()}};
  for (std::uint32_t i = 0; i < graph.files.size(); ++i) {
    const graph::ModelFile& file = graph.files[i];
    json["files"].push_back({{"path", json_text(file.path)}, {"bytes", file.bytes}});
    if (const auto role = graph::set_role(graph, graph::FileId{i}); !role.empty())
      json["files"].back()["role"] = role;
  }
  json["tensor_count"] = graph.tensors.size();
  json["parameter_count"] = opened.claims.parameters;
  json["parameters_without"] = json_texts(opened.claims.without);
  json["stored_elements"] = stored_elements(graph);
  json["tensor_bytes"] = graph::storage_bytes(graph);
  json["file_bytes"] = graph::file_bytes(graph);
  json["by_dtype"] = Json::object();
  for (const auto& [name, usage] : usage_by_dtype(graph))
    json["by_dtype"][std::string(name)] = {{"tensors", usage.tensors}, {"bytes", usage.bytes}};
  if (const std::string name = forward::quantization_name(graph, forward::built_in_type_policies());
      !name.empty())
    json["quantization"] = name;
  if (const auto type = graph::model_family(graph)) json["architecture"] = json_text(*type);
  if (!opened.claims.family.empty()) json["family"] = json_text(opened.claims.family);
  if (opened.adapter)
    json["adapter"] = {{"type", "LORA"}, {"rank", opened.adapter->rank}, {"alpha", opened.adapter->alpha}};
  json["unaccounted"] = Json::object();
  for (const forward::Setting& setting : opened.claims.unaccounted)
    json["unaccounted"][json_text(setting.name)] = json_text(setting.shown);
  json["tied"] = Json::array();
  for (const auto& group : graph::tied_groups(graph))
    json["tied"].push_back(json_texts(names_of(graph, group)));
  json["missing"] = json_texts(opened.claims.missing);
  json["unclaimed"] = json_texts(names_of(graph, opened.claims.unclaimed));
  json["unclaimed_files"] = json_texts(inspect::unclaimed_files(graph));
  json["notes"] = notes_json(graph.notes);
  const Json claims = notes_json(opened.claims.notes);
  for (const Json& note : claims) json["notes"].push_back(note);
  json["timing"] = {
      {"open_ms", opened.open_ms}, {"header_bytes", header_bytes(graph)}, {"bytes_read", opened.bytes_read}};
  json["rss_anon_bytes"] = io::read_process_memory().rss_anon;
  return json;
}

JsonRows tensors_json(const Context& context, const graph::MetaGraph& graph, const Selection& selection,
                      std::size_t limit) {
  const Progress progress(context.stop);
  const auto packed = graph::logical_positions(graph);
  JsonRows rows("tensors");
  for (const graph::TensorId id : shown(selection, limit)) {
    progress.check_canceled();
    const graph::Tensor& tensor = graph.tensor(id);
    const graph::Storage& storage = graph.storage(tensor.storage);
    Json row = {{"name", json_text(tensor.name)},
                {"dtype", graph::dtype_info(tensor.dtype).name},
                {"shape", tensor.shape},
                {"bytes", graph::tensor_bytes(graph, tensor)},
                {"file", json_text(file_name(graph, storage))},
                {"offset", storage.offset + tensor.offset},
                {"storage", graph::index(tensor.storage)}};
    if (!tensor.strides.empty()) row["strides"] = tensor.strides;
    if (const auto at = packed[graph::index(id)]; at && graph.logical[*at].codes == id)
      row["logical"] = logical_json(graph, graph.logical[*at]);
    if (storage.encoding != graph::Encoding::plain) {
      row["offset"] = storage.offset;  // of the encoded bytes in the file
      row["encoding"] = graph::encoding_name(storage.encoding);
      row["decoded_offset"] = tensor.offset;
    }
    rows.add(row);
  }
  return rows;
}

namespace {

using Line = std::function<void(std::string_view label, const std::string& text)>;

// A line for each type, and for each way in which weights are packed.
void print_types(const graph::MetaGraph& graph, const Line& line) {
  for (const auto& [name, usage] : usage_by_dtype(graph))
    line(name, fmt::format("{}, {}", counted(usage.tensors, "tensor"), format_bytes(usage.bytes)));
  for (const auto& [name, usage] : usage_by_packing(graph))
    line("packed", fmt::format("{}: {} of {} numbers, {}, {:.2f} bits per number", name,
                               counted(usage.weights, "weight"), format_count(usage.elements),
                               format_bytes(usage.bytes),
                               8 * static_cast<double>(usage.bytes) /
                                   static_cast<double>(std::max<std::uint64_t>(usage.elements, 1))));
}

}  // namespace

void print_summary(const OpenedModel& opened) {
  const graph::MetaGraph& graph = *opened.graph;
  const bool weights = std::ranges::any_of(
      graph.storages, [](const graph::Storage& storage) { return storage.file != graph::kNoFile; });
  const auto usage_of = usage_by_dtype(graph);
  std::size_t width = std::string_view("parameters").size();
  for (const auto& [name, usage] : usage_of) width = std::max(width, name.size());
  const auto line = [width](std::string_view label, const std::string& text) {
    fmt::print("  {:<{}}  {}\n", label, width, text);
  };
  fmt::print("{}\n", safe_display(graph::model_name(graph), 100));
  line("format", graph.format + (weights || graph.tensors.empty() ? "" : " (shapes only, no weights)"));
  const std::string type = safe_display(graph::model_family(graph).value_or(""), 60);
  const std::string family = safe_display(opened.claims.family, 60);
  if (!family.empty() && !type.empty() && family != type)
    line("family", fmt::format("{} ({}){}", family, type, forward::but_for_text(opened.claims)));
  else if (!family.empty() || !type.empty())
    line("family", (family.empty() ? type : family) + forward::but_for_text(opened.claims));
  if (opened.adapter)
    line("adapter", fmt::format("LoRA, rank {}, alpha {}{}", opened.adapter->rank, opened.adapter->alpha,
                                forward::but_for_text(opened.claims)));
  const std::uint64_t parameters = opened.claims.parameters;
  line("parameters", fmt::format("{} ({}){}", format_count(parameters), format_grouped(parameters),
                                 forward::without_text(opened.claims)));
  line("tensors", format_grouped(graph.tensors.size()));
  if (const std::string name = forward::quantization_name(graph, forward::built_in_type_policies());
      !name.empty())
    line("quantized", name);
  line("weights", fmt::format("{} ({} bytes)", format_bytes(graph::storage_bytes(graph)),
                              format_grouped(graph::storage_bytes(graph))));
  line("files", fmt::format("{}, {} on disk, {} of them headers, indexes and gaps", graph.files.size(),
                            format_bytes(graph::file_bytes(graph)), format_bytes(header_bytes(graph))));
  for (std::uint32_t i = 0; i < graph.files.size(); ++i)
    if (const std::string_view role = graph::set_role(graph, graph::FileId{i}); !role.empty())
      line(role,
           fmt::format("{}, {}", safe_display(std::filesystem::path(graph.files[i].path).filename().string()),
                       format_bytes(graph.files[i].bytes)));
  print_types(graph, line);
  for (const auto& group : graph::tied_groups(graph)) line("tied", join_names(names_of(graph, group), 4));
  const std::vector<std::string>& missing = opened.claims.missing;
  if (!missing.empty())
    line("missing", fmt::format("{}: {}", counted(missing.size(), "tensor"), join_names(missing, 3)));
  if (const auto& unclaimed = opened.claims.unclaimed; !unclaimed.empty())
    line("unclaimed", fmt::format("{}, {}: {}", counted(unclaimed.size(), "tensor"),
                                  format_bytes(graph::sum(graph::shares(graph, unclaimed)).bytes),
                                  join_names(names_of(graph, unclaimed), 3)));
  line("opened", fmt::format("in {}, reading {}", format_seconds(opened.open_ms / 1000),
                             format_bytes(opened.bytes_read)));
  constexpr std::size_t kMostNotes = 50;
  std::vector<graph::Note> notes = graph.notes;
  notes.insert(notes.end(), opened.claims.notes.begin(), opened.claims.notes.end());
  for (std::size_t i = 0; i < std::min(notes.size(), kMostNotes); ++i)
    fmt::print("  {}\n", note_text(notes[i]));
  if (notes.size() > kMostNotes)
    fmt::print("  and {}; --json has them all\n", counted(notes.size() - kMostNotes, "more note"));
}

void print_tree(const graph::MetaGraph& graph, const Selection& selection) {
  fmt::print("\n{}", selection.filter.empty() ? "" : "of the tensors that match:\n");
  print_node(graph, graph::module_tree(graph, selection.tensors), graph::kRootNode, 0);
}

void print_tensors(const Context& context, const graph::MetaGraph& graph, const Selection& selection,
                   std::size_t limit) {
  std::vector<std::string> heads = {"name", "dtype", "shape", "bytes", "size", "file", "offset"};
  std::vector<Align> sides = {kLeft, kLeft, kLeft, kRight, kRight, kLeft, kRight};
  if (!graph.logical.empty()) {
    heads.emplace_back("packed");
    sides.push_back(kLeft);
  }
  Table table(heads, sides);
  const auto packed = graph::logical_positions(graph);
  const auto ids = shown(selection, limit);
  const Progress progress(context.stop);
  for (const graph::TensorId id : ids) {
    progress.check_canceled();
    const graph::Tensor& tensor = graph.tensor(id);
    const graph::Storage& storage = graph.storage(tensor.storage);
    std::vector<std::string> cells = {
        tensor.name.empty() ? "(no name)" : safe_display(tensor.name, 80),
        std::string(graph::dtype_info(tensor.dtype).name),
        shape_text(tensor) + (tensor.strides.empty() ? "" : " strided"),
        fmt::format("{}", graph::tensor_bytes(graph, tensor)),
        format_bytes(graph::tensor_bytes(graph, tensor)),
        storage.file == graph::kNoFile ? "-" : safe_display(file_name(graph, storage), 60),
        storage.file == graph::kNoFile               ? "-"
        : storage.encoding != graph::Encoding::plain ? std::string(graph::encoding_name(storage.encoding))
                                                     : fmt::format("{}", storage.offset + tensor.offset)};
    const auto position = packed[graph::index(id)];
    if (!graph.logical.empty())
      cells.push_back(packed_text(position ? &graph.logical[*position] : nullptr, id));
    table.row(std::move(cells));
  }
  fmt::print("\n{}", table.text(context.color));
  if (ids.size() < selection.tensors.size())
    fmt::print("... and {} more\n", selection.tensors.size() - ids.size());
}

void print_metadata(const Context& context, const graph::MetaGraph& graph) {
  constexpr std::uint64_t kElements = 4;
  constexpr std::size_t kColumns = 80;
  Table table({"key", "type", "value"}, {kLeft, kLeft, kLeft});
  for (const graph::MetaEntry& entry : graph.metadata) {
    std::string type(graph::meta_type_name(graph::meta_type(entry.value)));
    std::string value = safe_display(graph::meta_text(entry.value), kColumns);
    if (const auto* array = std::get_if<graph::MetaArray>(&entry.value)) {
      type = fmt::format("{}[{}]", graph::meta_type_name(array->element), array->count);
      value.clear();
      const std::string_view quote = array->element == graph::MetaType::string ? "\"" : "";
      for (const graph::MetaValue& element : io::read_meta_array(graph, *array, 0, kElements))
        value += fmt::format("{}{}{}{}", value.empty() ? "" : ", ", quote,
                             safe_display(graph::meta_text(element), 30), quote);
      if (array->count > kElements) value += ", ...";
    }
    table.row({safe_display(entry.key, 60), std::move(type), std::move(value)});
  }
  fmt::print("\n{}", table.text(context.color));
}

Json metadata_json(const graph::MetaGraph& graph) {
  constexpr std::uint64_t kMostElements = 1024;
  const auto plain = [](const graph::MetaValue& value) {
    return std::visit(
        [](const auto& held) -> Json {
          using Held = std::decay_t<decltype(held)>;
          if constexpr (std::is_same_v<Held, std::string>)
            return json_text(held);
          else if constexpr (std::is_same_v<Held, graph::MetaArray>)
            return nullptr;
          else
            return held;
        },
        value);
  };
  Json json = Json::array();
  for (const graph::MetaEntry& entry : graph.metadata) {
    Json value = plain(entry.value);
    if (const auto* array = std::get_if<graph::MetaArray>(&entry.value)) {
      value = {{"element", graph::meta_type_name(array->element)},
               {"count", array->count},
               {"elements", Json::array()}};
      for (const graph::MetaValue& element : io::read_meta_array(graph, *array, 0, kMostElements))
        value["elements"].push_back(plain(element));
    }
    json.push_back({{"key", json_text(entry.key)},
                    {"type", graph::meta_type_name(graph::meta_type(entry.value))},
                    {"value", std::move(value)}});
  }
  return json;
}

void print_findings(const graph::MetaGraph& graph, const std::vector<inspect::Finding>& findings) {
  fmt::print("\n");
  if (findings.empty()) {
    fmt::print("doctor: no problems found: the model can be loaded as it is\n");
    return;
  }
  for (const inspect::Finding& finding : findings) {
    fmt::print("{}: {}\n", graph::severity_name(finding.severity), finding.text);
    fmt::print("  cost   {}\n", finding.cost);
    fmt::print("  fix    {}{}\n", finding.remedy, settings_words(finding.settings));
    if (finding.example) fmt::print("  e.g.   {}\n", safe_display(graph.tensor(*finding.example).name, 80));
  }
}

Json findings_json(const graph::MetaGraph& graph, const std::vector<inspect::Finding>& findings) {
  Json json = Json::array();
  for (const inspect::Finding& finding : findings) {
    Json row = {{"id", finding.id},
                {"severity", graph::severity_name(finding.severity)},
                {"text", json_text(finding.text)},
                {"cost", finding.cost},
                {"remedy", finding.remedy},
                {"settings", settings_json(finding.settings)},
                {"count", finding.count},
                {"bytes", finding.bytes}};
    if (finding.example) row["example"] = json_text(graph.tensor(*finding.example).name);
    if (!finding.files.empty()) row["files"] = json_texts(finding.files);
    json.push_back(std::move(row));
  }
  return json;
}

}  // namespace loadline::cli
