// Queries about file systems: their kind, and their free space.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace loadline {

struct FileSystem {
  std::string name;      // "ext4", "NFS", or the system's number for an unknown kind
  bool network = false;  // reads and page faults go over the network
  bool memory = false;   // its files lie in memory, and on no disk
};

// The file system of an existing path. The name is empty if the system does not tell.
FileSystem file_system_of(const std::string& path);

// False also if the path cannot be examined.
bool is_folder(const std::string& path);

struct DiskSpace {
  std::string folder;  // the nearest existing folder
  std::uint64_t available = 0;
};
// The free space of the disk that would hold `path`. Folders of `path` need not exist yet. Nothing if the
// system does not tell.
std::optional<DiskSpace> disk_space(const std::string& path);

}  // namespace loadline
