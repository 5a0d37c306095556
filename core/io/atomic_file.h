// An output file that appears whole or not at all: temporary file, fsync, rename.
#pragma once

#include "core/io/output_file.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace loadline {

// Renames a file atomically and makes its new folder's entry durable. Without `replace`, throws Error{usage}
// if the target exists by then. Throws Error{io}.
void rename_durably(const std::string& from, const std::string& to, bool replace);
// Makes the entries of a folder durable, where the file system can. Throws Error{io}.
void sync_folder(const std::string& folder);

// Creates a file that will replace `target`: with its permissions from the start, so that private data is
// never readable. An invalid descriptor if `path` exists. Throws Error{usage} if the target exists but is not
// a regular file, and Error{io}.
UniqueFd create_for(const std::string& path, const std::string& target);

// Writes to a temporary file beside `target`; commit() puts it in place. Destroyed before commit(),
// it removes the temporary file and leaves an existing target as it was. A lock on the temporary file tells
// that its writer lives. Move-only.
class AtomicFile {
 public:
  // The folder must exist and be writable, else Error{io}. Throws as create_for() does.
  explicit AtomicFile(std::string target);
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;
  ~AtomicFile();

  const std::string& target() const { return target_; }
  const std::string& temporary() const { return temporary_; }
  int descriptor() const { return file_.descriptor(); }

  void preallocate(std::uint64_t bytes) { file_.preallocate(bytes); }
  void write_at(std::uint64_t offset, std::span<const std::byte> bytes) { file_.write_at(offset, bytes); }
  // Makes the content durable; the target is untouched. Call before rename_into_place().
  void sync() { file_.sync(); }
  // Throws as rename_durably() does.
  void rename_into_place(bool replace);
  // sync() and rename_into_place(true).
  void commit();

 private:
  std::string target_;
  std::string temporary_;  // empty once the file is renamed or removed
  OutputFile file_;
};

}  // namespace loadline
