// How much of a model's files the system's page cache holds.
#pragma once

#include "core/io/storage_reader.h"
#include "core/io/striped_reader.h"

#include <cstdint>
#include <optional>
#include <vector>

namespace loadline {

// One storage of each file that has weights.
std::vector<StorageId> one_of_each_file(const MetaGraph& graph);

// Bytes of the files of these storages: all, and those that the page cache holds (page_residency.h). Throws
// Error{io}.
std::uint64_t file_bytes(const StorageReader& reader, const std::vector<StorageId>& files);
std::uint64_t cached_bytes(const StorageReader& reader, const std::vector<StorageId>& files);

// Bytes of these files that would be read from the page cache now, and not from the disk or past the cache.
// Absent if the system does not tell: of files of another user, and on some file systems.
std::optional<std::uint64_t> bytes_read_from_cache(const StorageReader& reader,
                                                   const std::vector<StorageId>& files, FileReading reading);

}  // namespace loadline
