// XXH3; pwrite with a small page cache behind it; temporary file, fsync, rename.
#include "core/io/atomic_file.h"

#include "core/base/error.h"
#include "core/base/text.h"
#include "core/io/file_system.h"
#include "core/io/system_memory.h"

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <new>
#include <random>

#include <fcntl.h>
#include <fmt/core.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

namespace loadline::io {

// --- A thin wrapper around libxxhash.

Xxh3::Xxh3() : state_(XXH3_createState()) {
  if (!state_) throw std::bad_alloc();
  XXH3_64bits_reset(state_.get());
}

void Xxh3::update(std::span<const std::byte> bytes) {
  XXH3_64bits_update(state_.get(), bytes.data(), bytes.size());
}

std::uint64_t Xxh3::digest() const { return XXH3_64bits_digest(state_.get()); }

void Xxh3::Free::operator()(XXH3_state_s* state) const { XXH3_freeState(state); }

std::int64_t changed_at(const struct stat& status) {
  return std::int64_t{status.st_mtim.tv_sec} * 1'000'000'000 + status.st_mtim.tv_nsec;
}

// --- pwrite, with the page cache kept small behind it.

void OutputFile::preallocate(std::uint64_t bytes) {
  if (bytes == 0) return;
  if (::fallocate(fd_.get(), 0, 0, static_cast<off_t>(bytes)) == 0) return;
  if (errno == EOPNOTSUPP || errno == ENOSYS) return set_size(bytes);
  if (errno == ENOSPC)
    throw Error(ErrorCode::io, {.file = path_}, "needs {} ({} bytes), the disk does not have that much free",
                format_bytes(bytes), bytes);
  throw system_error(path_, fmt::format("reserve {} bytes", bytes), errno);
}

void OutputFile::set_size(std::uint64_t bytes) {
  if (::ftruncate(fd_.get(), static_cast<off_t>(bytes)) != 0)
    throw system_error(path_, fmt::format("set its size to {} bytes", bytes), errno);
}

// A descriptor of its own: what is not aligned is written beside it through the page cache.
void OutputFile::set_policy(WritePolicy policy) {
  policy_ = policy;
  direct_ = UniqueFd();
  if (policy != WritePolicy::direct) return;
  // the same file, whatever its path names by now
  direct_ =
      UniqueFd(::open(fmt::format("/proc/self/fd/{}", fd_.get()).c_str(), O_WRONLY | O_CLOEXEC | O_DIRECT));
  if (!direct_) policy_ = WritePolicy::drop_behind;
}

void OutputFile::write_at(std::uint64_t offset, std::span<const std::byte> bytes) {
  const std::uint64_t begin = offset, end = offset + bytes.size();
  bool direct = static_cast<bool>(direct_);
  while (!bytes.empty()) {
    // also false for the rest of a short write
    direct = direct && offset % kDirectUnit == 0 && bytes.size() >= kDirectUnit &&
             reinterpret_cast<std::uintptr_t>(bytes.data()) % kDirectUnit == 0;
    const std::size_t some = direct ? bytes.size() / kDirectUnit * kDirectUnit : bytes.size();
    const ssize_t put = uninterrupted([&] {
      return ::pwrite((direct ? direct_ : fd_).get(), bytes.data(), some, static_cast<off_t>(offset));
    });
    if (put < 0 && errno == EINVAL && direct) {  // a file system that takes the flag but not the write
      direct = false;
      continue;
    }
    if (put == 0) errno = EIO;  // no progress: it would be tried for ever
    if (put <= 0)
      throw Error(ErrorCode::io, {.file = path_, .byte = offset},
                  system_error("", fmt::format("write {} bytes", bytes.size()), errno).what());
    offset += static_cast<std::uint64_t>(put);
    bytes = bytes.subspan(static_cast<std::size_t>(put));
  }
  if (policy_ != WritePolicy::cached && !direct) write_behind(begin, end - begin);
}

// Writing starts now, and waits for what was written kBehind before: dirty pages stay few, and the pages that
// are dropped are used again, which costs less than new ones.
void OutputFile::write_behind(std::uint64_t offset, std::uint64_t bytes) const {
  ::sync_file_range(fd_.get(), static_cast<off_t>(offset), static_cast<off_t>(bytes), SYNC_FILE_RANGE_WRITE);
  const std::uint64_t begin = offset - std::min(offset, kBehind);
  if (offset + bytes <= begin + kBehind) return;
  const auto from = static_cast<off_t>(begin), size = static_cast<off_t>(offset + bytes - kBehind - begin);
  constexpr unsigned kThrough =
      SYNC_FILE_RANGE_WAIT_BEFORE | SYNC_FILE_RANGE_WRITE | SYNC_FILE_RANGE_WAIT_AFTER;
  // fsync does not tell again what this call tells of a disk; the other numbers say that nothing was tried
  if (::sync_file_range(fd_.get(), from, size, kThrough) != 0 && errno != ENOSYS && errno != EINVAL &&
      errno != ESPIPE && errno != EPERM)
    throw Error(ErrorCode::io, {.file = path_, .byte = begin},
                system_error("", fmt::format("write {} bytes", size), errno).what());
  ::posix_fadvise(fd_.get(), from, size, POSIX_FADV_DONTNEED);
}

void OutputFile::sync() {
  if (::fsync(fd_.get()) != 0) throw system_error(path_, "make its content durable", errno);
}

// --- Temporary file, fsync, rename.

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
    throw Error(ErrorCode::usage, {.file = target}, "is not a regular file: it would be replaced");
  const mode_t mode = replaces ? (old.st_mode & 0777) | S_IRUSR | S_IWUSR : 0666;
  UniqueFd fd(::open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, mode));
  if (!fd && errno != EEXIST) throw system_error(target, "create a temporary file beside it", errno);
  // restores mode bits that the umask removed; failure is ignored, because some mounts have no modes
  if (fd && replaces) (void)!::fchmod(fd.get(), mode);
  return fd;
}

AtomicFile::AtomicFile(std::string target) : target_(std::move(target)), file_(UniqueFd(), target_) {
  constexpr int kMostTries = 100;
  UniqueFd fd;
  for (int tries = 0; !fd; ++tries) {
    if (tries == kMostTries) throw system_error(target_, "create a temporary file beside it", EEXIST);
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

}  // namespace loadline::io
