// Importers: from an opened source to a MetaGraph. One row per format; content decides which.
#pragma once

#include "core/forward/assets.h"
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
  // Opens NAME in the primary file's folder. Throws Error{malformed} for a name that is not a clean
  // relative path, Error{unsupported} for one that leaves the model's folder (links resolved), and
  // Error{io} if it cannot be opened. Nothing if there is no such file. May be called from several
  // threads.
  std::function<std::shared_ptr<const SourceFile>(const std::string& name)> open_sibling;
  AssetsLoader assets = {};      // the architectures that a configuration may be of
  std::vector<Note> notes = {};  // from resolving the path: other candidates, the index found beside a shard
};

enum class Match : std::uint8_t { no, maybe, yes };

struct Importer {
  std::string_view id;
  std::string_view name;
  std::string_view extensions;  // space separated: ".safetensors"
  // From at most kSniffBytes of the file. `path` may only break ties.
  Match (*sniff)(std::string_view head, std::string_view path);
  // Reads headers only. The result passes validate(). Throws Error.
  MetaGraph (*read)(const Source& source);
};

// A tar archive's magic stands at byte 257.
inline constexpr std::size_t kSniffBytes = 512;

std::span<const Importer> importers();
// The importer whose sniff says yes, else the one that says maybe. Throws Error{unsupported} naming
// the file and what was looked for.
const Importer& importer_for(const SourceFile& file);

// Reads headers with the right importer, adds the source's notes and validates.
MetaGraph import_source(const Source& source);

}  // namespace loadline
