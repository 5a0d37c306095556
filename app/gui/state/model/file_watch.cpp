// Compares what stat() says of the files with what it said before.
#include "app/gui/state/model/files.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include <sys/stat.h>

namespace loadline::gui {
namespace {

constexpr std::chrono::seconds kBetweenLooks(2);

}  // namespace

FileWatch::FileWatch() : thread_([this](const std::stop_token& stop) { run(stop); }) {}

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

}  // namespace loadline::gui
