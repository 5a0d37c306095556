// What the system counts for this process, from /proc/self/status.
#pragma once

#include <cstdint>

namespace loadline {

// Bytes. VmRSS is their sum. There is no per-kind high-water mark: sample where it matters.
struct ProcessMemoryCounters {
  std::uint64_t rss_anon = 0;   // private memory
  std::uint64_t rss_file = 0;   // mapped file pages
  std::uint64_t rss_shmem = 0;  // memfd, shared anonymous
};

// Zeros where the system does not say.
ProcessMemoryCounters read_process_memory();

}  // namespace loadline
