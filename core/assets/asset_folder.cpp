// Lists and reads the asset files of a folder.
#include "core/assets/asset_folder.h"

#include "core/io/source_file.h"

#include <cstddef>
#include <filesystem>

namespace loadline {

namespace fs = std::filesystem;

std::vector<std::string> json_files(const std::string& folder) {
  std::vector<std::string> paths;
  std::error_code error;
  for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error))
    if (at->path().extension() == ".json") paths.push_back(at->path().string());
  std::ranges::sort(paths);
  return paths;
}

std::string asset_text(const std::string& path) {
  constexpr std::size_t kMostBytes = (1 << 20) + 1;
  return SourceFile::open(path).head(kMostBytes);
}

}  // namespace loadline
