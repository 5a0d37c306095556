// torch.export archives (torch 2.13: torch/export/pt2_archive/_package.py, torch/_export/serde/schema.py).
//
//   ROOT/archive_format                          "pt2"
//   ROOT/archive_version                         "0"
//   ROOT/models/NAME.json                        the graph: not read
//   ROOT/data/weights/NAME_weights_config.json   NAME_model_param_config.json in older ones
//       {"config": {"fqn": {"path_name": "weight_0", "is_param": ..., "use_pickle": false, "tensor_meta":
//         {"dtype": 7, "sizes": [{"as_int": 3}], "strides": [...], "storage_offset": {...}, "layout": 7}}}}
//   ROOT/data/weights/weight_0                   a whole storage, stored; several names may view it
//   ROOT/data/constants/...                      the same, as tensor_0 and NAME_constants_config.json
//   ROOT/data/weights/NAME.pt, constants/NAME.pt   torch.save archives, as torch 2.8 wrote them instead
//   ROOT/data/aotinductor/..., sample_inputs     compiled code and pickles: never read
//
// Older archives: serialized_state_dict.pt and serialized_constants.pt, also torch.save archives, in no
// folder.
#include "core/base/error.h"
#include "core/base/text.h"
#include "core/graph/name.h"
#include "core/graph/names/file_names.h"
#include "importers/formats.h"
#include "importers/importer.h"
#include "importers/torch/values.h"
#include "importers/wire/zip.h"

#include <fmt/core.h>
#include <simdjson.h>

namespace loadline::importers {
namespace {

namespace dom = simdjson::dom;
using Json = simdjson::simdjson_result<dom::element>;

constexpr std::uint64_t kMostConfig = 64 << 20;
constexpr std::uint64_t kMostRecord = 64;
constexpr std::size_t kMostJsonDepth = 64;
constexpr std::uint64_t kStrided = 7;
constexpr std::int64_t kComplexHalf = 9;
constexpr std::string_view kOldWeights = "serialized_state_dict.pt";

// A config file and the model that it describes: "model" for "data/weights/model_weights_config.json".
struct Config {
  const ZipMember* member;
  std::string model;
  std::string folder;  // with its slash
};

class Pt2 : GraphReader {
 public:
  explicit Pt2(const io::SourceFile& file)
      : GraphReader(file, "pt2"), zip_(file, ZipNames::paths), old_(zip_.find(kOldWeights) != nullptr) {
    if (!old_) root_ = zip_.root() + '/';
  }

  graph::MetaGraph read() {
    if (!old_) check_format();
    const std::vector<Config> configs = find_configs();
    graph::TextSet models;
    for (const Config& config : configs) models.insert(config.model);
    for (const Config& config : configs) read_config(config, models.size() > 1 ? config.model + "." : "");
    for (const ZipMember& member : zip_.members())
      if (is_pickled_dict(member.name)) add_pickled_dict(member);
    add_unreferenced();
    add_notes();
    sort_by_place(graph_);
    return std::move(graph_);
  }

 private:
  const ZipMember* find(std::string_view name) const { return zip_.find(root_ + std::string(name)); }

  void check_format() {
    const ZipMember* format = find("archive_format");
    if (format == nullptr || zip_.read(*format, kMostRecord) != "pt2")
      throw malformed("a zip archive of torch without an archive_format 'pt2'");
    const ZipMember* version = find("archive_version");
    if (const std::string text = version ? zip_.read(*version, kMostRecord) : "0"; text != "0")
      throw Error(ErrorCode::unsupported, {.file = file_.path()},
                  "pt2 archive version '{}', the newest known is 0", safe_display(text));
    if (const ZipMember* order = find("byteorder"); order && zip_.read(*order, kMostRecord) != "little")
      graph_.note(graph::Severity::error, {},
                  "the archive's numbers are not little-endian, which torch does not read");
  }

  std::vector<Config> find_configs() const {
    std::vector<Config> configs;
    const std::pair<std::string_view, std::string_view> kKinds[] = {
        {"data/weights/", "_weights_config.json"},
        {"data/weights/", "_model_param_config.json"},
        {"data/constants/", "_constants_config.json"}};
    for (const ZipMember& member : zip_.members()) {
      const std::string_view name = std::string_view(member.name).substr(root_.size());
      for (const auto& [folder, ending] : kKinds)
        if (name.starts_with(folder) && name.ends_with(ending) && name.size() > folder.size() + ending.size())
          configs.push_back(
              {&member, std::string(name.substr(folder.size(), name.size() - folder.size() - ending.size())),
               root_ + std::string(folder)});
    }
    return configs;
  }

