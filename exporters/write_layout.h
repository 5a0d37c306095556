// The only code that writes weight bytes to disk.
#pragma once

#include "core/base/progress.h"
#include "exporters/exporter.h"

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

namespace loadline {

// Fills `out` with source bytes of `tensor` from byte `offset`. Called from one thread.
using ReadTensor = std::function<void(TensorId tensor, std::uint64_t offset, std::span<std::byte> out)>;

struct WriteOptions {
  std::uint64_t memory_budget = 64ull << 20;  // bytes of buffers; at least 64 KiB are used
  bool overwrite = false;                     // replace existing targets
  bool sparse = false;                        // leave tensor bytes as holes and never call the reader
  bool verify = false;                        // read every file back and compare its hash before it appears
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
  std::uint64_t buffer_bytes = 0;     // what the writer's buffers took
  std::uint64_t peak_host_bytes = 0;  // growth of anonymous memory while writing, sampled per buffer
  double seconds = 0;
  bool verified = false;
};

// Writes all files beside their targets, syncs them, then renames them in order. On any error or
// cancellation before the renames nothing remains and existing targets are as they were; a rename
// that fails takes back what was published, unless `overwrite` let it replace something. Missing folders are
// made. Weight files of another model in the layout's folder count as targets: with `overwrite` they are
// removed once the new ones are in place. `source` is the graph that the layout was made from. Throws
// Error{usage} if a target exists and may not be overwritten, or is one of the source's own files, and
// Error{io} before anything is written if the disk has less room than all files together take.
WriteReport write_layout(const Layout& layout, const MetaGraph& source, const ReadTensor& reader,
                         const WriteOptions& options, Progress& progress);

}  // namespace loadline
