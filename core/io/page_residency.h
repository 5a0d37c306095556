// Measures and drops a file's pages in the system's page cache.
#pragma once

#include "core/io/source_file.h"

#include <cstdint>

namespace loadline {

// The file's bytes in the page cache, by mincore(): reads nothing and does not grow this process. The kernel
// tells the truth only to the file's owner and to users who may write it; for others it calls every page
// resident. 0 for a SourceFile in memory. Throws Error{io}.
std::uint64_t resident_bytes(const SourceFile& file);

// Whether resident_bytes() tells the truth of this file to this process.
bool tells_residency(const SourceFile& file);

// Asks the system to drop the file's clean pages, so that the next reads come from the disk. Pages that other
// processes map stay.
void drop_pages(const SourceFile& file);

}  // namespace loadline
