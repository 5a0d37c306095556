// A load method run for real in ordinary memory, and what the system counted meanwhile.
#pragma once

#include "core/base/progress.h"
#include "core/graph/meta_graph.h"
#include "core/plan/plan.h"
#include "core/plan/timeline.h"

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

namespace loadline {

// The kernel's three counts of a process's memory, and the spaces whose bytes they hold on the host machine.
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

// Of the model's files, in the system's page cache: what pread leaves there is no part of any peak.
struct PageCacheUse {
  std::uint64_t files = 0;  // their bytes
  std::uint64_t before = 0;
  std::uint64_t most = 0;
  std::uint64_t after = 0;
};

struct HostMeasurement {
  Timeline timeline;               // .measured: the samples (sample_log.h), in the order of time
  std::vector<std::size_t> steps;  // at which each sample was taken, parallel to them
  ProcessMemory projected;         // peaks of the plan's blocks by counter
  ProcessMemory measured;          // peaks of the samples, as differences to just before
  PageCacheUse page_cache;
};

// Runs the plan on a HostMachine against the model's files, while a thread samples the process's counters a
// thousand times a second, as does the one that runs the plan before it gives back a MiB or more, and another
// follows the page cache. With `cold` the system is asked to drop the
// files' pages first. Nothing else should run in this process. Throws Error: malformed or usage for a model
// that is not whole or has no files, usage for a plan that breaks check_plan, unsupported for what can only
// be projected or maps files that cannot be (a method that imports their pages must be asked beside: its plan
// has them in staging), no_fit before anything is taken, io, cancelled.
HostMeasurement measure_on_host(const MetaGraphPtr& graph, const Plan& plan, bool cold, Progress& progress);

// The curves of one counter over the plan's steps in equal columns, at least one: the most in each.
struct CounterCurve {
  std::vector<std::uint64_t> projected, measured;
};
CounterCurve counter_curve(const HostMeasurement& measurement, const Plan& plan, const MemoryCounter& counter,
                           std::size_t columns);

}  // namespace loadline