  void read_config(const Config& config, const std::string& prefix) {
    const simdjson::padded_string text(zip_.read(*config.member, kMostConfig));
    dom::parser parser;
    dom::object root, entries;
    if (parser.allocate(text.size(), kMostJsonDepth) != simdjson::SUCCESS)
      throw Error(ErrorCode::limit, {.file = file_.path()}, "no memory to parse a config");
    if (const auto error = parser.parse(text).get(root); error != simdjson::SUCCESS)
      throw zip_.malformed(*config.member, "is not a JSON object: {}", simdjson::error_message(error));
    if (root["config"].get(entries) != simdjson::SUCCESS)
      throw zip_.malformed(*config.member, "has no object 'config'");
    for (const auto& [name, value] : entries) {
      dom::object entry;
      const std::string full = prefix + std::string(name);
      if (value.get(entry) != simdjson::SUCCESS)
        throw at_tensor(full, "its entry in the config is not an object");
      read_entry(full, entry, config);
    }
  }

  void read_entry(const std::string& name, dom::object entry, const Config& config) {
    std::string_view path;
    bool pickled = false;
    if (entry["path_name"].get(path) != simdjson::SUCCESS) throw at_tensor(name, "path_name is not a string");
    if (entry["use_pickle"].get(pickled) != simdjson::SUCCESS)
      throw at_tensor(name, "use_pickle is not a boolean");
    const std::string member_name = config.folder + std::string(path);
    const ZipMember* member = zip_.find(member_name);
    if (member == nullptr)
      throw at_tensor(name, "lies in '{}', which the archive does not hold", safe_display(member_name, 200));
    used_.insert(member->name);
    dom::object meta;
    const bool has_meta = entry["tensor_meta"].get(meta) == simdjson::SUCCESS;
    if (pickled)  // an object, or a tensor of a class with code of its own
      return graph_.note(has_meta ? graph::Severity::error : graph::Severity::warning, name,
                         "a pickled object: left out");
    if (!has_meta) throw at_tensor(name, "tensor_meta is not an object");
    add_tensor(name, meta, *member);
  }

  void add_tensor(const std::string& name, dom::object meta, const ZipMember& member) {
    if (const std::uint64_t layout = number(name, meta["layout"], "layout"); layout != kStrided)
      return graph_.note(graph::Severity::error, name, "has layout {}, not strided: left out", layout);
    const auto code = static_cast<std::int64_t>(number(name, meta["dtype"], "dtype"));
    TorchType type;
    if (const auto dtype = graph::dtype_from(&graph::DTypeInfo::pt2, code))
      type = {*dtype, static_cast<std::uint8_t>(graph::dtype_info(*dtype).block_bytes)};
    else if (code == kComplexHalf)
      type.item_bytes = 4;
    if (type.dtype == graph::DType::opaque)
      graph_.note(graph::Severity::warning, name, "unknown dtype {}: shown as bytes", code);
    graph::Tensor tensor;
    tensor.name = name;
    tensor.shape = sizes(name, meta["sizes"], "sizes");
    tensor.strides = sizes(name, meta["strides"], "strides");
    const std::uint64_t offset = size(name, meta["storage_offset"], "storage_offset");
    if (member.deflated) throw zip_.malformed(member, "is compressed; torch stores weights as they are");
    if (member.bytes == 0 && graph::element_count(tensor.shape) != 0)
      return add_without_bytes(std::move(tensor), type);
    const StorageWindow window{storage_of(member), 0, member.bytes};
    graph_.tensors.push_back(place_tensor(std::move(tensor), type, offset, window, file_.path()));
  }

  // For a model exported with fake weights, which torch reads as zeros.
  void add_without_bytes(graph::Tensor tensor, TorchType type) {
    const graph::StorageId id{static_cast<std::uint32_t>(graph_.storages.size())};
    graph::Tensor placed = place_tensor(std::move(tensor), type, 0, {id, 0, ~std::uint64_t{0}}, file_.path());
    const auto bytes = graph::packed_byte_size(placed.dtype, graph::elements(placed));
    if (!bytes) throw at_tensor(placed.name, "has no size in bytes");
    placed.strides.clear();
    graph_.storages.push_back(graph::shapes_only_storage(*bytes));
    graph_.note(graph::Severity::warning, placed.name, "without bytes in the file: shape only");
    graph_.tensors.push_back(std::move(placed));
  }

