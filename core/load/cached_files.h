// How much of a model's files the system's page cache holds.
#pragma once

#include "core/io/storage_reader.h"

#include <cstdint>
#include <vector>

namespace loadline {

// One storage of each file that has weights.
std::vector<StorageId> one_of_each_file(const MetaGraph& graph);

// Bytes of the files of these storages: all, and those that the page cache holds (page_residency.h). Throws
// Error{io}.
std::uint64_t file_bytes(const StorageReader& reader, const std::vector<StorageId>& files);
std::uint64_t cached_bytes(const StorageReader& reader, const std::vector<StorageId>& files);

}  // namespace loadline
