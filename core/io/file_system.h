// What kind of file system a path lies on.
#pragma once

#include <string>

namespace loadline {

struct FileSystem {
  std::string name;      // "ext4", "NFS", or the number that the system gives
  bool network = false;  // reads travel, page faults too
};

// Of an existing path; an empty name where the system does not say.
FileSystem file_system_of(const std::string& path);

}  // namespace loadline
