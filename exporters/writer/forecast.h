// What a conversion will need, and whether it can begin.
#pragma once

#include "core/io/file_system.h"
#include "exporters/exporter.h"
#include "exporters/writer/pipeline.h"
#include "exporters/writer/write_layout.h"

#include <cstdint>
#include <filesystem>
#include <optional>
#include <vector>

namespace loadline::exporters {

// --- Checks, before anything is written, whether a layout can be written where it is to go.

std::uint64_t total_bytes(const Layout& layout);

struct OutputCheck {
  std::vector<std::filesystem::path> superseded;  // weight files of another model that the output replaces
  std::optional<io::DiskSpace> disk;              // nothing if the system does not tell
};

// Throws Error{usage} if a target exists and `overwrite` is not set, if it is a folder or a file of the
// source, or if the output folder holds another model; Error{io} if the folder cannot be written to.
OutputCheck check_output(const Layout& layout, const graph::MetaGraph& source, const WriteOptions& options);
// Throws Error{io} if the disk has less than `needed` bytes: replaced files free nothing before the new ones
// are whole.
void check_room(const Layout& layout, std::uint64_t needed);

// --- What a conversion will need, and whether it can begin: the same checks for a dry run and for the real
// one.

struct WriteForecast {
  OutputCheck output;
  PipelineSizes buffers;
  std::uint64_t bytes_read = 0;     // from the source
  std::uint64_t bytes_written = 0;  // of the output, less what an interrupted run has written
  std::uint64_t disk_bytes = 0;     // that must be free: the most that the work takes beyond what it has now
  std::uint64_t memory_bytes = 0;   // peak of the process: what it has now, and the buffers
};

// Throws what write_layout() would throw before it writes.
WriteForecast forecast_write(const Layout& layout, const graph::MetaGraph& source,
                             const WriteOptions& options);

}  // namespace loadline::exporters
