// From a PATH to a Source: files, folders, hub cache, containment, options of opening.
#pragma once

#include "core/base/option.h"
#include "core/forward/model/assets_loader.h"
#include "core/graph/meta_graph.h"
#include "core/io/source_file.h"
#include "core/io/unfinished.h"
#include "importers/importer.h"

#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace loadline::importers {

struct Source;

// --- Containment: a model may only open sibling files inside its own folder.

// A clean relative path: no empty, "." or ".." component, no backslash, drive letter or NUL.
bool is_clean_relative(std::string_view name);

// The folder of a model's files. A sibling's links must end inside its io::FolderBounds.
class ModelFolder {
 public:
  // `folder` must exist; "" is the current folder. Throws Error{io}.
  ModelFolder(const std::filesystem::path& folder, bool follow_links);

  // As Source::open_sibling. Errors name `asked_by`, the file that refers to the sibling, unless it is empty.
  std::shared_ptr<const io::SourceFile> open(const std::string& name, const std::string& asked_by = "") const;

 private:
  // Throws Error{unsupported} for an open file whose real path lies outside.
  void check_place(const io::UniqueFd& fd, const std::string& path, const std::string& asked_by) const;

  std::filesystem::path folder_;  // as shown to the user
  io::UniqueFd open_;             // the folder; invalid if there are no descriptors left
  io::FolderBounds bounds_;
  bool follow_links_;
};

// --- Turns a user's path into a Source: a file, a model folder, a Hugging Face cache, or org/name.

struct ResolveOptions {
  // The hub cache's folder (HF_HUB_CACHE or its default). If empty, org/name is not looked up.
  std::string hub_cache;
  // Follow the user's own links out of the model's folder.
  bool follow_links = false;
  // Architecture descriptions, for models given by a configuration alone.
  forward::AssetsLoader assets = {};
  // For what reads tensors alone: sizes of a forward pass that the file does not state stay unknown.
  bool weights_only = false;
  // Height and width of pictures where an ONNX file leaves them open; 0: the usual ones. A file of another
  // format is refused with it.
  std::uint64_t picture_side = 0;
  // The same for single sides; names of other sizes are passed over.
  std::vector<NamedSide> picture_sides = {};
};

// An existing path beats org/name. A folder opens the file of the lowest rank (graph::model_file_rank), and
// training state such as optimizer.pt last. A Note names the other candidates. A shard whose index lies
// beside it opens the whole model. Throws Error; also for files that an interrupted run has left old in part
// and new in part, or without parts of their weights (core/io/unfinished.h).
Source resolve(const std::string& path, const ResolveOptions& options);

// The folder of the model org/name in a hub cache, or nothing.
std::optional<std::string> cached_model(const std::string& name, const std::string& hub_cache);

// resolve(), then import_source().
graph::MetaGraph open_model(const std::string& path, const ResolveOptions& options);
// The same for a model of which a conversion has taken parts away, to go on with that.
graph::MetaGraph open_consumed(const std::string& path, const ResolveOptions& options);

// --- The table of options for opening a model, for every front end.

std::span<const Option<ResolveOptions>> open_options();

}  // namespace loadline::importers
