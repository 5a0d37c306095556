// Memory from the system in large pieces.
#pragma once

#include <cstddef>

namespace loadline {

// Asks that fresh memory, not yet written to, be given out in large pages: a page of 4 KiB costs a trap of
// its own when it is first written, a thousand of them more than filling them. Only a wish; changes no
// contents.
void prefer_large_pages(void* begin, std::size_t bytes);

}  // namespace loadline
