// Memory as the system counts and gives it: this process's counters, memory still available, pages for
// buffers, a file's pages in the page cache.
#pragma once

#include "core/io/source_file.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

namespace loadline::io {

// --- Memory counters of this process, and the memory still available: from /proc and the control group.

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

// The machine's memory as the system counts it. In bytes.
struct SystemMemory {
  std::uint64_t total = 0;      // MemTotal
  std::uint64_t free = 0;       // MemFree: used for nothing
  std::uint64_t available = 0;  // MemAvailable: could be given now without swapping
  // What the limits of the process's control groups (cgroup) leave; absent: they set none.
  std::optional<std::uint64_t> group_room = {};
  // What this process can have now.
  std::uint64_t to_give() const { return group_room ? std::min(available, *group_room) : available; }
};
// Nothing if the system does not tell.
std::optional<SystemMemory> system_memory();
// Its to_give().
std::optional<std::uint64_t> available_system_memory();

// Bytes that the limits of control groups leave: those that `groups` names, in the form of /proc/self/cgroup,
// and those above them, whose folders are below `root`. The largest number if none has a limit.
std::uint64_t control_group_room(const std::string& groups, const std::string& root);

// Gives memory that was freed back to the system, where the allocator keeps it: each thread that worked has
// kept some. A hint; takes milliseconds.
void release_free_memory();

// Bytes this process has read through system calls so far, from /proc/self/io (rchar).
std::uint64_t read_bytes_counter();

// --- Asks the system to back memory with large pages.

// Asks the system to back fresh memory, not yet written to, with large pages (MADV_HUGEPAGE). The first write
// to each 4 KiB page traps into the kernel; a thousand such traps cost more than filling the pages. Only a
// hint: the system may ignore it, and the contents do not change.
void prefer_large_pages(void* begin, std::size_t bytes);

// --- Private memory that begins at a page and is returned to the system at once.

// O_DIRECT wants offsets, sizes and addresses that are multiples of this.
inline constexpr std::size_t kDirectUnit = 4096;

class Pages {
 public:
  // Throws Error{io} if the system gives none. No bytes: no memory.
  explicit Pages(std::size_t bytes);
  ~Pages();
  Pages(const Pages&) = delete;
  Pages& operator=(const Pages&) = delete;
  std::span<std::byte> span() const { return {static_cast<std::byte*>(data_), bytes_}; }

 private:
  std::size_t bytes_;
  void* data_ = nullptr;
};

// --- Measures and drops a file's pages in the system's page cache.

// The file's bytes in the page cache, by mincore(): reads nothing and does not grow this process. The kernel
// tells the truth only to the file's owner and to users who may write it; for others it calls every page
// resident. 0 for a SourceFile in memory. Throws Error{io}.
std::uint64_t resident_bytes(const SourceFile& file);

// Whether resident_bytes() tells the truth of this file to this process.
bool tells_residency(const SourceFile& file);

// Asks the system to drop the file's clean pages, so that the next reads come from the disk. Pages that other
// processes map stay.
void drop_pages(const SourceFile& file);

}  // namespace loadline::io
