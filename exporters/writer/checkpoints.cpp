// The log of checkpoints, and files compared with them.
#include "exporters/writer/checkpoints.h"

#include "core/base/error.h"
#include "core/io/atomic_file.h"
#include "core/io/file_system.h"
#include "core/io/source_file.h"
#include "core/io/system_memory.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <string_view>
#include <vector>

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/stat.h>
#include <unistd.h>

namespace loadline::exporters {

// --- One line a checkpoint: `at xxh3 check` in hexadecimal, where check is the XXH3-64 of the text before
// it. A line that was cut off, or that the disk lost, does not match and ends the log.

namespace {

constexpr std::size_t kLine = 16 + 1 + 16 + 1 + 16 + 1;
constexpr std::size_t kMostLines = 1 << 20;

std::string line_of(const Checkpoint& checkpoint) {
  const std::string text = fmt::format("{:016x} {:016x} ", checkpoint.at, checkpoint.xxh3);
  io::Xxh3 check;
  check.update(std::as_bytes(std::span(text)));
  return fmt::format("{}{:016x}\n", text, check.digest());
}

std::uint64_t hexadecimal(std::string_view digits) {
  std::uint64_t value = 0;
  std::from_chars(digits.data(), digits.data() + digits.size(), value, 16);
  return value;
}

std::vector<Checkpoint> read_lines(int fd) {
  std::vector<Checkpoint> checkpoints;
  std::array<char, kLine> line = {};
  for (std::size_t i = 0; i < kMostLines; ++i) {
    const ssize_t got = ::pread(fd, line.data(), kLine, static_cast<off_t>(i * kLine));
    if (got != static_cast<ssize_t>(kLine)) break;
    const std::string_view text(line.data(), kLine);
    const Checkpoint checkpoint{hexadecimal(text.substr(0, 16)), hexadecimal(text.substr(17, 16))};
    if (line_of(checkpoint) != text) break;
    if (!checkpoints.empty() && checkpoint.at <= checkpoints.back().at) break;
    checkpoints.push_back(checkpoint);
  }
  return checkpoints;
}

}  // namespace

PartLog::PartLog(io::UniqueFd fd, std::string path)
    : fd_(std::move(fd)), path_(std::move(path)), lines_(read_lines(fd_.get()).size()) {}

std::optional<PartLog> PartLog::claim(const std::string& path) {
  io::UniqueFd fd = io::lock_file(path, io::LockKind::exclusive);
  if (!fd) return std::nullopt;
  return PartLog(std::move(fd), path);
}

std::vector<Checkpoint> PartLog::read() const { return read_lines(fd_.get()); }

void PartLog::append(const Checkpoint& checkpoint) {
  // behind the last whole line: a line that a crash has cut is written over
  const auto at = static_cast<off_t>(lines_ * kLine);
  const std::string line = line_of(checkpoint);
  if (::pwrite(fd_.get(), line.data(), line.size(), at) != static_cast<ssize_t>(line.size()) ||
      ::fdatasync(fd_.get()) != 0)
    throw system_error(path_, "note what is written", errno);
  ++lines_;
}

void PartLog::keep(std::size_t count) {
  if (::ftruncate(fd_.get(), static_cast<off_t>(count * kLine)) != 0)
    throw system_error(path_, "make shorter", errno);
  lines_ = count;
}

std::vector<Checkpoint> read_part_log(const std::string& path) {
  const io::UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  return fd ? read_lines(fd.get()) : std::vector<Checkpoint>();
}

// --- One buffer, front to back.

namespace {

using Piece = std::function<void(std::uint64_t offset, std::span<const std::byte> bytes)>;

// Adds bytes [begin, end) of a file to a hash. `piece` gets them too, in order.
void hash_range(const io::SourceFile& file, std::uint64_t begin, std::uint64_t end, io::Xxh3& hash,
                const Piece& piece) {
  std::vector<std::byte> buffer(static_cast<std::size_t>(std::min<std::uint64_t>(1 << 20, end - begin)));
  for (std::uint64_t at = begin; at < end;) {
    const auto bytes =
        std::span(buffer).first(static_cast<std::size_t>(std::min<std::uint64_t>(buffer.size(), end - at)));
    file.read_at(at, bytes);
    hash.update(bytes);
    piece(at, bytes);
    at += bytes.size();
  }
}

}  // namespace

std::size_t matching_checkpoints(const std::string& path, std::span<const Checkpoint> checkpoints,
                                 Progress& progress, const Piece& pass) {
  const io::SourceFile file = io::SourceFile::open(path);
  io::drop_pages(file);
  io::Xxh3 hash;
  std::uint64_t at = 0;
  for (std::size_t i = 0; i < checkpoints.size(); ++i) {
    if (checkpoints[i].at > file.size()) return i;
    hash_range(file, at, checkpoints[i].at, hash,
               [&](std::uint64_t offset, std::span<const std::byte> bytes) {
                 progress.check_canceled();
                 if (pass) pass(offset, bytes);
                 progress.add(bytes.size());
               });
    at = checkpoints[i].at;
    if (hash.digest() != checkpoints[i].xxh3) return i;
  }
  return checkpoints.size();
}

std::uint64_t file_hash(const std::string& path, const Progress& progress) {
  const io::SourceFile file = io::SourceFile::open(path);
  io::Xxh3 hash;
  hash_range(file, 0, file.size(), hash,
             [&](std::uint64_t, std::span<const std::byte>) { progress.check_canceled(); });
  return hash.digest();
}

void check_range_read_back(const std::string& path, const std::string& target, std::uint64_t begin,
                           std::uint64_t end, std::uint64_t xxh3) {
  const io::SourceFile file = io::SourceFile::open(path);
  io::drop_pages(file);
  io::Xxh3 hash;
  hash_range(file, begin, end, hash, [](std::uint64_t, std::span<const std::byte>) {});
  if (hash.digest() != xxh3)
    throw Error(
        ErrorCode::io, {.file = target, .byte = begin},
        "{} bytes read back differently from what was written (hash {:016x}, now {:016x}); the disk or "
        "memory is faulty",
        end - begin, xxh3, hash.digest());
}

void check_read_back(const std::string& path, const std::string& target, const Checkpoint& whole,
                     Progress& progress) {
  if (io::SourceFile::open(path).size() != whole.at || matching_checkpoints(path, {&whole, 1}, progress) != 1)
    throw Error(ErrorCode::io, {.file = target},
                "reads back differently from what was written (hash {:016x}); the disk or memory is faulty",
                whole.xxh3);
}

}  // namespace loadline::exporters
