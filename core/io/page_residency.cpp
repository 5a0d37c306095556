// Maps the file window by window and counts its resident pages.
#include "core/io/page_residency.h"

#include "core/base/error.h"

#include <algorithm>
#include <cerrno>
#include <string>
#include <vector>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

namespace loadline {

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

}  // namespace loadline
