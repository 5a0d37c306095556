// Checks, before anything is written, whether a layout can be written where it is to go.
#pragma once

#include "core/io/file_system.h"
#include "exporters/exporter.h"

#include <cstdint>
#include <filesystem>
#include <optional>
#include <vector>

namespace loadline {

std::uint64_t total_bytes(const Layout& layout);

struct OutputCheck {
  std::vector<std::filesystem::path> superseded;  // weight files of another model that the output replaces
  std::optional<DiskSpace> disk;                  // nothing if the system does not tell
};

// Throws Error{usage} if a target exists and `overwrite` is not set, if it is a folder or a file of the
// source, or if the output folder holds another model; Error{io} if the folder cannot be written to.
OutputCheck check_output(const Layout& layout, const MetaGraph& source, bool overwrite);
// Throws Error{io} if the disk has less than `needed` bytes: replaced files free nothing before the new ones
// are whole.
void check_room(const Layout& layout, std::uint64_t needed);

}  // namespace loadline
