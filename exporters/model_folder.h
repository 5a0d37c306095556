// The files of a model folder beside its weights: tokenizer, templates, code, descriptions.
#pragma once

#include "exporters/exporter.h"

#include <cstdint>
#include <string>
#include <vector>

namespace loadline {

struct FolderFile {
  std::string name;  // relative to the folder, with '/'
  std::string path;
  std::uint64_t bytes = 0;
};

struct FolderFiles {
  std::vector<FolderFile> files;      // by name
  std::vector<std::string> left_out;  // names: other weights, training state, links out of the folder
};

// Lists the folder that a model's files lie in, and its sub-folders. config.json, the model's own weights and
// indexes, hidden files and Python's caches count as neither. Nothing for a model without a config.json: its
// folder is any folder. Links out of the folder are left out, unless they are to be followed. Throws
// Error{limit} for more than 10,000 entries.
FolderFiles folder_files(const MetaGraph& graph, bool follow_links);

// Adds copies of the files, or other names for them, to a layout that writes a folder, before all others.
void add_folder_files(Layout& layout, const std::vector<FolderFile>& files, bool link);

}  // namespace loadline
