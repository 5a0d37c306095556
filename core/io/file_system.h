// What kind of file system a path lies on.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace loadline {

struct FileSystem {
  std::string name;      // "ext4", "NFS", or the number that the system gives
  bool network = false;  // reads travel, page faults too
};

// Of an existing path; an empty name where the system does not say.
FileSystem file_system_of(const std::string& path);

// False also where the path cannot be looked at.
bool is_folder(const std::string& path);

struct DiskSpace {
  std::string folder;  // the nearest one that exists
  std::uint64_t available = 0;
};
// Of the disk that would hold `path`, whose folders may be missing yet; nothing where the system does not
// say.
std::optional<DiskSpace> disk_space(const std::string& path);

}  // namespace loadline
