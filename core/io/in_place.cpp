// The backup: "LOADLINE EDIT 1\n" | u64 bytes of the file | u64 N | u64 XXH3 of what follows | N old bytes |
// N new bytes.
#include "core/base/error.h"
#include "core/base/text.h"
#include "core/io/atomic_file.h"
#include "core/io/file_system.h"
#include "core/io/source_file.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <string_view>
#include <vector>

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

namespace loadline::io {
namespace {

namespace fs = std::filesystem;
using Bytes = std::span<const std::byte>;

constexpr std::string_view kMagic = "LOADLINE EDIT 1\n";
constexpr std::string_view kBackupName = ".loadline-edit-";
constexpr std::uint64_t kMostBackup = std::uint64_t{1} << 30;
constexpr std::size_t kHead = kMagic.size() + 3 * sizeof(std::uint64_t);

struct Backup {
  std::uint64_t file_bytes = 0;
  std::vector<std::byte> before, after;
};

std::uint64_t hash_of(Bytes bytes) {
  Xxh3 hash;
  hash.update(bytes);
  return hash.digest();
}

void append_number(std::vector<std::byte>& out, std::uint64_t number) {
  const auto bytes = std::as_bytes(std::span(&number, 1));
  out.insert(out.end(), bytes.begin(), bytes.end());
}

std::uint64_t number_at(Bytes bytes, std::size_t i) {
  std::uint64_t number = 0;
  std::memcpy(&number, bytes.data() + kMagic.size() + i * sizeof number, sizeof number);
  return number;
}

Backup read_backup(const std::string& path) {
  const SourceFile file = SourceFile::open(path);
  const auto damaged = [&] {
    return Error(ErrorCode::malformed, {.file = path},
                 "is a damaged backup of an edit: check the model file, then delete this backup");
  };
  if (file.size() > kMostBackup) throw damaged();
  std::vector<std::byte> bytes(static_cast<std::size_t>(file.size()));
  file.read_at(0, bytes);
  if (bytes.size() < kHead || std::memcmp(bytes.data(), kMagic.data(), kMagic.size()) != 0) throw damaged();
  const std::size_t both = bytes.size() - kHead;
  if (both % 2 != 0 || number_at(bytes, 1) != both / 2 ||
      number_at(bytes, 2) != hash_of(Bytes(bytes).subspan(kHead)))
    throw damaged();
  const auto half = static_cast<std::ptrdiff_t>(kHead + both / 2);
  return {number_at(bytes, 0),
          {bytes.begin() + kHead, bytes.begin() + half},
          {bytes.begin() + half, bytes.end()}};
}

class LockedFile {
 public:
  explicit LockedFile(const std::string& path) : path_(path), fd_(::open(path.c_str(), O_RDWR | O_CLOEXEC)) {
    if (!fd_) throw system_error(path, "open for writing", errno);
    if (::flock(fd_.get(), LOCK_EX | LOCK_NB) != 0) {
      if (errno == EWOULDBLOCK)
        throw Error(ErrorCode::usage, {.file = path}, "is being edited by another process");
      throw system_error(path, "lock", errno);
    }
    if (::fstat(fd_.get(), &status_) != 0) throw system_error(path, "examine", errno);
  }

  std::uint64_t size() const { return static_cast<std::uint64_t>(status_.st_size); }
  std::uint64_t names() const { return status_.st_nlink; }

  std::vector<std::byte> head(std::size_t bytes) const {
    std::vector<std::byte> read(bytes);
    for (std::size_t done = 0; done < bytes;) {
      const ssize_t got = uninterrupted(
          [&] { return ::pread(fd_.get(), read.data() + done, bytes - done, static_cast<off_t>(done)); });
      if (got < 0) throw system_error(path_, "read", errno);
      if (got == 0) throw Error(ErrorCode::io, {.file = path_, .byte = done}, "ends early");
      done += static_cast<std::size_t>(got);
    }
    return read;
  }
  void write(Bytes bytes) const {
    for (std::size_t done = 0; done < bytes.size();) {
      const ssize_t put = uninterrupted([&] {
        return ::pwrite(fd_.get(), bytes.data() + done, bytes.size() - done, static_cast<off_t>(done));
      });
      if (put == 0) errno = EIO;  // no progress: it would be tried for ever
      if (put <= 0) throw system_error(path_, fmt::format("write at byte {}", done), errno);
      done += static_cast<std::size_t>(put);
    }
    if (::fsync(fd_.get()) != 0) throw system_error(path_, "make its content durable", errno);
  }

