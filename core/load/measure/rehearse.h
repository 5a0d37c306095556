// Runs a load method with real bytes in ordinary memory and samples the kernel's counters meanwhile.
#pragma once

#include "core/base/tasks.h"
#include "core/graph/meta_graph.h"
#include "core/plan/plan.h"
#include "core/plan/timeline.h"

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

namespace loadline {

// The kernel's three resident set counters of a process, each with the spaces whose bytes it counts on the
// host machine.
struct MemoryCounter {
  std::string_view name;  // as in /proc/PID/status
  std::string_view id;
  unsigned spaces;
  std::uint64_t ProcessMemory::*count;
};
inline constexpr std::array<MemoryCounter, 3> kMemoryCounters = {{
    {"RssAnon", "rss_anon", space_bit(Space::host), &ProcessMemory::rss_anon},
    {"RssShmem", "rss_shmem", space_bit(Space::device) | space_bit(Space::staging),
     &ProcessMemory::rss_shmem},
    {"RssFile", "rss_file", space_bit(Space::page_cache), &ProcessMemory::rss_file},
}};

// Bytes of the model's files in the page cache. Pages that pread leaves there are part of no peak.
struct PageCacheUse {
  std::uint64_t files = 0;  // total size of the files
  std::uint64_t before = 0;
  std::uint64_t most = 0;
  std::uint64_t after = 0;
};

struct HostMeasurement {
  Timeline timeline;               // .measured holds the samples (sample_log.h), in time order
  std::vector<std::size_t> steps;  // the step at which each sample was taken, parallel to .measured
  ProcessMemory projected;         // peaks of the plan's blocks, by counter
  ProcessMemory measured;          // peaks of the samples, relative to just before the run
  // RssAnon and RssShmem at one moment: what cannot be evicted. Their own peaks may be at different moments.
  std::uint64_t projected_held = 0, measured_held = 0;
  PageCacheUse page_cache;
};

// Runs the plan on a HostMachine against the model's files. One thread samples the process's counters a
// thousand times a second, another follows the page cache. The thread that runs the plan also takes a sample
// before it frees a block of a MiB or more. With `cold`, first asks the system to drop the files' pages.
// Nothing else should run in this process. Throws Error: malformed or usage for a model that is incomplete or
// has no files; usage for a plan that breaks check_plan; unsupported for a plan that can only be projected,
// or that maps files which cannot be mapped (methods that import file pages have them in staging, so the
// caller must check those: Projection::maps_files); no_fit, before anything is allocated; io; cancelled.
HostMeasurement measure_on_host(const MetaGraphPtr& graph, const Plan& plan, bool cold, Progress& progress);

}  // namespace loadline
