// Memory counters of this process, and the memory still available: from /proc and the control group.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace loadline {

// In bytes; their sum is VmRSS. The system keeps no high-water mark for each kind: sample at the moments that
// matter.
struct ProcessMemoryCounters {
  std::uint64_t rss_anon = 0;   // private memory
  std::uint64_t rss_file = 0;   // mapped file pages
  std::uint64_t rss_shmem = 0;  // memfd, shared anonymous
};

// All zeros if the system does not tell.
ProcessMemoryCounters read_process_memory();

// The most memory that was ever resident in this process (VmHWM); 0 if the system does not tell.
std::uint64_t peak_resident_bytes();

// Memory that the system could give now without swapping: MemAvailable, or what the limit of a control group
// (cgroup) of the process leaves, if that is less. Nothing if the system does not tell.
std::optional<std::uint64_t> available_system_memory();

// Bytes that the limits of control groups leave: those that `groups` names, in the form of /proc/self/cgroup,
// and those above them, whose folders are below `root`. The largest number if none has a limit.
std::uint64_t control_group_room(const std::string& groups, const std::string& root);

// Gives memory that was freed back to the system, where the allocator keeps it: each thread that worked has
// kept some. A hint; takes milliseconds.
void release_free_memory();

// Bytes this process has read through system calls so far, from /proc/self/io (rchar).
std::uint64_t read_bytes_counter();

}  // namespace loadline
