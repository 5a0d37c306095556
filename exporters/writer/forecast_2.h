// What a conversion will need, and whether it can begin: the same checks for a dry run and for the real one.
#pragma once

#include "exporters/writer/forecast.h"
#include "exporters/writer/pipeline.h"
#include "exporters/writer/write_layout.h"

#include <cstdint>

namespace loadline {

struct WriteForecast {
  OutputCheck output;
  PipelineSizes buffers;
  std::uint64_t bytes_read = 0;     // from the source
  std::uint64_t bytes_written = 0;  // of the output, less what an interrupted run has written
  std::uint64_t disk_bytes = 0;     // that must be free: the most that the work takes beyond what it has now
  std::uint64_t memory_bytes = 0;   // peak of the process: what it has now, and the buffers
};

// Throws what write_layout() would throw before it writes.
WriteForecast forecast_write(const Layout& layout, const MetaGraph& source, const WriteOptions& options);

}  // namespace loadline
