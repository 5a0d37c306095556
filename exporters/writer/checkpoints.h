// How much of one output file is durable: a log beside the file that survives a kill and a power cut.
#pragma once

#include "core/io/unique_fd.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace loadline {

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
  // Forgets all checkpoints.
  void clear();

 private:
  PartLog(UniqueFd fd, std::string path);
  UniqueFd fd_;
  std::string path_;
  std::size_t lines_ = 0;  // whole ones
};

// The checkpoints of a log that somebody else may hold.
std::vector<Checkpoint> read_part_log(const std::string& path);

}  // namespace loadline
