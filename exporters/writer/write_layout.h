// Writes a layout to disk, in one process or in shares that are joined.
#pragma once

#include "core/base/progress.h"
#include "core/convert/recipe/recipe.h"
#include "core/graph/dtype_and_shape.h"
#include "core/io/atomic_file.h"
#include "core/io/graph_reader.h"
#include "exporters/exporter.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace loadline::exporters {

// --- Writes a layout to disk. No other code writes weight bytes.

// One of several processes that write the files of one output together.
struct WriteShare {
  std::uint32_t index = 0, count = 1;  // a count of 0: the front end finds both in its environment
  bool operator==(const WriteShare&) const = default;
};

struct WriteReport;
// Called once an output is in place, while the work folder still tells another run of it.
using Published = std::function<void(const WriteReport& report)>;

struct WriteOptions {
  std::uint64_t memory_budget = 256ull << 20;  // bytes of buffers; a few hundred KiB are used at least
  std::uint32_t threads = 0;                   // that read and compute; 0 = as many as processors, at most 8
  bool overwrite = false;                      // replace existing targets, and remove dead remains
  bool resume = false;                         // go on with remains, and leave them for the next run
  bool consume = false;                        // give the source's disk space back as its bytes are written
  std::size_t consumable_files = SIZE_MAX;     // of the source: the first ones; the others stay
  bool verify = false;                         // read each file back and compare its hash before the rename
  bool refuse_faults = false;                  // fail before anything with faulty numbers is in place
  bool sparse = false;                         // leave tensor bytes as holes and never call the reader
  std::optional<WriteShare> share = {};        // write this share only, and leave the end to join_parts()
  io::WritePolicy policy = io::WritePolicy::direct;
  // How often written bytes are made durable, so that a kill or a power cut costs no more; a consumed source
  // needs smaller steps, of at most kConsumedStep.
  std::uint64_t checkpoint_bytes = 512ull << 20;
  std::vector<std::string> other_inputs = {};  // files that are read and are none of the source's
  Published published = {};
};

struct WrittenFile {
  std::string path;
  std::uint64_t bytes = 0;
  std::uint64_t xxh3 = 0;  // XXH3-64 of the whole file; 0 for sparse output
};

// A tensor of the output with numbers that its type cannot hold, or that are no finite numbers in the source.
struct FaultyTensor {
  std::string name;
  graph::DType dtype = graph::DType::opaque;
  convert::NumberFaults faults;
};

struct WriteReport {
  std::vector<WrittenFile> files;         // that this call wrote or found complete
  std::vector<FaultyTensor> faulty = {};  // among what this call converted; copies are not looked at
  std::uint64_t tensors = 0;
  std::uint64_t bytes_read = 0;  // from the source
  std::uint64_t bytes_written = 0;
  std::uint64_t bytes_resumed = 0;    // of the output, that earlier runs had written
  std::uint64_t buffer_bytes = 0;     // size of the writer's buffers
  std::uint64_t peak_host_bytes = 0;  // growth of anonymous memory while writing, sampled per buffer
  std::uint64_t peak_rss_bytes = 0;   // the process's VmHWM at the end; 0 if the system does not tell
  double seconds = 0;
  bool verified = false;
  bool complete = true;  // false for a share: the output appears when it is joined
};

// `reader` gives the source's bytes; it is called from several threads. `source` is the graph from which the
// layout was made. Missing folders are created. All files grow in a work folder beside their targets
// (exporters/writer/work_folder.h), are made durable, and are then renamed in order. If the source's files
// change meanwhile, throws Error{io}.
//
// After an error or cancellation before the renames existing targets are unchanged, and nothing remains,
// unless `resume` is set, files are shared with other processes, or the source has been consumed in part. A
// process that dies leaves its work folder. Then the next call for that output throws Error{usage}, unless it
// resumes, or may overwrite, which removes the work folder; never one that holds the only copy of something.
//
// Several files replace others as one: if that fails, all are as they were (WorkFolder::publish()). Weight
// files of another model in the layout's folder count as targets: with `overwrite` they make way as well.
// Throws Error{usage} if a target exists and may not be overwritten, or is a file that is read. Throws
// Error{io} before writing if the disk has less room than all files need.
WriteReport write_layout(const Layout& layout, const graph::MetaGraph& source, const io::ReadTensor& reader,
                         const WriteOptions& options, Progress& progress);

// "3 numbers in 1 tensor too large for F16: 'a'; 1 number in 1 tensor infinite or NaN in the source: 'b'".
// Empty without faults.
std::string faults_text(const WriteReport& report);

// --- Ends an output whose parts are written.

// Verifies every part that was written in shares, or by a run whose last step was interrupted, and puts all
// in place, an index last. `out` is the output, or the folder of a single output file. The source is not
// needed. Throws Error{usage} if there is nothing to end, if a process still writes, or if a part is missing
// or incomplete, naming the first.
WriteReport join_parts(const std::string& out, bool overwrite, Progress& progress,
                       const Published& published = {});

// The same for the work folder of an interrupted run that had begun to put its parts in place.
WriteReport end_publication(const std::string& work_folder, Progress& progress);

// Whether all parts of an output that was made of `source`, a path, are written, and an interrupted run had
// begun to put them in place or, with a source that is consumed, had ended that.
bool waits_for_last_step(const std::string& out, const std::string& source);

}  // namespace loadline::exporters
