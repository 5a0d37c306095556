// The table of importers, in the order in which their sniff functions are called. The endings of their files
// stand in core/graph/names/file_names.cpp.
#include "core/base/error.h"
#include "core/base/tasks.h"
#include "core/base/text.h"
#include "core/graph/meta_graph.h"
#include "core/graph/names/file_names.h"
#include "core/graph/packed/quantization.h"
#include "core/graph/packed/stored_parts.h"
#include "core/io/unfinished.h"
#include "importers/formats.h"
#include "importers/importer.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <map>
#include <memory>
#include <string>
#include <unordered_set>
#include <utility>

namespace loadline::importers {
namespace {

constexpr std::array kImporters = std::to_array<Importer>({
    {"safetensors", "safetensors", sniff_safetensors, read_safetensors},
    {"hf_index", "sharded safetensors or PyTorch (Hugging Face index)", sniff_hf_index, read_hf_index},
    {"torch", "PyTorch (torch.save)", sniff_torch_zip, read_torch_zip},
    {"torch_legacy", "PyTorch before 1.6 (torch.save)", sniff_torch_legacy, read_torch_legacy},
    {"pt2", "torch.export archive", sniff_pt2, read_pt2},
    {"gguf", "GGUF", sniff_gguf, read_gguf},
    {"ptd", "ExecuTorch tensors", sniff_ptd, read_ptd},
    {"pte", "ExecuTorch program", sniff_pte, read_pte},
    {"tflite", "LiteRT (TensorFlow Lite)", sniff_tflite, read_tflite},
    {"npy", "numpy array", sniff_npy, read_npy},
    {"npz", "numpy archive", sniff_npz, read_npz},
    {"onnx", "ONNX", sniff_onnx, read_onnx},
    {"config", "Hugging Face config.json (shapes without weights)", sniff_hf_config, read_hf_config},
});

// Refuses a bare pickle of a newer protocol, which torch.save writes only on request. Its first bytes differ
// from the magic number that the legacy torch importer looks for.
void refuse_new_pickle(std::string_view head, const io::SourceFile& file) {
  constexpr std::uint8_t kMostRead = 3, kMostKnown = 5;
  if (head.size() < 2 || head[0] != '\x80') return;
  const auto protocol = static_cast<std::uint8_t>(head[1]);
  if (protocol > kMostRead && protocol <= kMostKnown)
    throw Error(
        ErrorCode::unsupported, {.file = file.path(), .byte = 1},
        "a pickle of protocol {}, which torch.load(weights_only=True) refuses, too: save it again with "
        "torch's default, protocol 2",
        protocol);
}

// Reads small tensors from the primary file and its siblings.
class SmallTensors {
 public:
  SmallTensors(const Source& source, const graph::MetaGraph& graph) : source_(source), graph_(graph) {}

  std::optional<std::string> read(graph::TensorId id) {
    const graph::Tensor& tensor = graph_.tensor(id);
    const graph::Storage& storage = graph_.storage(tensor.storage);
    if (storage.file == graph::kNoFile || storage.encoding != graph::Encoding::plain) return std::nullopt;
    const auto file = open(graph_.file(storage.file).path);
    if (!file) return std::nullopt;
    return file->text_at(storage.offset + tensor.offset, graph::tensor_bytes(graph_, tensor));
  }

 private:
  std::shared_ptr<const io::SourceFile> open(const std::string& path) {
    const std::string& primary = source_.file->path();
    if (path == primary) return source_.file;
    if (const auto known = siblings_.find(path); known != siblings_.end()) return known->second;
    constexpr std::size_t kMostOpen = 64;
    if (siblings_.size() == kMostOpen) siblings_.clear();
    const std::string folder = primary.substr(0, primary.rfind('/') + 1);  // empty without one
    auto file = path.starts_with(folder) ? source_.open_sibling(path.substr(folder.size())) : nullptr;
    return siblings_.emplace(path, std::move(file)).first->second;
  }

