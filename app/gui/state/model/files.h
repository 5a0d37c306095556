// Notices when files are written or replaced by another program.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace loadline::gui {

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

}  // namespace loadline::gui
