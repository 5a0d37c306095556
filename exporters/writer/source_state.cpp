// stat, and the generation that the file system gives each inode.
#include "exporters/writer/source_state.h"

#include "core/base/error.h"
#include "core/io/unique_fd.h"

#include <cerrno>

#include <fcntl.h>
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <sys/stat.h>

namespace loadline {

SourceState source_state(const std::string& path) {
  const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  struct stat now = {};
  if (!fd || ::fstat(fd.get(), &now) != 0) throw system_error(path, "open", errno);
  SourceState state{.path = path,
                    .bytes = static_cast<std::uint64_t>(now.st_size),
                    .modified_ns = now.st_mtim.tv_sec * std::int64_t{1'000'000'000} + now.st_mtim.tv_nsec,
                    .device = now.st_dev,
                    .inode = now.st_ino};
  int generation = 0;
  if (::ioctl(fd.get(), FS_IOC_GETVERSION, &generation) == 0)
    state.generation = static_cast<std::uint32_t>(generation);
  return state;
}

void check_unchanged(const SourceState& before, bool punched) {
  const SourceState now = source_state(before.path);
  const ErrorPlace place{.file = before.path};
  if (now.bytes != before.bytes)
    throw Error(ErrorCode::io, place, "has changed while it was read: {} bytes now, {} before", now.bytes,
                before.bytes);
  if (now.device != before.device || now.inode != before.inode || now.generation != before.generation)
    throw Error(ErrorCode::io, place, "has been replaced by another file while it was read");
  if (now.modified_ns != before.modified_ns && !punched)
    throw Error(ErrorCode::io, place, "has changed while it was read: it was written to");
}

}  // namespace loadline
