// Parses the Rss lines of /proc/self/status: one open, one read, about 10 us.
#include "core/io/process_memory.h"

#include "core/io/unique_fd.h"

#include <array>
#include <charconv>
#include <string_view>

#include <fcntl.h>
#include <unistd.h>

namespace loadline {
namespace {

std::uint64_t kilobytes_after(std::string_view text, std::string_view key) {
  const std::size_t at = text.find(key);
  if (at == std::string_view::npos) return 0;
  std::string_view rest = text.substr(at + key.size());
  rest.remove_prefix(std::min(rest.find_first_of("0123456789"), rest.size()));
  std::uint64_t value = 0;
  std::from_chars(rest.data(), rest.data() + rest.size(), value);
  return value * 1024;
}

}  // namespace

ProcessMemoryCounters read_process_memory() {
  const UniqueFd fd(::open("/proc/self/status", O_RDONLY | O_CLOEXEC));
  std::array<char, 4096> buffer = {};
  const ssize_t got = fd ? ::read(fd.get(), buffer.data(), buffer.size()) : 0;
  if (got <= 0) return {};
  const std::string_view text(buffer.data(), static_cast<std::size_t>(got));
  return {.rss_anon = kilobytes_after(text, "RssAnon:"),
          .rss_file = kilobytes_after(text, "RssFile:"),
          .rss_shmem = kilobytes_after(text, "RssShmem:")};
}

}  // namespace loadline
