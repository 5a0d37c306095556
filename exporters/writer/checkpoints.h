// How much of a file is durable: checkpoints, their log, reading back.
#pragma once

#include "core/base/progress.h"
#include "core/io/file_system.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace loadline::exporters {

// --- How much of one output file is durable: a log beside the file that survives a kill and a power cut.

// The file's first `at` bytes are durable and have this XXH3-64.
struct Checkpoint {
  std::uint64_t at = 0;
  std::uint64_t xxh3 = 0;
  bool operator==(const Checkpoint&) const = default;
};

// Locked by its writer: the lock goes with the process, however that ends. Move-only.
class PartLog {
 public:
  // Opens or creates the log and takes its lock. Nothing if another process holds it. Throws Error{io}.
  static std::optional<PartLog> claim(const std::string& path);

  // The whole and undamaged lines, in increasing order.
  std::vector<Checkpoint> read() const;
  // Durable when it returns.
  void append(const Checkpoint& checkpoint);
  // Forgets all checkpoints but the first `count` lines.
  void keep(std::size_t count);

 private:
  PartLog(io::UniqueFd fd, std::string path);
  io::UniqueFd fd_;
  std::string path_;
  std::size_t lines_ = 0;  // whole ones
};

// The checkpoints of a log that somebody else may hold.
std::vector<Checkpoint> read_part_log(const std::string& path);

// --- Reads written files again and compares their hashes.

// How many checkpoints, from the first on, agree with the file. Its cached pages are dropped first, so that
// the bytes come from the disk. `pass` gets all bytes that were read, in order. Throws Error{io | canceled}.
std::size_t matching_checkpoints(
    const std::string& path, std::span<const Checkpoint> checkpoints, Progress& progress,
    const std::function<void(std::uint64_t offset, std::span<const std::byte> bytes)>& pass = {});

// The XXH3-64 of a whole file. Throws Error{io | canceled}.
std::uint64_t file_hash(const std::string& path, const Progress& progress);

// Throws Error{io} naming `target` unless bytes [begin, end) of the file at `path`, read from the disk, have
// this XXH3-64.
void check_range_read_back(const std::string& path, const std::string& target, std::uint64_t begin,
                           std::uint64_t end, std::uint64_t xxh3);
// Throws Error{io} naming `target` unless the whole file at `path` has this hash.
void check_read_back(const std::string& path, const std::string& target, const Checkpoint& whole,
                     Progress& progress);

}  // namespace loadline::exporters
