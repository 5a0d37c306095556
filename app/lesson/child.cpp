// Reads counters of /proc into a buffer on the stack.
#include "app/lesson/child.h"

#include <string_view>

#include <fcntl.h>
#include <sys/resource.h>

namespace loadline::lesson {
namespace {

// The number of KiB behind `key` in a file of /proc, in bytes.
class ProcFile {
 public:
  explicit ProcFile(const char* path) {
    const int file = ::open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0) return;
    ssize_t got = 0;
    while (size_ < sizeof(text_) && (got = ::read(file, text_ + size_, sizeof(text_) - size_)) > 0)
      size_ += static_cast<std::size_t>(got);
    ::close(file);
  }
  std::uint64_t bytes(std::string_view key) const {
    const std::string_view all(text_, size_);
    const std::size_t at = all.find(key);
    if (at == std::string_view::npos) return 0;
    std::uint64_t kib = 0;
    for (const char letter : all.substr(at + key.size())) {
      if (letter >= '0' && letter <= '9')
        kib = kib * 10 + static_cast<std::uint64_t>(letter - '0');
      else if (letter != ' ' && letter != '\t')
        break;
    }
    return kib * 1024;
  }

 private:
  char text_[8192];
  std::size_t size_ = 0;
};

}  // namespace

OwnCounters own_counters() {
  OwnCounters counters;
  const ProcFile status("/proc/self/status");
  counters.rss_anon = status.bytes("RssAnon:");
  counters.rss_file = status.bytes("RssFile:");
  counters.data = status.bytes("VmData:");
  counters.committed = ProcFile("/proc/meminfo").bytes("Committed_AS:");
  rusage usage{};
  if (::getrusage(RUSAGE_SELF, &usage) == 0)
    counters.major_faults = static_cast<std::uint64_t>(usage.ru_majflt);
  return counters;
}

void touch_pages(const void* pages, std::size_t bytes) {
  for (std::size_t at = 0; at < bytes; at += kPageBytes) (void)static_cast<const volatile char*>(pages)[at];
}

}  // namespace loadline::lesson
