// Pread until the whole range is read; reading ahead.
#include "core/io/source_file.h"

#include "core/base/checked_arithmetic.h"
#include "core/base/error.h"
#include "core/io/file_system.h"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

namespace loadline::io {
namespace {

// Whether reading this byte would not wait for the disk. False if the file system cannot tell.
bool is_cached(int fd, std::uint64_t offset) {
  std::byte byte{};
  const iovec place{&byte, 1};
  return ::preadv2(fd, &place, 1, static_cast<off_t>(offset), RWF_NOWAIT) == 1;
}

}  // namespace

// --- Reads with pread until the whole range is read; errors name the byte.

SourceFile SourceFile::open(const std::string& path) {
  // O_NONBLOCK: opening a named pipe must not wait for its writer
  UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!fd) throw system_error(path, "open", errno);
  return adopt(std::move(fd), path);
}

SourceFile SourceFile::adopt(UniqueFd fd, std::string path) {
  struct stat status = {};
  if (::fstat(fd.get(), &status) != 0) throw system_error(path, "stat", errno);
  if (!S_ISREG(status.st_mode)) throw Error(ErrorCode::unsupported, {.file = path}, "is not a regular file");
  SourceFile file;
  file.path_ = std::move(path);
  file.size_ = static_cast<std::uint64_t>(status.st_size);
  file.fd_ = std::move(fd);
  return file;
}

SourceFile SourceFile::from_memory(std::string path, std::vector<std::byte> bytes) {
  SourceFile file;
  file.path_ = std::move(path);
  file.size_ = bytes.size();
  file.memory_ = std::move(bytes);
  return file;
}

SourceFile SourceFile::part(std::string path, std::uint64_t offset, std::uint64_t bytes) const {
  if (!range_fits(offset, bytes, size_))
    throw Error(ErrorCode::malformed, {.file = path_, .byte = offset}, "needs {} bytes, the file ends at {}",
                bytes, size_);
  SourceFile file;
  file.path_ = std::move(path);
  file.size_ = bytes;
  if (fd_) {
    file.fd_ = UniqueFd(::fcntl(fd_.get(), F_DUPFD_CLOEXEC, 0));
    if (!file.fd_) throw system_error(path_, "open again", errno);
    file.base_ = base_ + offset;
  } else {
    const auto first = memory_.begin() + static_cast<std::ptrdiff_t>(offset);
    file.memory_.assign(first, first + static_cast<std::ptrdiff_t>(bytes));
  }
  return file;
}

void SourceFile::read_at(std::uint64_t offset, std::span<std::byte> out) const {
  if (!range_fits(offset, out.size(), size_))
    throw Error(ErrorCode::malformed, {.file = path_, .byte = offset}, "needs {} bytes, the file ends at {}",
                out.size(), size_);
  if (!fd_) {
    if (!out.empty()) std::memcpy(out.data(), memory_.data() + offset, out.size());
    return;
  }
  while (!out.empty()) {
    const ssize_t got = uninterrupted(
        [&] { return ::pread(fd_.get(), out.data(), out.size(), static_cast<off_t>(base_ + offset)); });
    if (got < 0) throw system_error(path_, fmt::format("read {} bytes at {}", out.size(), offset), errno);
    if (got == 0)
      throw Error(ErrorCode::io, {.file = path_, .byte = offset},
                  "the file became shorter while it was read (it had {} bytes)", size_);
    offset += static_cast<std::uint64_t>(got);
    out = out.subspan(static_cast<std::size_t>(got));
  }
}

void SourceFile::will_read(std::uint64_t offset, std::uint64_t bytes) const {
  if (!fd_ || bytes == 0 || offset >= size_) return;
  const std::uint64_t last = offset + std::min(bytes, size_ - offset) - 1;
  // A call for what the page cache holds already looks up each of its pages. Of a short range its ends tell.
  constexpr std::uint64_t kShort = 256 << 10;
  if (bytes > kShort || !is_cached(fd_.get(), base_ + offset) || !is_cached(fd_.get(), base_ + last))
    ::posix_fadvise(fd_.get(), static_cast<off_t>(base_ + offset), static_cast<off_t>(bytes),
                    POSIX_FADV_WILLNEED);
}

bool SourceFile::has_data(std::uint64_t offset, std::uint64_t bytes) const {
#ifdef SEEK_DATA
  if (!fd_ || bytes == 0) return true;
  // reads name their own place, so that the descriptor's may move
  const off_t next = ::lseek(fd_.get(), static_cast<off_t>(base_ + offset), SEEK_DATA);
  if (next < 0) return errno != ENXIO;  // past the last data; any other error: unknown
  return static_cast<std::uint64_t>(next) < base_ + offset + bytes;
#else
  (void)offset;
  (void)bytes;
  return true;
#endif
}

std::string SourceFile::text_at(std::uint64_t offset, std::uint64_t bytes) const {
  std::string text(static_cast<std::size_t>(bytes), '\0');
  read_at(offset, std::as_writable_bytes(std::span(text)));
  return text;
}

Error mapped_read_error(const SourceFile& file, int number) {
  // pages past the end of the file
  if (number == EFAULT)
    return Error(ErrorCode::io, {.file = file.path()},
                 "the file became shorter while it was mapped (it had {} bytes)", file.size());
  return system_error(file.path(), "read its mapped pages", number);
}

// --- Reads ahead a little at first, then more: a header of a kilobyte costs one small read, a vocabulary
// of megabytes few large ones.

Cursor::Cursor(const SourceFile& file, std::uint64_t begin, std::uint64_t end)
    : file_(file), at_(std::min(begin, file.size())), end_(std::max(at_, std::min(end, file.size()))) {}

void Cursor::fail_past_end(std::uint64_t bytes, std::string_view what) const {
  throw malformed(at_, "{} needs {} bytes, {} are left", what, bytes, remaining());
}

void Cursor::fetch(std::size_t bytes, std::string_view what) {
  if (bytes > remaining()) fail_past_end(bytes, what);
  if (in_buffer(bytes)) return;
  constexpr std::size_t kAheadAtFirst = 4096;
  if (at_ > buffer_at_ + buffered_ + ahead_) ahead_ = kAheadAtFirst;  // a long way was skipped
  const auto wanted = static_cast<std::size_t>(std::min<std::uint64_t>(std::max(bytes, ahead_), remaining()));
  if (buffer_.size() < wanted) buffer_.resize(wanted);
  file_.read_at(at_, std::span(buffer_).first(wanted));
  buffer_at_ = at_;
  buffered_ = wanted;
  ahead_ = std::min(ahead_ * 4, kBufferBytes);
}

std::string Cursor::read_text(std::uint64_t bytes, std::uint64_t most, std::string_view what) {
  if (bytes > remaining()) fail_past_end(bytes, what);
  if (bytes > most)
    throw Error(ErrorCode::limit, {.file = file_.path(), .byte = at_}, "{} has {} bytes, the limit is {}",
                what, bytes, most);
  std::string text(static_cast<std::size_t>(bytes), '\0');
  read_bytes(std::as_writable_bytes(std::span(text)), what);
  return text;
}

void Cursor::read_bytes(std::span<std::byte> out, std::string_view what) {
  if (out.size() > remaining()) fail_past_end(out.size(), what);
  if (out.size() > kBufferBytes) {
    file_.read_at(at_, out);
  } else if (!out.empty()) {
    fetch(out.size(), what);
    std::memcpy(out.data(), buffer_.data() + (at_ - buffer_at_), out.size());
  }
  at_ += out.size();
}

}  // namespace loadline::io
