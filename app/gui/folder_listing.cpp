// Reads a folder and marks what can be opened.
#include "app/gui/folder_listing.h"

#include "core/base/error.h"
#include "core/base/text.h"
#include "importers/importer.h"

#include <algorithm>
#include <filesystem>
#include <string_view>
#include <system_error>

namespace loadline::gui {
namespace {

namespace fs = std::filesystem;

bool has_model_extension(const fs::path& path) {
  const std::string extension = path.extension().string();
  if (extension.empty()) return false;
  return std::any_of(importers().begin(), importers().end(), [&](const Importer& importer) {
    const std::size_t found = importer.extensions.find(extension);
    const std::size_t end = found + extension.size();
    return found != std::string_view::npos &&
           (end == importer.extensions.size() || importer.extensions[end] == ' ');
  });
}

bool is_model_folder(const fs::path& path) {
  std::error_code failed;
  return fs::exists(path / "config.json", failed) || fs::exists(path / "model.safetensors", failed) ||
         fs::exists(path / "snapshots", failed);
}

}  // namespace

FolderListing list_folder(const std::string& path) {
  std::error_code failed;
  FolderListing listing;
  listing.path = fs::absolute(fs::path(path), failed).lexically_normal().string();
  fs::directory_iterator entry(listing.path, fs::directory_options::none, failed);
  for (; entry != fs::directory_iterator(); entry.increment(failed)) {
    const std::string name = entry->path().filename().string();
    if (name.starts_with('.')) continue;
    if (listing.entries.size() == kMostEntries) {
      listing.truncated = true;
      break;
    }
    std::error_code unknown;
    FolderEntry row;
    row.name = name;
    row.folder = entry->is_directory(unknown);
    row.model = row.folder ? is_model_folder(entry->path()) : has_model_extension(entry->path());
    if (!row.folder) {
      const std::uintmax_t bytes = entry->file_size(unknown);
      row.bytes = unknown ? 0 : bytes;
    }
    listing.entries.push_back(std::move(row));
  }
  // a failed start or step leaves the iterator at the end
  if (failed) throw Error(ErrorCode::io, {.file = path}, "cannot list the folder: " + failed.message());
  std::sort(listing.entries.begin(), listing.entries.end(), [](const FolderEntry& a, const FolderEntry& b) {
    return a.folder != b.folder ? a.folder : natural_less(a.name, b.name);
  });
  return listing;
}

std::string parent_folder(const std::string& path) {
  const fs::path folder = fs::path(path).lexically_normal();
  const fs::path above = folder.has_filename() ? folder.parent_path() : folder.parent_path().parent_path();
  return above.empty() ? path : above.string();
}

}  // namespace loadline::gui
