// Asks the system to back memory with large pages.
#pragma once

#include <cstddef>

namespace loadline {

// Asks the system to back fresh memory, not yet written to, with large pages (MADV_HUGEPAGE). The first write
// to each 4 KiB page traps into the kernel; a thousand such traps cost more than filling the pages. Only a
// hint: the system may ignore it, and the contents do not change.
void prefer_large_pages(void* begin, std::size_t bytes);

}  // namespace loadline
