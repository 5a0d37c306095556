// Parses single lines of /proc files: one open, one read, about 10 us.
#include "core/io/process_memory.h"

#include "core/io/unique_fd.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <string>
#include <string_view>

#include <fcntl.h>
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

// A file of /proc, empty where the system does not have it.
std::string read_proc(const char* path) {
  const UniqueFd fd(::open(path, O_RDONLY | O_CLOEXEC));
  std::array<char, 4096> buffer = {};
  const ssize_t got = fd ? ::read(fd.get(), buffer.data(), buffer.size()) : 0;
  return got > 0 ? std::string(buffer.data(), static_cast<std::size_t>(got)) : std::string();
}

}  // namespace

ProcessMemoryCounters read_process_memory() {
  const std::string text = read_proc("/proc/self/status");
  return {.rss_anon = number_after(text, "RssAnon:") * 1024,
          .rss_file = number_after(text, "RssFile:") * 1024,
          .rss_shmem = number_after(text, "RssShmem:") * 1024};
}

std::optional<std::uint64_t> available_system_memory() {
  const std::uint64_t bytes = number_after(read_proc("/proc/meminfo"), "MemAvailable:") * 1024;
  return bytes == 0 ? std::nullopt : std::optional(bytes);
}

std::uint64_t read_bytes_counter() { return number_after(read_proc("/proc/self/io"), "rchar:"); }

}  // namespace loadline
