// Importers turn an opened Source into a MetaGraph. One row per format; the file's content chooses the row.
#pragma once

#include "core/forward/model/known_models.h"
#include "core/graph/meta_graph.h"
#include "core/io/source_file.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace loadline {

// A primary file and the right to open its siblings.
struct Source {
  std::shared_ptr<const SourceFile> file;
  // Opens NAME in the primary file's folder; null if there is no such file. Throws Error{malformed} if the
  // name is not a clean relative path, Error{unsupported} if the file lies outside the model's folder (links
  // resolved), and Error{io} if it cannot be opened. May be called from several threads.
  std::function<std::shared_ptr<const SourceFile>(const std::string& name)> open_sibling;
  // The names of all files of the folder that make up the model together, if no file there lists them: numpy
  // arrays. Empty if the primary file was opened by itself.
  std::vector<std::string> set = {};
  AssetsLoader assets = {};      // architecture descriptions, for models given by a configuration alone
  std::vector<Note> notes = {};  // from resolving the path: other candidates, the index found beside a shard
};

enum class Match : std::uint8_t { no, maybe, yes };

struct Importer {
  std::string_view id;
  std::string_view name;
  std::string_view extensions;  // space separated: ".safetensors"
  // Judges the first kSniffBytes of the file, or all of a smaller one. `path` may only break ties.
  Match (*sniff)(std::string_view head, std::string_view path);
  // Reads headers only. The result passes validate(). Throws Error.
  MetaGraph (*read)(const Source& source);
};

// Enough for the magic of a tar archive, which stands at byte 257.
inline constexpr std::size_t kSniffBytes = 512;

std::span<const Importer> importers();
// The importer whose sniff says yes, else one that says maybe. Throws Error{unsupported} naming the file and
// the formats tried.
const Importer& importer_for(const SourceFile& file);

// Reads headers with the right importer, adds the source's notes, validates and finds packed weights.
MetaGraph import_source(const Source& source);

}  // namespace loadline