 private:
  std::string path_;
  UniqueFd fd_;
  struct stat status_ = {};
};

void remove_backup(const std::string& path) {
  const std::string backup = edit_backup_path(path);
  if (::unlink(backup.c_str()) != 0) throw system_error(backup, "remove", errno);
  sync_folder(fs::path(backup).parent_path().string());
}

bool equal(Bytes a, Bytes b) { return std::ranges::equal(a, b); }

}  // namespace

// The name has a fixed length: the file's own may be as long as the file system allows. Other paths of the
// same file, through links, give the same name.
std::string edit_backup_path(const std::string& path) {
  std::error_code failure;
  const fs::path real = fs::canonical(path, failure);
  const fs::path file = failure ? fs::path(path) : real;
  const std::string name = file.filename().string();
  return (file.parent_path() / fmt::format("{}{:016x}", kBackupName, hash_of(std::as_bytes(std::span(name)))))
      .string();
}

bool is_edit_backup(std::string_view name) { return name.starts_with(kBackupName); }

bool edit_was_interrupted(const std::string& path) {
  std::error_code failure;
  return fs::exists(edit_backup_path(path), failure);
}

void save_edit_backup(const std::string& path, Bytes before, Bytes after) {
  std::vector<std::byte> bytes;
  const auto magic = std::as_bytes(std::span(kMagic));
  bytes.insert(bytes.end(), magic.begin(), magic.end());
  append_number(bytes, fs::file_size(path));
  append_number(bytes, before.size());
  append_number(bytes, 0);
  bytes.insert(bytes.end(), before.begin(), before.end());
  bytes.insert(bytes.end(), after.begin(), after.end());
  const std::uint64_t hash = hash_of(Bytes(bytes).subspan(kHead));
  std::memcpy(bytes.data() + kHead - sizeof hash, &hash, sizeof hash);
  AtomicFile file(edit_backup_path(path));
  file.write_at(0, bytes);
  file.commit();
}

Recovery recover_in_place(const std::string& path) {
  if (!edit_was_interrupted(path)) return Recovery::none;
  const std::string backup_path = edit_backup_path(path);
  const LockedFile file(path);
  const Backup backup = read_backup(backup_path);
  const auto other = [&](const std::string& why) {
    return Error(
        ErrorCode::malformed, {.file = path},
        "an edit of this file was interrupted, but {}; if the model file is intact, delete the backup {}",
        why, safe_display(backup_path));
  };
  if (file.size() != backup.file_bytes)
    throw other(fmt::format("it has {} bytes now and had {}", file.size(), backup.file_bytes));
  const std::vector<std::byte> now = file.head(backup.before.size());
  if (equal(now, backup.after)) {
    remove_backup(path);
    return Recovery::done;
  }
  // an interrupted write leaves bytes of one or the other
  for (std::size_t i = 0; i < now.size(); ++i)
    if (now[i] != backup.before[i] && now[i] != backup.after[i])
      throw other(fmt::format("byte {} is neither the old nor the new value", i));
  file.write(backup.before);
  remove_backup(path);
  return Recovery::undone;
}

void replace_in_place(const std::string& path, Bytes before, Bytes after,
                      const std::function<void()>& check) {
  if (before.size() != after.size())
    throw Error(ErrorCode::usage, {.file = path}, "{} bytes cannot replace {} in place", after.size(),
                before.size());
  const LockedFile file(path);
  if (file.names() > 1)
    throw Error(ErrorCode::usage, {.file = path},
                "has {} names (hard links), and an edit would change all of them: edit a copy", file.names());
  if (edit_was_interrupted(path))
    throw Error(ErrorCode::usage, {.file = path}, "an edit of this file was interrupted");
  if (!equal(file.head(before.size()), before))
    throw Error(ErrorCode::io, {.file = path}, "was changed by another program");
  save_edit_backup(path, before, after);
  try {
    file.write(after);
    check();
  } catch (...) {
    file.write(before);
    remove_backup(path);
    throw;
  }
  remove_backup(path);
}

}  // namespace loadline::io
