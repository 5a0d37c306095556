// Temporary file, fsync, rename.
#include "core/io/atomic_file.h"

#include "core/base/error.h"
#include "core/base/text.h"

#include <cerrno>
#include <filesystem>
#include <random>

#include <fcntl.h>
#include <fmt/format.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

namespace loadline {

AtomicFile::AtomicFile(std::string target) : target_(std::move(target)) {
  const std::filesystem::path folder = std::filesystem::path(target_).parent_path();
  // the temporary file has the replaced file's mode from the start, so that private data is never readable
  struct stat old = {};
  const bool replaces = ::stat(target_.c_str(), &old) == 0;
  if (replaces && !S_ISREG(old.st_mode))
    throw Error(ErrorCode::usage, {.file = target_}, "is no regular file: it would be gone");
  const mode_t mode = replaces ? (old.st_mode & 0777) | S_IRUSR | S_IWUSR : 0666;
  // a short name: the target's name may already be as long as the file system allows
  std::random_device random;
  do {
    temporary_ = (folder / fmt::format(".loadline-{:08x}{:08x}", random(), random())).string();
    fd_ = UniqueFd(::open(temporary_.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, mode));
  } while (!fd_ && errno == EEXIST);
  if (!fd_) {
    const int number = errno;
    temporary_.clear();
    throw system_error(target_, "create a temporary file beside it", number);
  }
  // restores mode bits that the umask removed; failure is ignored, because some mounts have no modes
  if (replaces) (void)!::fchmod(fd_.get(), mode);
}

AtomicFile::AtomicFile(AtomicFile&& other) noexcept
    : target_(std::move(other.target_)),
      temporary_(std::exchange(other.temporary_, {})),
      fd_(std::move(other.fd_)) {}

AtomicFile::~AtomicFile() {
  if (!temporary_.empty()) ::unlink(temporary_.c_str());
}

void AtomicFile::preallocate(std::uint64_t bytes) {
  if (bytes == 0) return;
  if (::fallocate(fd_.get(), 0, 0, static_cast<off_t>(bytes)) == 0) return;
  if (errno == EOPNOTSUPP || errno == ENOSYS) return set_size(bytes);
  if (errno == ENOSPC)
    throw Error(ErrorCode::io, {.file = target_},
                "needs {} ({} bytes), the disk does not have that much free", format_bytes(bytes), bytes);
  throw system_error(target_, fmt::format("reserve {} bytes", bytes), errno);
}

void AtomicFile::set_size(std::uint64_t bytes) {
  if (::ftruncate(fd_.get(), static_cast<off_t>(bytes)) != 0)
    throw system_error(target_, fmt::format("set its size to {} bytes", bytes), errno);
}

void AtomicFile::write_at(std::uint64_t offset, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t put = ::pwrite(fd_.get(), bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (put < 0 && errno == EINTR) continue;
    if (put < 0)
      throw Error(ErrorCode::io, {.file = target_, .byte = offset},
                  system_error("", fmt::format("write {} bytes", bytes.size()), errno).what());
    offset += static_cast<std::uint64_t>(put);
    bytes = bytes.subspan(static_cast<std::size_t>(put));
  }
}

void AtomicFile::sync() {
  if (::fsync(fd_.get()) != 0) throw system_error(target_, "make its content durable", errno);
}

void AtomicFile::rename_into_place(bool replace) {
  int failed =
      ::renameat2(AT_FDCWD, temporary_.c_str(), AT_FDCWD, target_.c_str(), replace ? 0 : RENAME_NOREPLACE);
  // file systems without that flag: a hard link does not replace a file either; without links, check first
  if (failed != 0 && !replace && (errno == EINVAL || errno == ENOSYS)) {
    failed = ::link(temporary_.c_str(), target_.c_str());
    if (failed == 0)
      ::unlink(temporary_.c_str());
    else if (errno != EEXIST && ::access(target_.c_str(), F_OK) != 0)
      failed = ::rename(temporary_.c_str(), target_.c_str());
    else
      errno = EEXIST;
  }
  if (failed != 0 && errno == EEXIST)
    throw Error(ErrorCode::usage, {.file = target_}, "exists").with({"force", "on"});
  if (failed != 0) throw system_error(target_, "put it in place", errno);
  temporary_.clear();
  const std::string folder = std::filesystem::path(target_).parent_path().string();
  const UniqueFd handle(::open(folder.empty() ? "." : folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  // some file systems cannot sync a folder; the file itself is already durable
  if (handle) ::fsync(handle.get());
}

void AtomicFile::commit() {
  sync();
  rename_into_place(true);
}

}  // namespace loadline
