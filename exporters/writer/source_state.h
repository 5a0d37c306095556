// What tells that an input file is still the one that was opened.
#pragma once

#include <cstdint>
#include <string>

namespace loadline {

struct SourceState {
  std::string path;
  std::uint64_t bytes = 0;
  std::int64_t modified_ns = 0;  // since 1970
  std::uint64_t device = 0, inode = 0;
  std::uint64_t generation = 0;  // of the inode; 0 where the file system has none
  bool operator==(const SourceState&) const = default;
};

// Throws Error{io}.
SourceState source_state(const std::string& path);
// Throws Error{io} that names what differs. `punched`: holes have been made in the file, which changes its
// time.
void check_unchanged(const SourceState& before, bool punched);

}  // namespace loadline
