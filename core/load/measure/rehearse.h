// A load with real bytes in ordinary memory, and the kernel's counters meanwhile; what disk and memory give.
#pragma once

#include "core/base/progress.h"
#include "core/graph/meta_graph.h"
#include "core/io/graph_reader.h"
#include "core/io/striped_reader.h"
#include "core/load/request/rates.h"
#include "core/plan/plan.h"
#include "core/plan/run.h"
#include "core/plan/timeline.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace loadline::load {

// --- How much of a model's files the system's page cache holds.

// One storage of each file that has weights.
std::vector<graph::StorageId> one_of_each_file(const graph::MetaGraph& graph);

// Bytes of the files of these storages: all, and those that the page cache holds (core/io/system_memory.h).
// Throws Error{io}.
std::uint64_t file_bytes(const io::StorageReader& reader, const std::vector<graph::StorageId>& files);
std::uint64_t cached_bytes(const io::StorageReader& reader, const std::vector<graph::StorageId>& files);

// Bytes of these files that would be read from the page cache now, and not from the disk or past the cache.
// Absent if the system does not tell: of files of another user, and on some file systems.
std::optional<std::uint64_t> bytes_read_from_cache(const io::StorageReader& reader,
                                                   const std::vector<graph::StorageId>& files,
                                                   io::FileReading reading);

// --- A log of memory samples from a run of any length, in memory that is allocated and touched before the
// run.

// Keeps every sample while there is room. When full, merges neighboring samples in pairs: each pair keeps
// the first one's time and step and the maximum of each counter. From then on each entry covers twice as many
// samples. No peak is lost.
class SampleLog {
 public:
  // `most`: capacity in samples, an even number of at least 2. The default takes 3 MiB.
  explicit SampleLog(std::size_t most = 1 << 16);

  void add(const plan::MemorySample& sample, std::size_t step);
  // The samples and, parallel to them, the steps at which they were taken. take() leaves the log empty.
  struct Entries {
    std::vector<plan::MemorySample> samples = {};
    std::vector<std::size_t> steps = {};
  };
  Entries take();
  // The same, without emptying the log: the figures up to now of a run that goes on.
  Entries entries() const;

 private:
  void halve();

  std::vector<plan::MemorySample> samples_;
  std::vector<std::size_t> steps_;
  std::size_t count_ = 0;
  std::size_t group_ = 1;     // samples per entry
  std::size_t in_group_ = 0;  // samples in the last entry; 0: it is full
};

// --- Runs a plan while the memory of the process is sampled.

struct SampledRun {
  plan::Timeline timeline;         // .measured holds the samples, in time order
  std::vector<std::size_t> steps;  // the step at which each sample was taken, parallel to .measured
  plan::ProcessMemory measured;    // peaks of the samples, relative to just before the run
  // RssAnon and RssShmem at one moment: what cannot be evicted. Their own peaks may be at different moments.
  std::uint64_t measured_held = 0;
  std::uint64_t device_counted = 0;  // the peak
};

// Both are called from either thread, never at once.
struct SampleOptions {
  std::function<std::uint64_t()> device_counted = {};  // the driver's count of the device's memory
  std::function<void(const plan::MemorySample&, std::size_t step)> sampled = {};
};

// Throws Error for a plan that cannot be run: malformed or usage for a model that is incomplete or has no
// files; usage for a plan that breaks check_plan; unsupported for a plan that can only be projected. `what`
// is to be done: "upload".
void require_runnable(const graph::MetaGraph& graph, const plan::Plan& plan, std::string_view what);

// Samples before and after the run, and a thousand times a second during it from a thread of its own. The
// thread that runs the plan also takes a sample before it frees a block of a MiB or more. `samples` must be
// made before the machine, whose first sample all others are relative to: then its memory is in no
// difference.
SampledRun sampled_run(const plan::Plan& plan, plan::Machine& machine, SampleLog samples, Progress& progress,
                       const SampleOptions& options = {});

// --- Runs a load method with real bytes in ordinary memory and samples the kernel's counters meanwhile.

// The kernel's three resident set counters of a process, each with the spaces whose bytes it counts on the
// host machine.
struct MemoryCounter {
  std::string_view name;  // as in /proc/PID/status
  std::string_view id;
  unsigned spaces;
  std::uint64_t plan::ProcessMemory::*count;
};
inline constexpr std::array<MemoryCounter, 3> kMemoryCounters = {{
    {"RssAnon", "rss_anon", plan::space_bit(plan::Space::host), &plan::ProcessMemory::rss_anon},
    {"RssShmem", "rss_shmem", plan::space_bit(plan::Space::device) | plan::space_bit(plan::Space::staging),
     &plan::ProcessMemory::rss_shmem},
    {"RssFile", "rss_file", plan::space_bit(plan::Space::page_cache), &plan::ProcessMemory::rss_file},
}};

// Bytes of the model's files in the page cache. Pages that pread leaves there are part of no peak.
struct PageCacheUse {
  std::uint64_t files = 0;  // total size of the files
  std::uint64_t before = 0;
  std::uint64_t most = 0;
  std::uint64_t after = 0;
};

struct HostMeasurement : SampledRun {
  plan::ProcessMemory projected;  // peaks of the plan's blocks, by counter
  std::uint64_t projected_held = 0;
  PageCacheUse page_cache;
};

// Runs the plan on a HostMachine against the model's files; another thread follows the page cache. With
// `cold`, first asks the system to drop the files' pages. Nothing else should run in this process. Throws
// Error: as require_runnable(); unsupported for a plan that maps files which cannot be mapped (methods that
// import file pages have them in staging, so the caller must check those: Projection::maps_files); no_fit,
// before anything is allocated; io; canceled.
HostMeasurement measure_on_host(const graph::MetaGraphPtr& graph, const plan::Plan& plan, bool cold,
                                Progress& progress);

// --- Measures how fast this machine reads its disk and copies its memory.

// Needs at least one value. Of an even number of values, the mean of the middle two.
double median(std::vector<double> values);

// Measures disk_read, disk_write and seek_seconds with an unnamed temporary file of `bytes` in `folder`; the
// system removes it on close. Reads with O_DIRECT; if the file system does not support that, drops the file's
// pages from the page cache first. disk_read: median of seven reads of the whole file, fewer if they exceed
// twenty seconds. seek_seconds: median of 200 reads of 4 KiB. Progress counts bytes. Throws Error{io | usage
// | canceled}.
void measure_disk(const std::string& folder, std::uint64_t bytes, MeasuredRates& rates, Progress& progress);

// Measures memory_copy and host_pages: medians of seven copies of `bytes`, which should exceed every cache,
// and of seven times that the system gives as much and takes it back. Throws Error{limit | no_fit} if the
// memory cannot be allocated.
void measure_memory(std::uint64_t bytes, MeasuredRates& rates, Progress& progress);

}  // namespace loadline::load
