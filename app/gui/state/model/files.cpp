// Reads a folder and marks the entries that can be opened.
#include "app/gui/state/model/folder_listing.h"
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

// A pattern that begins with a dot is an extension; any other is a whole file name: "config.json".
bool is_model_file(std::string_view name) {
  return std::ranges::any_of(importers(), [&](const Importer& importer) {
    return std::ranges::any_of(split(importer.extensions, ' '), [&](std::string_view word) {
      return word.starts_with('.') ? name.size() > word.size() && name.ends_with(word) : name == word;
    });
  });
}

}  // namespace

// It has an index, a configuration, the snapshots of a cache, or one
// weight file and no subfolders. Other folders are listed instead.
bool is_model_folder(const std::string& path) {
  constexpr int kMostLookedAt = 256;
  std::error_code failed;
  int left = kMostLookedAt;
  int weights = 0;
  bool folders = false;
  fs::directory_iterator entry(fs::path(path), fs::directory_options::none, failed);
  for (; !failed && entry != fs::directory_iterator() && left > 0; entry.increment(failed), --left) {
    const std::string name = entry->path().filename().string();
    std::error_code unknown;
    if (name == "config.json" || name == "model.safetensors" || name.ends_with(".index.json") ||
        name == "snapshots")
      return true;
    if (name.starts_with('.')) continue;
    if (entry->is_directory(unknown))
      folders = true;
    else
      weights += is_model_file(name);
  }
  return weights == 1 && !folders;
}

std::vector<std::string> list_cache(const std::string& hub_cache) {
  constexpr std::string_view kPrefix = "models--";
  constexpr int kMost = 2000;
  std::vector<std::string> names;
  std::error_code failed;
  int left = kMost;
  fs::directory_iterator entry(fs::path(hub_cache), fs::directory_options::none, failed);
  for (; !failed && entry != fs::directory_iterator() && left > 0; entry.increment(failed), --left) {
    std::string name = entry->path().filename().string();
    std::error_code unknown;
    if (!name.starts_with(kPrefix) || !fs::is_directory(entry->path() / "snapshots", unknown)) continue;
    name.erase(0, kPrefix.size());
    if (const std::size_t between = name.find("--"); between != std::string::npos)
      name.replace(between, 2, "/");
    names.push_back(std::move(name));
  }
  std::ranges::sort(names);
  return names;
}

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
    // a packing problem is no model, but it can be opened
    row.model =
        row.folder ? is_model_folder(entry->path().string()) : is_model_file(name) || name.ends_with(".csv");
    if (!row.folder) {
      const std::uintmax_t bytes = entry->file_size(unknown);
      row.bytes = unknown ? 0 : bytes;
    }
    listing.entries.push_back(std::move(row));
  }
  // a failed start or step leaves the iterator at the end
  if (failed) throw Error(ErrorCode::io, {.file = path}, "cannot list the folder: " + failed.message());
  std::ranges::sort(listing.entries, [](const FolderEntry& a, const FolderEntry& b) {
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
