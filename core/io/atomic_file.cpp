// Temporary file, fsync, rename.
#include "core/io/atomic_file.h"

#include "core/base/error.h"
#include "core/io/file_lock.h"

#include <cerrno>
#include <filesystem>
#include <random>

#include <fcntl.h>
#include <fmt/format.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

namespace loadline {
namespace {

// A short name: the target's name may already be as long as the file system allows.
std::string temporary_beside(const std::string& target) {
  std::random_device random;
  return (std::filesystem::path(target).parent_path() /
          fmt::format(".loadline-{:08x}{:08x}", random(), random()))
      .string();
}

}  // namespace

void rename_durably(const std::string& from, const std::string& to, bool replace) {
  int failed = ::renameat2(AT_FDCWD, from.c_str(), AT_FDCWD, to.c_str(), replace ? 0 : RENAME_NOREPLACE);
  // file systems without that flag: a hard link does not replace a file either; without links, check first
  if (failed != 0 && !replace && (errno == EINVAL || errno == ENOSYS)) {
    failed = ::link(from.c_str(), to.c_str());
    if (failed == 0)
      ::unlink(from.c_str());
    else if (errno != EEXIST && ::access(to.c_str(), F_OK) != 0)
      failed = ::rename(from.c_str(), to.c_str());
    else
      errno = EEXIST;
  }
  if (failed != 0 && errno == EEXIST)
    throw Error(ErrorCode::usage, {.file = to}, "exists").with({"force", "on"});
  if (failed != 0) throw system_error(to, "put it in place", errno);
  sync_folder(std::filesystem::path(to).parent_path().string());
}

void sync_folder(const std::string& folder) {
  const UniqueFd handle(::open(folder.empty() ? "." : folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!handle) throw system_error(folder, "open the folder", errno);
  // some file systems cannot sync a folder; the files in it are already durable
  if (::fsync(handle.get()) != 0 && errno != EINVAL && errno != ENOTSUP)
    throw system_error(folder, "make the folder durable", errno);
}

UniqueFd create_for(const std::string& path, const std::string& target) {
  struct stat old = {};
  const bool replaces = ::stat(target.c_str(), &old) == 0;
  if (replaces && !S_ISREG(old.st_mode))
    throw Error(ErrorCode::usage, {.file = target}, "is no regular file: it would be gone");
  const mode_t mode = replaces ? (old.st_mode & 0777) | S_IRUSR | S_IWUSR : 0666;
  UniqueFd fd(::open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, mode));
  if (!fd && errno != EEXIST) throw system_error(target, "create a temporary file beside it", errno);
  // restores mode bits that the umask removed; failure is ignored, because some mounts have no modes
  if (fd && replaces) (void)!::fchmod(fd.get(), mode);
  return fd;
}

AtomicFile::AtomicFile(std::string target) : target_(std::move(target)), file_(UniqueFd(), target_) {
  UniqueFd fd;
  while (!fd) {
    temporary_ = temporary_beside(target_);
    try {
      fd = create_for(temporary_, target_);
    } catch (...) {
      temporary_.clear();
      throw;
    }
    // where there are no locks nothing removes it either
    if (fd) change_lock(fd, LockKind::exclusive);
  }
  file_ = OutputFile(std::move(fd), target_);
}

AtomicFile::~AtomicFile() {
  if (!temporary_.empty()) ::unlink(temporary_.c_str());
}

void AtomicFile::rename_into_place(bool replace) {
  rename_durably(temporary_, target_, replace);
  temporary_.clear();
}

void AtomicFile::commit() {
  sync();
  rename_into_place(true);
}

}  // namespace loadline
