// How much of a file lies in the system's page cache.
#pragma once

#include "core/io/source_file.h"

#include <cstdint>

namespace loadline {

// Bytes of whole pages that are in memory, by mincore(): nothing is read and nothing of this process grows.
// The kernel tells it only to who may write the file or owns it, and calls every page resident to others.
// Throws Error{io}; 0 for bytes that are no file.
std::uint64_t resident_bytes(const SourceFile& file);

// Asks the system to drop the file's clean pages, so that what is read next comes from the disk. Pages that
// others map stay.
void drop_pages(const SourceFile& file);

}  // namespace loadline
