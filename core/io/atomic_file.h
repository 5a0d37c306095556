// An output file that appears whole or not at all: temporary file, fsync, rename.
#pragma once

#include "core/io/unique_fd.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace loadline {

// Writes to a temporary file beside `target`; commit() puts it in place. Destroyed before commit(),
// it removes the temporary file and leaves an existing target as it was. Move-only.
class AtomicFile {
 public:
  // The folder must exist and be writable, else Error{io}. Throws Error{usage} if the target exists but is
  // not a regular file.
  explicit AtomicFile(std::string target);
  AtomicFile(AtomicFile&& other) noexcept;
  AtomicFile& operator=(AtomicFile&&) = delete;
  ~AtomicFile();

  const std::string& target() const { return target_; }
  const std::string& temporary() const { return temporary_; }

  // Reserves disk blocks for exactly `bytes`, so that a full disk fails now and not at the end.
  // Throws Error{io}. File systems that cannot reserve are accepted.
  void preallocate(std::uint64_t bytes);
  // Sets the size without reserving blocks: unwritten ranges are holes that read as zero.
  void set_size(std::uint64_t bytes);
  void write_at(std::uint64_t offset, std::span<const std::byte> bytes);
  // Makes the content durable; the target is untouched. Call before rename_into_place().
  void sync();
  // Renames the file to its target atomically and makes the folder's entry durable. Without `replace`, throws
  // Error{usage} if the target exists by then.
  void rename_into_place(bool replace);
  // sync() and rename_into_place(true).
  void commit();

 private:
  std::string target_;
  std::string temporary_;  // empty once the file is renamed or removed
  UniqueFd fd_;
};

}  // namespace loadline
