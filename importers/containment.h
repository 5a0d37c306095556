// Which files a model may bring along: siblings that stay inside the model's folder.
#pragma once

#include "core/io/source_file.h"

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

namespace loadline {

// A clean relative path: no empty, "." or ".." component, no backslash, drive letter or NUL.
bool is_clean_relative(std::string_view name);

// The folder that siblings live in, and where their links may end: inside it, or, in a Hugging Face
// snapshot (models--org--name/snapshots/COMMIT), in that repository's blobs/ or the hub cache's
// shared blobs/.
class ModelFolder {
 public:
  // `folder` must exist; "" is the current one. Throws Error{io}.
  ModelFolder(const std::filesystem::path& folder, bool follow_links);

  // As Source::open_sibling; errors name the file that asks, where one does.
  std::shared_ptr<const SourceFile> open(const std::string& name, const std::string& asked_by = "") const;

 private:
  bool allows(const std::filesystem::path& real) const;

  std::filesystem::path folder_;                // as shown to the user
  std::vector<std::filesystem::path> allowed_;  // resolved; the first is the folder itself
  bool follow_links_;
};

}  // namespace loadline
