// The files around models: paths, a folder's list, files that changed, the demo model.
#pragma once

#include "app/gui/state/base/jobs.h"
#include "core/base/progress.h"

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace loadline::gui {

// --- Paths as people type them: relative or absolute, with a slash at the end or without.

// A path that is none (org/name) stays what it is.
std::string absolute_path(const std::string& path);
bool is_same_path(const std::string& a, const std::string& b);

// --- One folder as the file browser shows it.

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

// Whether a folder is opened as one model.
bool is_model_folder(const std::string& path);

// The parent folder; the root is its own parent.
std::string parent_folder(const std::string& path);

// --- Notices when files are written or replaced by another program.

// Looks at the files every two seconds, on a thread of its own: a slow or vanished network folder holds up
// nothing else. A file counts as changed once two looks in a row agree, and it is there: then whoever wrote
// it is done, mostly.
class FileWatch {
 public:
  FileWatch();
  FileWatch(const FileWatch&) = delete;
  FileWatch& operator=(const FileWatch&) = delete;
  ~FileWatch();

  // Watches these files from now on, and no others.
  void watch(std::vector<std::string> paths);
  // The files that changed since the last call. A change is told once.
  std::vector<std::string> take_changed();
  // Sets a function that the thread calls when there is a change to take.
  void set_wake(std::function<void()> wake);
  // Looks now: for tests, which do not wait.
  void look();

 private:
  // What changes when a file is written; all 0 for a file that is not there.
  struct Stamp {
    std::uint64_t device = 0, inode = 0, bytes = 0;
    std::int64_t seconds = 0, nanoseconds = 0;
    bool operator==(const Stamp&) const = default;
  };
  struct Watched {
    std::string path;
    Stamp known;  // told, or as it was at the beginning
    Stamp last;   // at the last look
  };
  static Stamp stamp_of(const std::string& path);
  void run(const std::stop_token& stop);

  std::mutex mutex_;
  std::condition_variable_any asked_;
  std::vector<Watched> files_;    // in the order of their paths
  std::uint64_t generation_ = 0;  // of files_
  std::vector<std::string> changed_;
  std::function<void()> wake_;
  std::jthread thread_;  // last member: it ends before what it uses
};

// --- The folders in which a model can be found.

// A folder that people begin to look in.
struct Place {
  std::string title, path;
};

// Lists them in the background. Used from one thread.
class Places {
 public:
  // `hub_cache` as in ResolveOptions.
  Places(Jobs& jobs, std::string hub_cache) : jobs_(jobs), hub_cache_(std::move(hub_cache)) {}

  const std::string& hub_cache() const { return hub_cache_; }
  // Lists a folder for the file browser. A failure is in listing.error().
  void browse(const std::string& folder);
  const FolderListing& folder() const { return listing.or_empty(); }  // last listed
  // Finds the home folder, the present one, and those of `others` that are there, each once.
  void find(std::vector<Place> others);

  Latest<FolderListing> listing;
  Latest<std::vector<Place>> found;

 private:
  Jobs& jobs_;
  std::string hub_cache_;
};

// --- The built-in demo model: a small checkpoint in a temporary folder.

// Writes the demo preset with seeded random weights into `folder`, unless it is already there, and
// returns the path to open. The model appears whole or not at all, even if others write there at the same
// time.
std::string write_demo_model(const std::string& folder, Progress& progress);

}  // namespace loadline::gui
