// One open input: a regular file read with pread, or bytes in memory. It is never a mapping: a file that
// shrinks while it is read gives an Error instead of SIGBUS.
#pragma once

#include "core/base/error.h"
#include "core/io/unique_fd.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace loadline {

// Move-only; read_at may be called from several threads at once.
class SourceFile {
 public:
  // Throws Error{io} if the file cannot be opened and Error{unsupported} if it is not a regular file.
  static SourceFile open(const std::string& path);
  // For tests and fuzzers: the same interface over bytes in memory. `path` is used in messages.
  static SourceFile from_memory(std::string path, std::vector<std::byte> bytes);
  // Takes over an open descriptor; `path` is used in messages.
  static SourceFile adopt(UniqueFd fd, std::string path);
  // The range [offset, offset + bytes) as a separate SourceFile, for an archive inside an archive. `path` is
  // used in messages. Throws Error{malformed} for a range past the end, and Error{io}.
  SourceFile part(std::string path, std::uint64_t offset, std::uint64_t bytes) const;

  const std::string& path() const { return path_; }
  std::uint64_t size() const { return size_; }
  // The descriptor, or -1 for bytes in memory.
  int descriptor() const { return fd_.get(); }

  // Fills `out` from byte `offset`. Throws Error{malformed} for a range past the end, and Error{io} if the
  // file has become shorter or cannot be read.
  void read_at(std::uint64_t offset, std::span<std::byte> out) const;
  // Asks the system to read the range ahead, without waiting for it.
  void will_read(std::uint64_t offset, std::uint64_t bytes) const;
  // False if the range is known to lie in a hole of a sparse file, where nothing was ever written and zeros
  // are read.
  bool has_data(std::uint64_t offset, std::uint64_t bytes) const;
  // Bytes [offset, offset + bytes) as a string. Throws as read_at does.
  std::string text_at(std::uint64_t offset, std::uint64_t bytes) const;

  // At most `most` bytes from the start, fewer if the file is shorter.
  std::string head(std::size_t most) const { return text_at(0, std::min<std::uint64_t>(most, size_)); }

 private:
  SourceFile() = default;
  std::string path_;
  std::uint64_t size_ = 0;
  std::uint64_t base_ = 0;  // offset of byte 0 in the descriptor's file
  UniqueFd fd_;
  std::vector<std::byte> memory_;
};

// What to throw where mapped pages of the file could not be made resident. `number`: errno.
Error mapped_read_error(const SourceFile& file, int number);

}  // namespace loadline
