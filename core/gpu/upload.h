// Runs a plan on a GPU, compares the memory use with the projection, and optionally verifies the bytes.
#pragma once

#include "core/base/progress.h"
#include "core/gpu/device_info.h"
#include "core/graph/meta_graph.h"
#include "core/io/striped_reader.h"
#include "core/load/request/request.h"
#include "core/plan/plan.h"
#include "core/plan/run.h"
#include "core/plan/timeline.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace loadline::gpu {

struct UploadOptions {
  std::string device = {};   // index or part of a name; empty = the best
  io::FileReads reads = {};  // how many threads read the files, and how
  bool verify = false;       // read every block back and compare it with the file
  bool validation = false;   // run under the Vulkan validation layer
  // Whether the device imports file pages where the plan allows it (MachineOptions). Absent: if files are
  // read through the page cache, and it is no software device, which a file that becomes shorter would end
  // with a signal.
  std::optional<bool> import_pages = {};
  load::Placement placement = {};  // of the plan: verification expects no tensor that it keeps off the device
  plan::CostModel costs = {};      // for the projected time
  QueueRates queues = {};          // decide between the device's families of queues
  // Called with each sample of the measured curve and the step that is running, on the thread that takes the
  // samples: must be quick.
  std::function<void(const plan::MemorySample& sample, std::size_t step)> sampled = {};
};

struct UploadReport {
  std::string device;
  bool software_device = false;  // its memory belongs to this process and counts in rss_anon_peak
  std::uint64_t tensors = 0;     // on the device at the end
  std::uint64_t bytes = 0;       // of these tensors
  double seconds = 0;            // of the whole plan, until the last transfer is complete
  double projected_seconds = 0;  // modeled_seconds() by UploadOptions::costs: files come from the disk
  std::uint64_t file_bytes = 0;  // of the model's files
  // Of these, bytes_read_from_cache() before the upload.
  std::optional<std::uint64_t> cached_bytes = {};
  double expected_seconds = 0;      // projected_seconds, with files that are cached at the rate of memory
  bool packs = false;               // the device packs weights; the projected times leave that out
  QueueFamily queue = {};           // that copied
  std::size_t queue_families = 0;   // of the device
  double bytes_per_second = 0;      // bytes over seconds
  std::uint64_t staging_bytes = 0;  // peak of the plan's staging blocks
  std::uint64_t ring_bytes = 0;     // bounce_bytes(): the machine's own, besides
  plan::Timeline projected;
  plan::Timeline measured;                // .measured holds a sample for each millisecond
  std::vector<std::size_t> sample_steps;  // the step at which each sample was taken
  std::vector<plan::UsagePoint>
      projected_usage;               // of `projected`, and of the machine's own ring where it counts
  unsigned anonymous_spaces = 0;     // bits of the spaces that count in rss_anon_peak
  unsigned mapped_spaces = 0;        // bits of the spaces that count in rss_file_peak
  std::uint64_t imported_bytes = 0;  // of files that the device has read in place
  std::uint64_t rss_file_peak = 0;   // growth of the mapped pages of files that are in memory
  std::uint64_t rss_anon_peak = 0;   // growth of the process's private memory, as the system counts it
  // The projection of rss_anon_peak: host memory, and on a software device also staging and device memory,
  // with the machine's own ring.
  std::uint64_t projected_rss_anon = 0;
  std::uint64_t device_ledger_peak = 0;
  // By the driver's own count; absent without VK_EXT_memory_budget. Its curve: MemorySample::device_counted.
  std::optional<std::uint64_t> device_budget_peak;
  unsigned device_heap_spaces = 0;  // bits of the spaces that the driver's count includes
  // The projection of device_budget_peak: what the uploader's allocator takes of the heap of the device's
  // blocks, and the machine's own ring if it is there too. 0 if the driver does not count.
  std::uint64_t projected_device_budget = 0;
  std::optional<bool> verified;    // absent = not asked for
  std::string mismatch;            // why `verified` is false: tensor, byte and both values
  std::vector<std::string> notes;  // sentences on what the device cannot do with what it holds
  std::vector<std::string> validation_messages;
};

// Throws Error:
//   malformed    the graph has a note of severity error
//   usage        the plan fails check_plan, the device does not exist, or there is nothing to verify
//   unsupported  a cast cannot be run
//   no_fit       the plan needs too much memory; nothing is allocated
//   gpu, io, canceled
// Progress counts the bytes of the plan's copies, then the verified bytes.
UploadReport upload(const graph::MetaGraphPtr& graph, const plan::Plan& plan, const UploadOptions& options,
                    Progress& progress);

}  // namespace loadline::gpu
