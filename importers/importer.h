// What an importer is: a Source in, a MetaGraph out; the base class and helpers of readers.
#pragma once

#include "core/base/error.h"
#include "core/forward/model/assets_loader.h"
#include "core/graph/meta_graph.h"
#include "core/graph/name.h"
#include "core/io/source_file.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/core.h>

namespace loadline::importers {

// --- Importers turn an opened Source into a MetaGraph. One row per format; the file's content chooses the
// row.

// Most models for pictures were trained on squares of 224 pixels, those for latent pictures on 64.
inline constexpr std::uint64_t kUsualPictureSide = 224, kUsualLatentSide = 64;
// A side of pictures by the name that the file gives it, or by input and position: "height", "x[2]".
struct NamedSide {
  std::string name;
  std::uint64_t pixels = 0;
};

// A primary file and the right to open its siblings.
struct Source {
  std::shared_ptr<const io::SourceFile> file;
  // Opens NAME in the primary file's folder; null if there is no such file. Throws Error{malformed} if the
  // name is not a clean relative path, Error{unsupported} if the file lies outside the model's folder (links
  // resolved), and Error{io} if it cannot be opened. May be called from several threads.
  std::function<std::shared_ptr<const io::SourceFile>(const std::string& name)> open_sibling;
  // The names of all files of the folder that make up the model together, if no file there lists them: numpy
  // arrays, shards without an index. Empty if the primary file was opened by itself.
  std::vector<std::string> set = {};
  // For an index: the other files of the folder that could be shards.
  std::vector<std::string> others = {};
  // Files of the folder that look like models of their own; which of them are opened is known at the end.
  std::vector<std::string> beside = {};
  forward::AssetsLoader assets = {};  // architecture descriptions, for models given by a configuration alone
  bool weights_only = false;          // as ResolveOptions
  std::uint64_t picture_side = 0;     // as ResolveOptions
  std::vector<NamedSide> picture_sides = {};  // as ResolveOptions
  std::vector<graph::Note> notes =
      {};  // from resolving the path: other candidates, the index found beside a shard
};

enum class Match : std::uint8_t { no, maybe, yes };

struct Importer {
  std::string_view id;  // also in the table of file names: graph::file_endings(id)
  std::string_view name;
  // Judges the first kSniffBytes of the file, or all of a smaller one. `path` may only break ties.
  Match (*sniff)(std::string_view head, std::string_view path);
  // Reads headers only. The result passes validate(). Throws Error.
  graph::MetaGraph (*read)(const Source& source);
};

// Enough for the magic of a tar archive, which stands at byte 257.
inline constexpr std::size_t kSniffBytes = 512;

std::span<const Importer> importers();
// The importer whose sniff says yes, else one that says maybe. Throws Error{unsupported} naming the file and
// the formats tried.
const Importer& importer_for(const io::SourceFile& file);

// Throws Error{unsupported} for a file that is well known to be no model, or none that is read here: it names
// it and says what to do. Pointers of Git LFS are among them.
void refuse_known(const io::SourceFile& file);

// Reads headers with the right importer, adds the source's notes, validates and finds packed weights.
graph::MetaGraph import_source(const Source& source);

// --- Helpers for importers: the graph of one file, and graphs joined from several files.

// A graph without tensors; FileId{0} is the file.
inline graph::MetaGraph file_graph(const io::SourceFile& file, std::string_view format) {
  graph::MetaGraph graph;
  graph.format = format;
  graph.files.push_back({file.path(), file.size()});
  return graph;
}

// Base of readers of one file: the graph that they fill, and errors that name the file.
class GraphReader {
 protected:
  GraphReader(const io::SourceFile& file, std::string_view format)
      : file_(file), graph_(file_graph(file, format)) {}

  template <typename... Values>
  Error malformed(fmt::format_string<Values...> detail, const Values&... values) const {
    return Error(ErrorCode::malformed, {.file = file_.path()}, detail, values...);
  }
  template <typename... Values>
  Error at_tensor(const std::string& name, fmt::format_string<Values...> detail,
                  const Values&... values) const {
    return Error(ErrorCode::malformed, {.file = file_.path(), .tensor = name}, detail, values...);
  }

  const io::SourceFile& file_;
  graph::MetaGraph graph_;
};

// Appends the storages, tensors, packed weights and notes of `from` to `graph`. Storages that lie in a file
// get `file`.
inline void append_weights(graph::MetaGraph& graph, graph::MetaGraph& from, graph::FileId file) {
  const std::size_t first = graph.storages.size(), first_tensor = graph.tensors.size();
  for (const graph::Storage& storage : from.storages) {
    graph.storages.push_back(storage);
    if (storage.file != graph::kNoFile) graph.storages.back().file = file;
  }
  for (graph::Tensor& tensor : from.tensors) {
    tensor.storage = graph::StorageId{static_cast<std::uint32_t>(first + graph::index(tensor.storage))};
    graph.tensors.push_back(std::move(tensor));
  }
  const auto moved = [&](graph::TensorId id) {
    return graph::TensorId{static_cast<std::uint32_t>(first_tensor + graph::index(id))};
  };
  for (graph::LogicalTensor& weight : from.logical) {
    weight.codes = moved(weight.codes);
    for (graph::CompanionTensor& companion : weight.companions) companion.tensor = moved(companion.tensor);
    graph.logical.push_back(std::move(weight));
  }
  for (graph::Note& note : from.notes) graph.notes.push_back(std::move(note));
}

// --- Makes tensor names unique, for formats in which several tensors may have one name.

class UniqueNames {
 public:
  // Returns `name` itself, or name#2, name#3 and so on if it was returned before.
  std::string take(std::string name) {
    if (taken_.insert(name).second) return name;
    // the counter continues where it stopped, so that a million equal names take linear time
    std::uint64_t& number = numbers_.try_emplace(name, 1).first->second;
    std::string numbered;
    do {
      numbered = fmt::format("{}#{}", name, ++number);
    } while (!taken_.insert(numbered).second);
    return numbered;
  }

 private:
  graph::TextSet taken_;
  graph::TextMap<std::uint64_t> numbers_;  // by requested name: the last number given
};

}  // namespace loadline::importers
