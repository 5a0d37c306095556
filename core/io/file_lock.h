// Advisory locks on files (flock): held by an open file, gone when the process ends in whatever way.
#pragma once

#include "core/io/unique_fd.h"

#include <string>

namespace loadline {

enum class LockKind { shared, exclusive };

// Opens the file, which is created if need be and must not be a link, and locks it. An invalid descriptor if
// another process holds a lock that excludes this one. The file that is returned still has that name. Throws
// Error{io}, also where the file system has no locks.
UniqueFd lock_file(const std::string& path, LockKind kind);
// Changes the kind of a lock that is held. False if another process holds one that excludes it.
bool change_lock(const UniqueFd& fd, LockKind kind);

}  // namespace loadline
