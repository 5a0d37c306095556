// Lists folders, watches files, writes the demo model.
#include "app/gui/state/model/files.h"

#include "core/base/error.h"
#include "core/base/tasks.h"
#include "core/base/text.h"
#include "core/forward/model/known_models.h"
#include "core/graph/names/file_names.h"
#include "core/io/file_system.h"
#include "exporters/synth.h"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <string_view>
#include <system_error>
#include <utility>

#include <sys/stat.h>

namespace loadline::gui {

std::string absolute_path(const std::string& path) {
  std::error_code failed;
  if (!std::filesystem::exists(path, failed)) return path;
  const std::filesystem::path whole = std::filesystem::absolute(path, failed).lexically_normal();
  if (failed) return path;
  return (whole.has_filename() ? whole : whole.parent_path()).string();
}

bool is_same_path(const std::string& a, const std::string& b) {
  return a == b || absolute_path(a) == absolute_path(b);
}

// --- Reads a folder and marks the entries that can be opened.

namespace {

namespace fs = std::filesystem;

bool is_model_file(std::string_view name) { return graph::model_file_rank(name).has_value(); }

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

// --- Compares what stat() says of the files with what it said before.

namespace {

constexpr std::chrono::seconds kBetweenLooks(2);

}  // namespace

FileWatch::FileWatch() : thread_(start_thread([this](const std::stop_token& stop) { run(stop); })) {}

FileWatch::~FileWatch() = default;

FileWatch::Stamp FileWatch::stamp_of(const std::string& path) {
  struct stat found = {};
  if (::stat(path.c_str(), &found) != 0) return {};
  return {.device = found.st_dev,
          .inode = found.st_ino,
          .bytes = static_cast<std::uint64_t>(found.st_size),
          .seconds = found.st_mtim.tv_sec,
          .nanoseconds = found.st_mtim.tv_nsec};
}

void FileWatch::watch(std::vector<std::string> paths) {
  std::ranges::sort(paths);
  paths.erase(std::unique(paths.begin(), paths.end()), paths.end());
  const std::lock_guard lock(mutex_);
  std::vector<Watched> files;
  for (std::string& path : paths) {
    const auto known = std::ranges::lower_bound(files_, path, {}, &Watched::path);
    // the first look is the thread's: the window does not wait for a disk
    const bool same = known != files_.end() && known->path == path;
    files.push_back(same ? *known : Watched{std::move(path), {}, {}});
  }
  files_ = std::move(files);
  ++generation_;
  asked_.notify_all();
}

std::vector<std::string> FileWatch::take_changed() {
  const std::lock_guard lock(mutex_);
  return std::exchange(changed_, {});
}

void FileWatch::set_wake(std::function<void()> wake) {
  const std::lock_guard lock(mutex_);
  wake_ = std::move(wake);
}

void FileWatch::look() {
  std::vector<std::string> paths;
  std::uint64_t generation = 0;
  {
    const std::lock_guard lock(mutex_);
    for (const Watched& file : files_) paths.push_back(file.path);
    generation = generation_;
  }
  std::vector<Stamp> stamps;
  for (const std::string& path : paths) stamps.push_back(stamp_of(path));
  std::function<void()> wake;
  {
    const std::lock_guard lock(mutex_);
    if (generation != generation_) return;
    for (std::size_t i = 0; i < files_.size(); ++i) {
      Watched& file = files_[i];
      const Stamp now = stamps[i];
      if (file.known == Stamp{}) file.known = now;
      if (now != Stamp{} && now != file.known && now == file.last) {
        file.known = now;
        changed_.push_back(file.path);
      }
      file.last = now;
    }
    if (!changed_.empty()) wake = wake_;
  }
  if (wake) wake();
}

void FileWatch::run(const std::stop_token& stop) {
  std::uint64_t seen = 0;
  while (!stop.stop_requested()) {
    {
      std::unique_lock lock(mutex_);
      // without files there is nothing to wake up for
      asked_.wait(lock, stop, [&] { return !files_.empty(); });
      asked_.wait_for(lock, stop, kBetweenLooks, [&] { return generation_ != seen; });
      seen = generation_;
    }
    if (!stop.stop_requested()) look();
  }
}

// --- The folders in which a model can be found.

void Places::browse(const std::string& folder) {
  listing.ask(jobs_, "Listing a folder", [folder](Progress&) { return list_folder(folder); });
}

void Places::find(std::vector<Place> others) {
  found.ask(jobs_, "Looking for folders", [others = std::move(others)](Progress&) {
    std::vector<Place> wanted, there;
    std::error_code failed;
    if (const char* const home = std::getenv("HOME"); home != nullptr) {
      wanted.push_back({"Home", home});
      wanted.push_back({"Downloads", (fs::path(home) / "Downloads").string()});
    }
    wanted.push_back({"Where it was started", fs::current_path(failed).string()});
    wanted.insert(wanted.end(), others.begin(), others.end());
    wanted.push_back({"Whole disk", "/"});
    for (Place& place : wanted) {
      place.path = absolute_path(place.path);
      const bool known = std::ranges::find(there, place.path, &Place::path) != there.end();
      if (!known && fs::is_directory(place.path, failed)) there.push_back(std::move(place));
    }
    return there;
  });
}

// --- Synthesises the demo preset in a folder of its own.

namespace {

constexpr std::string_view kPreset = "demo";
constexpr std::uint64_t kSeed = 1;

}  // namespace

std::string write_demo_model(const std::string& folder, Progress& progress) {
  const std::filesystem::path target = std::filesystem::path(folder) / "demo-llama";
  if (std::filesystem::exists(target)) return target.string();
  const forward::Preset* preset = forward::find_preset(kPreset);
  if (preset == nullptr) throw Error(ErrorCode::unsupported, "this build carries no demo model");
  const io::TemporaryFolder attempt(folder);
  const std::filesystem::path written = std::filesystem::path(attempt.path()) / target.filename();
  exporters::synthesize(forward::config_graph(preset->config_json, "demo/config.json"), written.string(),
                        {.seed = kSeed, .max_shard_bytes = preset->max_shard_bytes}, progress);
  std::error_code failed;
  std::filesystem::rename(written, target, failed);
  if (failed && !std::filesystem::exists(target))  // else another attempt was first: the same bytes
    throw system_error(target.string(), "create", failed.value());
  return target.string();
}

}  // namespace loadline::gui
