// flock, and a second look whether the file is still there.
#include "core/io/file_lock.h"

#include "core/base/error.h"

#include <cerrno>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>

namespace loadline {
namespace {

int operation(LockKind kind) { return (kind == LockKind::shared ? LOCK_SH : LOCK_EX) | LOCK_NB; }

}  // namespace

UniqueFd lock_file(const std::string& path, LockKind kind) {
  while (true) {
    UniqueFd fd(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0666));
    if (!fd) throw system_error(path, "open", errno);
    if (::flock(fd.get(), operation(kind)) != 0) {
      if (errno == EWOULDBLOCK) return {};
      throw system_error(path, "lock", errno);
    }
    // whoever held the lock before may have removed the file: then another one has its name, or none
    struct stat held = {}, named = {};
    if (::fstat(fd.get(), &held) == 0 && ::stat(path.c_str(), &named) == 0 && held.st_ino == named.st_ino)
      return fd;
  }
}

bool change_lock(const UniqueFd& fd, LockKind kind) { return ::flock(fd.get(), operation(kind)) == 0; }

}  // namespace loadline
