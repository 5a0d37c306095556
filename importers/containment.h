// Containment: a model may only open sibling files inside its own folder.
#pragma once

#include "core/io/source_file.h"

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

namespace loadline {

// A clean relative path: no empty, "." or ".." component, no backslash, drive letter or NUL.
bool is_clean_relative(std::string_view name);

// The folder of a model's files. A sibling's links must end inside it or, for a Hugging Face snapshot
// (models--org--name/snapshots/COMMIT), in that repository's blobs/ or the hub cache's shared blobs/.
class ModelFolder {
 public:
  // `folder` must exist; "" is the current folder. Throws Error{io}.
  ModelFolder(const std::filesystem::path& folder, bool follow_links);

  // As Source::open_sibling. Errors name `asked_by`, the file that refers to the sibling, unless it is empty.
  std::shared_ptr<const SourceFile> open(const std::string& name, const std::string& asked_by = "") const;

 private:
  bool allows(const std::filesystem::path& real) const;

  std::filesystem::path folder_;                // as shown to the user
  std::vector<std::filesystem::path> allowed_;  // resolved; the first is the folder itself
  bool follow_links_;
};

}  // namespace loadline
