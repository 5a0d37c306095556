// One folder as the file browser shows it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace loadline::gui {

struct FolderEntry {
  std::string name;
  bool folder = false;
  bool model = false;  // a file with an extension that an importer reads, or a folder with such a file
  std::uint64_t bytes = 0;
};

struct FolderListing {
  std::string path;                  // absolute
  std::vector<FolderEntry> entries;  // folders first, in natural order
  bool truncated = false;            // the folder has more than kMostEntries
};

inline constexpr std::size_t kMostEntries = 5000;

// Lists a folder without hidden entries. Throws Error{io}.
FolderListing list_folder(const std::string& path);

// The models in a hub cache, as org/name, by name; empty for a folder that is none or cannot be read.
std::vector<std::string> list_cache(const std::string& hub_cache);

// Whether a folder is opened as one model.
bool is_model_folder(const std::string& path);

// The parent folder; the root is its own parent.
std::string parent_folder(const std::string& path);

}  // namespace loadline::gui
