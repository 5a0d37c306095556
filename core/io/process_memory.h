// What the system counts for this process, and what it could still give: from /proc.
#pragma once

#include <cstdint>
#include <optional>

namespace loadline {

// Bytes. VmRSS is their sum. There is no per-kind high-water mark: sample where it matters.
struct ProcessMemoryCounters {
  std::uint64_t rss_anon = 0;   // private memory
  std::uint64_t rss_file = 0;   // mapped file pages
  std::uint64_t rss_shmem = 0;  // memfd, shared anonymous
};

// Zeros where the system does not say.
ProcessMemoryCounters read_process_memory();

// What the system could give now without swapping: MemAvailable, or what is left to the process's
// control group (cgroup v2) if that is less. Nothing where the system does not say.
std::optional<std::uint64_t> available_system_memory();

// Bytes this process has read through system calls so far, from /proc/self/io (rchar).
std::uint64_t read_bytes_counter();

}  // namespace loadline
