// /proc and control groups; madvise, mmap, mincore.
#include "core/io/system_memory.h"

#include "core/base/error.h"
#include "core/base/text.h"
#include "core/io/file_system.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#ifdef __GLIBC__
#include <malloc.h>
#endif
#include <unistd.h>

namespace loadline::io {

// --- Parses single lines of /proc files: one open, one read, about 10 us.

namespace {

std::uint64_t number_after(std::string_view text, std::string_view key) {
  const std::size_t at = text.find(key);
  if (at == std::string_view::npos) return 0;
  std::string_view rest = text.substr(at + key.size());
  rest.remove_prefix(std::min(rest.find_first_of("0123456789"), rest.size()));
  std::uint64_t value = 0;
  std::from_chars(rest.data(), rest.data() + rest.size(), value);
  return value;
}

// The text of a /proc file; empty if there is none.
std::string read_proc(const char* path) {
  const UniqueFd fd(::open(path, O_RDONLY | O_CLOEXEC));
  std::array<char, 4096> buffer = {};
  const ssize_t got = fd ? ::read(fd.get(), buffer.data(), buffer.size()) : 0;
  return got > 0 ? std::string(buffer.data(), static_cast<std::size_t>(got)) : std::string();
}

constexpr std::uint64_t kUnlimited = ~std::uint64_t{0};

// What a limit leaves: the use counts without file pages, which can be dropped.
std::uint64_t room_below(std::uint64_t most, std::uint64_t used, std::uint64_t droppable) {
  return most - std::min(most, used - std::min(used, droppable));
}

// Of one group of version 2, at this folder. The largest number if it has no limit.
std::uint64_t group_room(const std::string& folder) {
  const std::string limit = read_proc((folder + "/memory.max").c_str());
  if (limit.empty() || limit.starts_with("max")) return kUnlimited;
  const std::string stat = read_proc((folder + "/memory.stat").c_str());
  return room_below(number_after(limit, ""),
                    number_after(read_proc((folder + "/memory.current").c_str()), ""),
                    number_after(stat, "\ninactive_file") + number_after(stat, "\nactive_file"));
}

// Of one group of version 1, at this folder. It says "no limit" by a number beyond every memory.
std::uint64_t old_group_room(const std::string& folder) {
  constexpr std::uint64_t kBeyond = 1ull << 60;
  const std::uint64_t most = number_after(read_proc((folder + "/memory.limit_in_bytes").c_str()), "");
  if (most == 0 || most >= kBeyond) return kUnlimited;
  const std::string stat = read_proc((folder + "/memory.stat").c_str());
  return room_below(most, number_after(read_proc((folder + "/memory.usage_in_bytes").c_str()), ""),
                    number_after(stat, "\ntotal_inactive_file") + number_after(stat, "\ntotal_active_file"));
}

// The path of the group with this controller in the text of /proc/self/cgroup, whose lines are
// "4:cpu,memory:/path"; "" for the root, or none. Version 2 is the line without controllers.
std::string group_path(std::string_view groups, std::string_view controller) {
  for (const std::string_view line : lines_of(groups)) {
    const std::vector<std::string_view> parts = split(line, ':');
    if (parts.size() < 3) continue;
    const std::vector<std::string_view> names = split(parts[1], ',');
    if (controller.empty() ? !parts[1].empty() : std::ranges::find(names, controller) == names.end())
      continue;
    const std::string path(line.substr(parts[0].size() + parts[1].size() + 2));
    return path == "/" ? "" : path;
  }
  return "";
}

// The least room of the group at root + path and those above it. In a container a group may be the root,
// whatever its name is outside.
template <typename Room>
std::uint64_t least_room(const std::string& root, std::string path, Room room) {
  std::uint64_t least = kUnlimited;
  for (;; path.resize(path.rfind('/'))) {
    least = std::min(least, room(root + path));
    if (path.empty()) return least;
  }
}

}  // namespace

std::uint64_t control_group_room(const std::string& groups, const std::string& root) {
  return std::min(least_room(root, group_path(groups, ""), group_room),
                  least_room(root + "/memory", group_path(groups, "memory"), old_group_room));
}

ProcessMemoryCounters read_process_memory() {
  const std::string text = read_proc("/proc/self/status");
  return {.rss_anon = number_after(text, "RssAnon:") * 1024,
          .rss_file = number_after(text, "RssFile:") * 1024,
          .rss_shmem = number_after(text, "RssShmem:") * 1024};
}

std::uint64_t peak_resident_bytes() { return number_after(read_proc("/proc/self/status"), "VmHWM:") * 1024; }

std::optional<SystemMemory> system_memory() {
  const std::string text = read_proc("/proc/meminfo");
  SystemMemory memory{.total = number_after(text, "MemTotal:") * 1024,
                      .free = number_after(text, "MemFree:") * 1024,
                      .available = number_after(text, "MemAvailable:") * 1024};
  if (memory.available == 0) return std::nullopt;
  const std::uint64_t room = control_group_room(read_proc("/proc/self/cgroup"), "/sys/fs/cgroup");
  if (room != kUnlimited) memory.group_room = room;
  return memory;
}

std::optional<std::uint64_t> available_system_memory() {
  const std::optional<SystemMemory> memory = system_memory();
  return memory ? std::optional(memory->to_give()) : std::nullopt;
}

std::uint64_t read_bytes_counter() { return number_after(read_proc("/proc/self/io"), "rchar:"); }

void release_free_memory() {
#ifdef __GLIBC__
  malloc_trim(0);
#endif
}

// --- madvise(MADV_HUGEPAGE) on the whole pages inside the range.

void prefer_large_pages(void* begin, std::size_t bytes) {
  constexpr std::size_t kWorthIt = std::size_t{2} << 20;
  if (begin == nullptr || bytes < kWorthIt) return;
  const auto page = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
  const std::uintptr_t first = (reinterpret_cast<std::uintptr_t>(begin) + page - 1) / page * page;
  const std::uintptr_t end = (reinterpret_cast<std::uintptr_t>(begin) + bytes) / page * page;
  ::madvise(reinterpret_cast<void*>(first), end - first, MADV_HUGEPAGE);
}

Pages::Pages(std::size_t bytes) : bytes_(bytes) {
  if (bytes == 0) return;
  data_ = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (data_ == MAP_FAILED) throw system_error("", "get memory for buffers", errno);
}

Pages::~Pages() {
  if (data_ != nullptr) ::munmap(data_, bytes_);
}

// --- Maps the file window by window and counts its resident pages.

std::uint64_t resident_bytes(const SourceFile& file) {
  if (file.descriptor() < 0) return 0;
  constexpr std::uint64_t kWindow = 1ull << 30;
  const auto page = static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
  std::vector<unsigned char> pages;
  std::uint64_t resident = 0;
  for (std::uint64_t at = 0; at < file.size(); at += kWindow) {
    const auto length = static_cast<std::size_t>(std::min(kWindow, file.size() - at));
    void* const base =
        ::mmap(nullptr, length, PROT_READ, MAP_SHARED, file.descriptor(), static_cast<off_t>(at));
    if (base == MAP_FAILED) throw system_error(file.path(), "map it to count its pages", errno);
    pages.assign((length + page - 1) / page, 0);
    const int failed = ::mincore(base, length, pages.data()) == 0 ? 0 : errno;
    ::munmap(base, length);
    if (failed != 0) throw system_error(file.path(), "count its pages in memory", failed);
    const auto held = page * static_cast<std::uint64_t>(
                                 std::ranges::count_if(pages, [](unsigned char p) { return (p & 1) != 0; }));
    // the last page counts only up to the end of the file
    resident += std::min<std::uint64_t>(length, held);
  }
  return resident;
}

bool tells_residency(const SourceFile& file) {
  struct stat status = {};
  if (file.descriptor() < 0 || ::fstat(file.descriptor(), &status) != 0) return false;
  if (::geteuid() == 0 || status.st_uid == ::geteuid()) return true;
  const std::string path = "/proc/self/fd/" + std::to_string(file.descriptor());
  return ::access(path.c_str(), W_OK) == 0;
}

void drop_pages(const SourceFile& file) {
  if (file.descriptor() >= 0) ::posix_fadvise(file.descriptor(), 0, 0, POSIX_FADV_DONTNEED);
}

}  // namespace loadline::io
