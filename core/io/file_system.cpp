// Names file systems by statfs, with the numbers of linux/magic.h and of file systems outside the kernel.
#include "core/io/file_system.h"

#include <algorithm>
#include <array>
#include <filesystem>

#include <fmt/format.h>
#include <sys/vfs.h>

namespace loadline {
namespace {

struct Kind {
  std::uint32_t magic;
  const char* name;
  bool network;
};
constexpr std::uint32_t kTmpfs = 0x01021994, kRamfs = 0x858458F6;
constexpr std::array<Kind, 20> kKinds = {
    {{kRamfs, "ramfs", false},     {0xEF53, "ext4", false},     {0x58465342, "XFS", false},
     {0x9123683E, "btrfs", false}, {kTmpfs, "tmpfs", false},    {0x794C7630, "overlayfs", false},
     {0x2FC12FC1, "ZFS", false},   {0xF2F52010, "F2FS", false}, {0x4D44, "FAT", false},
     {0x2011BAB0, "exFAT", false}, {0x6969, "NFS", true},       {0x517B, "SMB", true},
     {0xFF534D42, "CIFS", true},   {0xFE534D42, "SMB2", true},  {0x01021997, "9p", true},
     {0x65735546, "FUSE", true},   {0x00C36400, "Ceph", true},  {0x0BD00BD0, "Lustre", true},
     {0x47504653, "GPFS", true},   {0x5346414F, "AFS", true}}};

}  // namespace

FileSystem file_system_of(const std::string& path) {
  struct statfs status = {};
  if (::statfs(path.c_str(), &status) != 0) return {};
  const auto magic = static_cast<std::uint32_t>(status.f_type);
  const auto kind = std::ranges::find_if(kKinds, [&](const Kind& k) { return k.magic == magic; });
  const bool memory = magic == kTmpfs || magic == kRamfs;
  if (kind == kKinds.end()) return {fmt::format("type {:#x}", magic), false, memory};
  return {kind->name, kind->network, memory};
}

bool is_folder(const std::string& path) {
  std::error_code failure;
  return std::filesystem::is_directory(path, failure);
}

std::optional<DiskSpace> disk_space(const std::string& path) {
  std::error_code failed;
  std::filesystem::path folder = std::filesystem::absolute(path, failed).parent_path();
  while (!std::filesystem::is_directory(folder, failed) && folder.has_relative_path())
    folder = folder.parent_path();
  const std::filesystem::space_info space = std::filesystem::space(folder, failed);
  if (failed) return std::nullopt;
  return DiskSpace{folder.string(), space.available};
}

}  // namespace loadline
