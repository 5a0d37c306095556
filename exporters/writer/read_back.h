// Reads written files again and compares their hashes.
#pragma once

#include "core/base/tasks.h"
#include "exporters/writer/checkpoints.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>

namespace loadline {

// How many checkpoints, from the first on, agree with the file. Its cached pages are dropped first, so that
// the bytes come from the disk. `pass` gets all bytes that were read, in order. Throws Error{io | cancelled}.
std::size_t matching_checkpoints(
    const std::string& path, std::span<const Checkpoint> checkpoints, Progress& progress,
    const std::function<void(std::uint64_t offset, std::span<const std::byte> bytes)>& pass = {});

// The XXH3-64 of a whole file. Throws Error{io | cancelled}.
std::uint64_t file_hash(const std::string& path, const Progress& progress);

// Throws Error{io} naming `target` unless bytes [begin, end) of the file at `path`, read from the disk, have
// this XXH3-64.
void check_range_read_back(const std::string& path, const std::string& target, std::uint64_t begin,
                           std::uint64_t end, std::uint64_t xxh3);
// Throws Error{io} naming `target` unless the whole file at `path` has this hash.
void check_read_back(const std::string& path, const std::string& target, const Checkpoint& whole,
                     Progress& progress);

}  // namespace loadline