  graph::StorageId storage_of(const ZipMember& member) {
    const auto [known, fresh] = storages_.try_emplace(member.name);
    if (fresh) known->second = graph_.add_storage(zip_.storage(member, graph::FileId{0}));
    return known->second;
  }

  std::uint64_t number(const std::string& name, Json value, std::string_view what) const {
    std::uint64_t result = 0;
    if (value.get(result) != simdjson::SUCCESS)
      throw at_tensor(name, "{} is not a whole number from 0 on", what);
    return result;
  }
  // Reads {"as_int": N}. A symbolic size cannot occur in a file.
  std::uint64_t size(const std::string& name, Json value, std::string_view what) const {
    return number(name, value["as_int"], what);
  }
  std::vector<std::uint64_t> sizes(const std::string& name, Json value, std::string_view what) const {
    dom::array array;
    if (value.get(array) != simdjson::SUCCESS) throw at_tensor(name, "{} is not an array", what);
    std::vector<std::uint64_t> result;
    for (const dom::element item : array) result.push_back(size(name, Json(dom::element(item)), what));
    return result;
  }

  bool is_pickled_dict(std::string_view name) const {
    if (old_) return name == kOldWeights || name == "serialized_constants.pt";
    name.remove_prefix(root_.size());
    const bool weights = name.starts_with("data/weights/") || name.starts_with("data/constants/");
    return weights && name.ends_with(".pt");
  }

  // A torch.save archive inside this one: its tensors, moved to where they lie in the file.
  void add_pickled_dict(const ZipMember& member) {
    if (member.deflated) throw zip_.malformed(member, "is compressed; torch stores weights as they are");
    const io::SourceFile inner =
        file_.part(fmt::format("{}: {}", file_.path(), member.name), member.payload, member.bytes);
    graph::MetaGraph held = read_torch_zip_file(inner);
    for (graph::Storage& storage : held.storages)
      if (storage.file != graph::kNoFile) storage.offset += member.payload;
    append_weights(graph_, held, graph::FileId{0});
  }

  // Bytes that no tensor uses are still part of the file.
  void add_unreferenced() {
    std::vector<std::string> left;
    for (const ZipMember& member : zip_.members()) {
      const std::string_view name = std::string_view(member.name).substr(root_.size());
      const bool weights =
          name.starts_with("data/weights/weight_") || name.starts_with("data/constants/tensor_");
      if (!weights || used_.count(member.name) != 0) continue;
      graph_.storages.push_back(zip_.storage(member, graph::FileId{0}));
      left.emplace_back(member.name);
    }
    const std::vector<graph::Note> notes = unused_storages(left);
    graph_.notes.insert(graph_.notes.end(), notes.begin(), notes.end());
  }

  void add_notes() {
    graph_.notes.insert(graph_.notes.end(), zip_.notes().begin(), zip_.notes().end());
    std::vector<std::string> graphs, code;
    for (const ZipMember& member : zip_.members()) {
      const std::string_view name = std::string_view(member.name).substr(root_.size());
      if (name.starts_with("models/") || name == "serialized_exported_program.json")
        graphs.emplace_back(member.name);
      if (name.starts_with("data/aotinductor/") || name.ends_with(".so")) code.emplace_back(member.name);
    }
    if (!graphs.empty())
      graph_.note(graph::Severity::info, {}, "the exported graph is not read: {}", join_names(graphs, 3));
    if (!code.empty())
      graph_.note(graph::Severity::warning, {}, "compiled code and its weights are not read: {}",
                  join_names(code, 3));
  }

  ZipArchive zip_;
  bool old_;          // in no folder
  std::string root_;  // with its slash
  graph::TextViewMap<graph::StorageId> storages_;
  graph::TextViewSet used_;
};

}  // namespace

Match sniff_pt2(std::string_view head, std::string_view path) {
  const auto name = first_zip_name(head);
  if (!name) return Match::no;
  const std::size_t slash = name->find('/');
  const std::string_view inside = slash == std::string_view::npos ? "" : name->substr(slash + 1);
  if (name->starts_with("serialized_")) return Match::yes;
  for (const std::string_view start : {"data/weights/", "data/constants/", "data/aotinductor/",
                                       "data/sample_inputs/", "models/", "archive_", "extra/"})
    if (inside.starts_with(start)) return Match::yes;
  return graph::has_ending_of(path, "pt2") ? Match::maybe : Match::no;
}

graph::MetaGraph read_pt2(const Source& source) { return Pt2(*source.file).read(); }

}  // namespace loadline::importers
