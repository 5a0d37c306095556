// Writes a layout to disk. No other code writes weight bytes.
#pragma once

#include "core/base/progress.h"
#include "core/io/tensor_reader.h"
#include "exporters/exporter.h"

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace loadline {

struct WriteOptions {
  std::uint64_t memory_budget = 64ull << 20;  // bytes of buffers; at least 64 KiB are used
  bool overwrite = false;                     // replace existing targets
  bool sparse = false;                        // leave tensor bytes as holes and never call the reader
  bool verify = false;                        // read each file back and compare its hash before the rename
};

struct WrittenFile {
  std::string path;
  std::uint64_t bytes = 0;
  std::uint64_t xxh3 = 0;  // XXH3-64 of the whole file; 0 for sparse output
};

struct WriteReport {
  std::vector<WrittenFile> files;
  std::uint64_t tensors = 0;
  std::uint64_t bytes_read = 0;
  std::uint64_t bytes_written = 0;
  std::uint64_t buffer_bytes = 0;     // size of the writer's buffers
  std::uint64_t peak_host_bytes = 0;  // growth of anonymous memory while writing, sampled per buffer
  double seconds = 0;
  bool verified = false;
};

// `reader` gives the source's bytes; it is called from one thread. Writes all files beside their targets,
// syncs them, then renames them in order. `source` is the graph from which the layout was made. Missing
// folders are created. After an error or cancellation before the renames nothing remains, and existing
// targets are unchanged. If a rename fails, files already in place are removed again, unless `overwrite` is
// set. Weight files of another model in the layout's folder count as targets: with `overwrite` they are
// removed once the new files are in place. Throws Error{usage} if a target exists and may not be overwritten,
// or is one of the source's own files. Throws Error{io} before writing if the disk has less room than all
// files need.
WriteReport write_layout(const Layout& layout, const MetaGraph& source, const ReadTensor& reader,
                         const WriteOptions& options, Progress& progress);

}  // namespace loadline
