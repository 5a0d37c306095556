// Files out: a checksum, large writes, files that appear whole or not at all, edits in place that a crash
// cannot spoil.
#pragma once

#include "core/io/file_system.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>

struct XXH3_state_s;
struct stat;

namespace loadline::io {

// --- What tells two states of a file apart: the 64-bit XXH3 checksum of bytes that arrive in pieces, and a
// time.

class Xxh3 {
 public:
  Xxh3();
  void update(std::span<const std::byte> bytes);
  std::uint64_t digest() const;

 private:
  struct Free {
    void operator()(XXH3_state_s* state) const;
  };
  std::unique_ptr<XXH3_state_s, Free> state_;
};

// When the content last changed, in nanoseconds since 1970.
std::int64_t changed_at(const struct stat& status);

// --- A file being written: reserved, filled by large writes, and made durable. It knows no name of its own.

// How bytes reach the disk. What was measured is in tests/bench/convert_bench.cpp.
enum class WritePolicy : std::uint8_t {
  cached,       // through the page cache, which keeps them
  drop_behind,  // through the page cache; pages are written out soon and dropped
  direct,       // past the page cache (O_DIRECT), but for what is not a whole kDirectUnit of file and memory
};

// Move-only. `path` is used in messages. Several threads may write different ranges at a time, and make the
// content durable meanwhile.
class OutputFile {
 public:
  OutputFile(UniqueFd fd, std::string path) : path_(std::move(path)), fd_(std::move(fd)) {}

  const std::string& path() const { return path_; }
  int descriptor() const { return fd_.get(); }

  // Reserves disk blocks for exactly `bytes`, so that a full disk fails now and not at the end.
  // Throws Error{io}. File systems that cannot reserve are accepted.
  void preallocate(std::uint64_t bytes);
  // Sets the size without reserving blocks: unwritten ranges are holes that read as zero.
  void set_size(std::uint64_t bytes);
  // How later calls of write_at() write. File systems that refuse O_DIRECT get drop_behind.
  void set_policy(WritePolicy policy);
  void write_at(std::uint64_t offset, std::span<const std::byte> bytes);
  // Makes the content durable.
  void sync();

 private:
  // Bytes between a write and the moment when its pages are dropped.
  static constexpr std::uint64_t kBehind = 32 << 20;

  void write_behind(std::uint64_t offset, std::uint64_t bytes) const;

  std::string path_;
  UniqueFd fd_;
  UniqueFd direct_;  // of the same file; valid if the policy is `direct` and the file system takes it
  WritePolicy policy_ = WritePolicy::cached;
};

// --- An output file that appears whole or not at all: temporary file, fsync, rename.

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

// --- Replaces the beginning of a file in place, so that a crash in the middle can be undone.

// The small file beside `path` that holds the old and the new bytes while they are exchanged. It exists only
// then, and after a crash.
std::string edit_backup_path(const std::string& path);
// Whether a file's name is that of such a file.
bool is_edit_backup(std::string_view name);

// Whether that file exists.
bool edit_was_interrupted(const std::string& path);

enum class Recovery : std::uint8_t {
  none,    // there was no backup: no edit was interrupted
  undone,  // the edit was interrupted, and the old bytes are back
  done,    // the new bytes had been written: the backup is removed
};
// Ends an interrupted exchange. Throws Error{malformed} if the backup is damaged, or the file is not the one
// that it belongs to: neither is changed then. Throws Error{io}.
Recovery recover_in_place(const std::string& path);

// Writes `after` over `before`, which have the same size and stand at the beginning of the file. Saves both
// beside the file first, and writes everything through to the disk. Then calls `check`; if it throws, the old
// bytes are put back. Throws Error{usage} if another process edits the file, if a backup exists, or if the
// file has several names (hard links), Error{io} if the file begins with other bytes, and as `check` does.
void replace_in_place(const std::string& path, std::span<const std::byte> before,
                      std::span<const std::byte> after, const std::function<void()>& check);

// The first step alone, for tests: what a crash leaves.
void save_edit_backup(const std::string& path, std::span<const std::byte> before,
                      std::span<const std::byte> after);

}  // namespace loadline::io
