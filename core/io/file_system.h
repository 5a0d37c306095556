// System calls, descriptors, kinds of file systems and their free space, locks, temporary folders.
#pragma once

#include <cerrno>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <unistd.h>

namespace loadline::io {

// --- System calls that signals interrupt.

// Makes a call again while a signal interrupts it, but not for ever. Returns its last result.
template <typename Call>
auto uninterrupted(Call call) {
  constexpr int kMostTries = 1000;
  auto result = call();
  for (int tries = 1; result < 0 && errno == EINTR && tries < kMostTries; ++tries) result = call();
  return result;
}

// --- A file descriptor that is closed by its owner's destructor.

class UniqueFd {
 public:
  UniqueFd() = default;
  explicit UniqueFd(int fd) : fd_(fd) {}
  UniqueFd(UniqueFd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  UniqueFd& operator=(UniqueFd&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~UniqueFd() {
    if (fd_ >= 0) ::close(fd_);
  }

  int get() const { return fd_; }
  explicit operator bool() const { return fd_ >= 0; }

 private:
  int fd_ = -1;
};

// --- Queries about file systems: their kind, and their free space.

struct FileSystem {
  std::string name;      // "ext4", "NFS", or the system's number for an unknown kind
  bool network = false;  // reads and page faults go over the network
  bool memory = false;   // its files lie in memory, and on no disk
};

// The file system of an existing path. The name is empty if the system does not tell.
FileSystem file_system_of(const std::string& path);

// False also if the path cannot be examined.
bool is_folder(const std::string& path);

struct DiskSpace {
  std::string folder;  // the nearest existing folder
  std::uint64_t available = 0;
};
// The free space of the disk that would hold `path`. Folders of `path` need not exist yet. Nothing if the
// system does not tell.
std::optional<DiskSpace> disk_space(const std::string& path);

// --- Advisory locks on files (flock): held by an open file, gone when the process ends in whatever way.

enum class LockKind { shared, exclusive };

// Opens the file, which is created if need be and must not be a link, and locks it. An invalid descriptor if
// another process holds a lock that excludes this one. The file that is returned still has that name. Throws
// Error{io}, also where the file system has no locks.
UniqueFd lock_file(const std::string& path, LockKind kind);
// Changes the kind of a lock that is held. False if another process holds one that excludes it.
bool change_lock(const UniqueFd& fd, LockKind kind);

// --- A folder that is removed with its content.

// A new hidden folder in the system's temporary folder, or in `parent`. The destructor removes it with its
// content. What killed processes have left is removed with the first one that a process makes there.
class TemporaryFolder {
 public:
  // Throws Error{io}.
  TemporaryFolder();
  explicit TemporaryFolder(const std::string& parent);
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  ~TemporaryFolder();

  const std::string& path() const { return path_; }

 private:
  std::string path_;
  UniqueFd lock_;  // on the folder, while it is in use
};

// The temporary folders of this user in `parent` that no process uses, sorted.
std::vector<std::string> abandoned_folders(const std::string& parent);
// Removes such a folder with its content, unless a process uses it by now. Throws Error{io}.
void remove_abandoned(const std::string& folder);

}  // namespace loadline::io
