// madvise(MADV_HUGEPAGE) on the whole pages inside the range.
#include "core/io/large_pages.h"

#include <cstdint>

#include <sys/mman.h>
#include <unistd.h>

namespace loadline {

void prefer_large_pages(void* begin, std::size_t bytes) {
  constexpr std::size_t kWorthIt = std::size_t{2} << 20;
  if (begin == nullptr || bytes < kWorthIt) return;
  const auto page = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
  const std::uintptr_t first = (reinterpret_cast<std::uintptr_t>(begin) + page - 1) / page * page;
  const std::uintptr_t end = (reinterpret_cast<std::uintptr_t>(begin) + bytes) / page * page;
  ::madvise(reinterpret_cast<void*>(first), end - first, MADV_HUGEPAGE);
}

}  // namespace loadline
