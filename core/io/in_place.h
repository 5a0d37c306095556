// Replaces the beginning of a file in place, so that a crash in the middle can be undone.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>

namespace loadline {

// The small file beside `path` that holds the old and the new bytes while they are exchanged. It exists only
// then, and after a crash.
std::string edit_backup_path(const std::string& path);

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

}  // namespace loadline
