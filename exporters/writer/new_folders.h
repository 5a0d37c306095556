// Folders that are made for an output, and go again if it fails.
#pragma once

#include "core/base/error.h"

#include <filesystem>
#include <vector>

namespace loadline {

// Its destructor removes those that are still empty, unless they are kept.
class NewFolders {
 public:
  NewFolders() = default;
  NewFolders(const NewFolders&) = delete;
  NewFolders& operator=(const NewFolders&) = delete;
  ~NewFolders() {
    std::error_code ignored;
    for (auto folder = made_.rbegin(); folder != made_.rend(); ++folder)
      std::filesystem::remove(*folder, ignored);
  }

  // Creates a folder and those above it. Throws Error{io}.
  void make(const std::filesystem::path& folder) {
    std::error_code failure;
    if (folder.empty() || std::filesystem::is_directory(folder, failure)) return;
    make(folder.parent_path());
    if (std::filesystem::create_directory(folder, failure)) made_.push_back(folder);
    if (failure) throw system_error(folder.string(), "create the folder", failure.value());
  }
  void keep() { made_.clear(); }

 private:
  std::vector<std::filesystem::path> made_;
};

}  // namespace loadline
