// pwrite, with the page cache kept small behind it.
#include "core/io/output_file.h"

#include "core/base/error.h"
#include "core/base/text.h"
#include "core/io/pages.h"

#include <algorithm>
#include <cerrno>

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

namespace loadline {

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

void OutputFile::set_direct(bool direct) {
  if (direct == direct_) return;
  const int flags = ::fcntl(fd_.get(), F_GETFL);
  const int wanted = direct ? flags | O_DIRECT : flags & ~O_DIRECT;
  if (flags < 0 || ::fcntl(fd_.get(), F_SETFL, wanted) != 0) {
    if (direct) policy_ = WritePolicy::drop_behind;
    return;
  }
  direct_ = direct;
}

void OutputFile::set_policy(WritePolicy policy) {
  policy_ = policy;
  set_direct(policy == WritePolicy::direct);
}

void OutputFile::write_at(std::uint64_t offset, std::span<const std::byte> bytes) {
  const std::uint64_t begin = offset, end = offset + bytes.size();
  const bool aligned = offset % kDirectUnit == 0 && bytes.size() % kDirectUnit == 0 &&
                       reinterpret_cast<std::uintptr_t>(bytes.data()) % kDirectUnit == 0;
  if (policy_ == WritePolicy::direct) set_direct(aligned);
  while (!bytes.empty()) {
    const ssize_t put = ::pwrite(fd_.get(), bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (put < 0 && errno == EINTR) continue;
    if (put < 0 && errno == EINVAL && direct_) {  // a file system that takes the flag but not the write
      set_policy(WritePolicy::drop_behind);
      continue;
    }
    if (put < 0)
      throw Error(ErrorCode::io, {.file = path_, .byte = offset},
                  system_error("", fmt::format("write {} bytes", bytes.size()), errno).what());
    offset += static_cast<std::uint64_t>(put);
    bytes = bytes.subspan(static_cast<std::size_t>(put));
    // the rest of a short write is not aligned any more
    if (direct_ && !bytes.empty()) set_direct(false);
  }
  if (policy_ == WritePolicy::drop_behind) write_behind(begin, end - begin);
}

// Writing starts now, and waits for what was written kBehind before: dirty pages stay few, and the pages that
// are dropped are used again, which costs less than new ones.
void OutputFile::write_behind(std::uint64_t offset, std::uint64_t bytes) {
  const std::uint64_t end = offset + bytes;
  ::sync_file_range(fd_.get(), static_cast<off_t>(offset), static_cast<off_t>(bytes), SYNC_FILE_RANGE_WRITE);
  if (dropped_ > offset) dropped_ = offset;
  if (end < dropped_ + 2 * kBehind) return;
  const std::uint64_t upto = end - kBehind;
  const auto from = static_cast<off_t>(dropped_), size = static_cast<off_t>(upto - dropped_);
  ::sync_file_range(fd_.get(), from, size,
                    SYNC_FILE_RANGE_WAIT_BEFORE | SYNC_FILE_RANGE_WRITE | SYNC_FILE_RANGE_WAIT_AFTER);
  ::posix_fadvise(fd_.get(), from, size, POSIX_FADV_DONTNEED);
  dropped_ = upto;
}

void OutputFile::sync() {
  if (::fsync(fd_.get()) != 0) throw system_error(path_, "make its content durable", errno);
}

}  // namespace loadline