  const Source& source_;
  const graph::MetaGraph& graph_;
  // By path: several threads ask in turns, each of them about other shards.
  std::map<std::string, std::shared_ptr<const io::SourceFile>> siblings_;
};

// Validates the graph and groups its tensors, which takes their names alone: both at once where there are
// many.
graph::packed::StoredModules validated_modules(const graph::MetaGraph& graph) {
  constexpr std::size_t kWorthThreads = 10'000;
  std::optional<graph::packed::StoredModules> modules;
  ParallelLoop(2, graph.tensors.size() < kWorthThreads ? 1 : 2, [&](std::size_t turn) {
    if (turn == 0)
      graph::validate(graph);
    else
      modules.emplace(graph);
  }).finish();
  return std::move(*modules);
}

// What a file of no format here begins with, in lower case, and what to say of it.
struct Known {
  std::string_view begin;
  std::string_view sentence;
};

// The magics of ggml stood for whole numbers, and their bytes stand in the file in turned order.
constexpr auto kKnown = std::to_array<Known>({
    {"lmgg",
     "a ggml file from before GGUF, as whisper.cpp has them and llama.cpp had until March 2023: open the "
     "original model or a GGUF file of it"},
    {"fmgg",
     "a ggml file of llama.cpp from before GGUF (ggmf): open the original model or a GGUF file of it"},
    {"tjgg",
     "a ggml file of llama.cpp from before GGUF (ggjt): open the original model or a GGUF file of it"},
    {"algg",
     "a LoRA adapter of llama.cpp from before GGUF (ggla): open the original adapter or a GGUF file of it"},
    {"<!doctype html", "a web page, not a model: download the file itself"},
    {"<html", "a web page, not a model: download the file itself"},
});

}  // namespace

std::span<const Importer> importers() { return kImporters; }

void refuse_known(const io::SourceFile& file) {
  io::refuse_pointer(file);
  constexpr std::size_t kMostBegin = 64;
  const std::string head = file.head(kMostBegin);
  for (const Known& known : kKnown)
    if (lower_case(head.substr(0, known.begin.size())) == known.begin)
      throw Error(ErrorCode::unsupported, {.file = file.path(), .byte = 0}, "{}", known.sentence);
}

const Importer& importer_for(const io::SourceFile& file) {
  refuse_known(file);
  const std::string head = file.head(kSniffBytes);
  if (head.empty() && !graph::has_ending_of(file.path(), "safetensors"))
    throw Error(ErrorCode::malformed, {.file = file.path()}, "the file is empty");
  const Importer* maybe = nullptr;
  for (const Importer& importer : kImporters) {
    const Match match = importer.sniff(head, file.path());
    if (match == Match::yes) return importer;
    if (match == Match::maybe && maybe == nullptr) maybe = &importer;
  }
  if (maybe != nullptr) {
    refuse_new_pickle(head, file);
    return *maybe;
  }
  std::string known;
  for (const Importer& importer : kImporters) known.append(known.empty() ? "" : ", ").append(importer.name);
  throw Error(ErrorCode::unsupported, {.file = file.path()}, "not a format this version reads: {}", known);
}

namespace {

std::string_view last_name(std::string_view path) { return path.substr(path.rfind('/') + 1); }

void note_unopened(const Source& source, graph::MetaGraph& graph) {
  std::unordered_set<std::string_view> opened;
  for (const graph::ModelFile& file : graph.files) opened.insert(last_name(file.path));
  std::vector<std::string> others;
  std::ranges::copy_if(source.beside, std::back_inserter(others),
                       [&](const std::string& name) { return !opened.contains(name); });
  if (others.empty()) return;
  graph.notes.insert(
      graph.notes.begin(),
      graph::make_note(graph::Severity::warning, {}, "opened '{}' only; the folder also holds {}",
                       safe_display(last_name(source.file->path())), join_names(others, 3)));
}

}  // namespace

graph::MetaGraph import_source(const Source& source) {
  const Importer& importer = importer_for(*source.file);
  graph::MetaGraph graph = importer.read(source);
  graph.notes.insert(graph.notes.begin(), source.notes.begin(), source.notes.end());
  note_unopened(source, graph);
  if (importer.id == "hf_index" && graph.tensors.empty() && graph.missing.empty())
    graph.note(graph::Severity::warning, {}, "the index maps no tensors: its weight_map is empty");
  SmallTensors small(source, graph);
  graph::LogicalTensors packed = graph::packed::find_logical_tensors(
      graph, validated_modules(graph), [&](graph::TensorId id) { return small.read(id); });
  // after those that the format itself has, whose codes are no others' parts
  std::unordered_set<std::size_t> taken;
  for (const graph::LogicalTensor& weight : graph.logical) taken.insert(graph::index(weight.codes));
  std::erase_if(packed.tensors, [&](const graph::LogicalTensor& weight) {
    return taken.contains(graph::index(weight.codes));
  });
  if (graph.logical.empty())  // mostly; there may be a hundred thousand
    graph.logical = std::move(packed.tensors);
  else
    std::ranges::move(packed.tensors, std::back_inserter(graph.logical));
  graph.notes.insert(graph.notes.end(), packed.notes.begin(), packed.notes.end());
  return graph;
}

}  // namespace loadline::importers
