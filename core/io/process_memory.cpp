// Parses single lines of /proc files: one open, one read, about 10 us.
#include "core/io/process_memory.h"

#include "core/io/unique_fd.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <string>
#include <string_view>

#include <fcntl.h>
#ifdef __GLIBC__
#include <malloc.h>
#endif
#include <unistd.h>

namespace loadline {
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

// Bytes that a control group may still use: its limit minus its use, without file pages that can be dropped.
// The largest number if there is no limit.
std::uint64_t control_group_room() {
  constexpr std::uint64_t kUnlimited = ~std::uint64_t{0};
  const std::string groups = read_proc("/proc/self/cgroup");
  const std::size_t at = groups.find("0::");
  if (at == std::string::npos) return kUnlimited;
  const std::string path = "/sys/fs/cgroup" + groups.substr(at + 3, groups.find('\n', at) - at - 3);
  const std::string limit = read_proc((path + "/memory.max").c_str());
  if (limit.empty() || limit.rfind("max", 0) == 0) return kUnlimited;
  const std::uint64_t most = number_after(limit, ""),
                      used = number_after(read_proc((path + "/memory.current").c_str()), "");
  const std::string stat = read_proc((path + "/memory.stat").c_str());
  const std::uint64_t droppable = number_after(stat, "\ninactive_file") + number_after(stat, "\nactive_file");
  return most - std::min(most, used - std::min(used, droppable));
}

}  // namespace

ProcessMemoryCounters read_process_memory() {
  const std::string text = read_proc("/proc/self/status");
  return {.rss_anon = number_after(text, "RssAnon:") * 1024,
          .rss_file = number_after(text, "RssFile:") * 1024,
          .rss_shmem = number_after(text, "RssShmem:") * 1024};
}

std::uint64_t peak_resident_bytes() { return number_after(read_proc("/proc/self/status"), "VmHWM:") * 1024; }

std::optional<std::uint64_t> available_system_memory() {
  const std::uint64_t bytes = number_after(read_proc("/proc/meminfo"), "MemAvailable:") * 1024;
  if (bytes == 0) return std::nullopt;
  return std::min(bytes, control_group_room());
}

std::uint64_t read_bytes_counter() { return number_after(read_proc("/proc/self/io"), "rchar:"); }

void release_free_memory() {
#ifdef __GLIBC__
  malloc_trim(0);
#endif
}

}  // namespace loadline
