// Statfs, flock, mkdtemp.
#include "core/io/file_system.h"

#include "core/base/error.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <filesystem>
#include <mutex>
#include <set>
#include <system_error>

#include <fcntl.h>
#include <fmt/core.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

namespace loadline::io {

// --- Names file systems by statfs, with the numbers of linux/magic.h and of file systems outside the kernel.

namespace {

struct Kind {
  std::uint32_t magic;
  const char* name;
  bool network;
};
constexpr std::uint32_t kTmpfs = 0x01021994, kRamfs = 0x858458F6;
constexpr std::array<Kind, 20> kKinds = {
    {{kRamfs, "ramfs", false},     {0xEF53, "ext4", false},     {0x58465342, "XFS", false},
     {0x9123683E, "btrfs", false}, {kTmpfs, "tmpfs", false},    {0x794C7630, "overlayfs", false},
     {0x2FC12FC1, "ZFS", false},   {0xF2F52010, "F2FS", false}, {0x4D44, "FAT", false},
     {0x2011BAB0, "exFAT", false}, {0x6969, "NFS", true},       {0x517B, "SMB", true},
     {0xFF534D42, "CIFS", true},   {0xFE534D42, "SMB2", true},  {0x01021997, "9p", true},
     {0x65735546, "FUSE", true},   {0x00C36400, "Ceph", true},  {0x0BD00BD0, "Lustre", true},
     {0x47504653, "GPFS", true},   {0x5346414F, "AFS", true}}};

}  // namespace

FileSystem file_system_of(const std::string& path) {
  struct statfs status = {};
  if (::statfs(path.c_str(), &status) != 0) return {};
  const auto magic = static_cast<std::uint32_t>(status.f_type);
  const auto kind = std::ranges::find_if(kKinds, [&](const Kind& k) { return k.magic == magic; });
  const bool memory = magic == kTmpfs || magic == kRamfs;
  if (kind == kKinds.end()) return {fmt::format("type {:#x}", magic), false, memory};
  return {kind->name, kind->network, memory};
}

bool is_folder(const std::string& path) {
  std::error_code failure;
  return std::filesystem::is_directory(path, failure);
}

std::optional<DiskSpace> disk_space(const std::string& path) {
  std::error_code failed;
  std::filesystem::path folder = std::filesystem::absolute(path, failed).parent_path();
  while (!std::filesystem::is_directory(folder, failed) && folder.has_relative_path())
    folder = folder.parent_path();
  const std::filesystem::space_info space = std::filesystem::space(folder, failed);
  if (failed) return std::nullopt;
  return DiskSpace{folder.string(), space.available};
}

// --- flock, and a second look whether the file is still there.

namespace {

int operation(LockKind kind) { return (kind == LockKind::shared ? LOCK_SH : LOCK_EX) | LOCK_NB; }

// Whoever held a lock before may have removed the file: then another one has its name, or none. If false,
// errno says why it cannot be told, or is 0.
bool is_still_named(const UniqueFd& fd, const std::string& path) {
  struct stat held = {}, named = {};
  errno = 0;
  return ::fstat(fd.get(), &held) == 0 && ::stat(path.c_str(), &named) == 0 && held.st_dev == named.st_dev &&
         held.st_ino == named.st_ino;
}

}  // namespace

UniqueFd lock_file(const std::string& path, LockKind kind) {
  constexpr int kMostTries = 1000;
  for (int tries = 1;; ++tries) {
    UniqueFd fd(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0666));
    if (!fd) throw system_error(path, "open", errno);
    if (::flock(fd.get(), operation(kind)) != 0) {
      if (errno == EWOULDBLOCK) return {};
      throw system_error(path, "lock", errno);
    }
    if (is_still_named(fd, path)) return fd;
    if (errno != 0 && errno != ENOENT && (errno != ESTALE || tries == kMostTries))
      throw system_error(path, "look at", errno);
    if (tries == kMostTries)
      throw Error(ErrorCode::io, {.file = path},
                  "cannot be locked: after {} tries its name still leads to another file", tries);
  }
}

bool change_lock(const UniqueFd& fd, LockKind kind) { return ::flock(fd.get(), operation(kind)) == 0; }

// --- Makes and removes a folder with a name that is not taken.

namespace {

std::string system_folder() {
  std::error_code failed;
  const std::filesystem::path folder = std::filesystem::temp_directory_path(failed);
  return failed ? "/tmp" : folder.string();
}

constexpr std::string_view kTemporary = ".loadline-temporary-";
constexpr std::size_t kRandomLetters = 6;  // behind it, of mkdtemp()

// Invalid if another process holds the folder, or has removed it.
UniqueFd locked_folder(const std::string& path) {
  UniqueFd fd(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW));
  struct stat held = {};
  const bool locked = fd && ::flock(fd.get(), operation(LockKind::exclusive)) == 0 &&
                      is_still_named(fd, path) && ::fstat(fd.get(), &held) == 0 && held.st_uid == ::geteuid();
  return locked ? std::move(fd) : UniqueFd();
}

// Whether this process makes its first temporary folder there: listing a full folder costs time.
bool is_first_in(const std::string& parent) {
  static std::mutex mutex;
  static std::set<std::string> seen;
  const std::lock_guard lock(mutex);
  return seen.insert(parent).second;
}

}  // namespace

std::vector<std::string> abandoned_folders(const std::string& parent) {
  std::vector<std::string> paths;
  if (file_system_of(parent).network) return paths;  // a lock there may be known to one machine only
  std::error_code failure;
  for (std::filesystem::directory_iterator at(parent, failure), end; !failure && at != end;
       at.increment(failure)) {
    const std::string path = at->path().string();
    const std::string name = at->path().filename().string();
    if (name.starts_with(kTemporary) && name.size() == kTemporary.size() + kRandomLetters &&
        locked_folder(path))
      paths.push_back(path);
  }
  std::ranges::sort(paths);
  return paths;
}

void remove_abandoned(const std::string& folder) {
  const UniqueFd held = locked_folder(folder);
  std::error_code failure;
  if (held) std::filesystem::remove_all(folder, failure);
  if (failure) throw system_error(folder, "remove", failure.value());
}

TemporaryFolder::TemporaryFolder() : TemporaryFolder(system_folder()) {}

TemporaryFolder::TemporaryFolder(const std::string& parent) {
  if (is_first_in(parent))
    for (const std::string& left : abandoned_folders(parent)) {
      try {
        remove_abandoned(left);
      } catch (const Error&) {  // this one is not needed here
      }
    }
  // another process may take it for abandoned before it is locked; where folders cannot be locked at all, no
  // process takes any
  constexpr int kMostTries = 5;
  for (int tries = 1; !lock_ && tries <= kMostTries; ++tries) {
    if (tries > 1) ::rmdir(path_.c_str());
    path_ = (std::filesystem::path(parent) / fmt::format("{}XXXXXX", kTemporary)).string();
    if (mkdtemp(path_.data()) == nullptr) throw system_error(path_, "create", errno);
    lock_ = locked_folder(path_);
  }
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;  // a folder that cannot be removed stays in the temporary folder
  std::filesystem::remove_all(path_, ignored);
}

}  // namespace loadline::io
